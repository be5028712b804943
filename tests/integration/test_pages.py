"""The Python of the Markdown pages runs as printed; blocks marked `py` are fragments and are only compiled."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import jobs

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```(python|py)\n(.*?)^```", re.M | re.S)
BLOCKS = [
    pytest.param(kind, code, id=f"{page.name}-{n}")
    for page in PAGES
    for n, (kind, code) in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")))
]


@pytest.mark.parametrize(("kind", "code"), BLOCKS)
def test_block_runs(kind: str, code: str) -> None:
    compile(code, "<page>", "exec")
    if kind == "python":
        jobs.run(jobs.PYTHON, "-c", code)
