"""The Python of the Markdown pages runs as printed; blocks marked `py` are fragments and are only compiled."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
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


@pytest.fixture(scope="module")
def run() -> Iterator[Callable[[str], int]]:
    """Runs code in a process of its own, and returns its status."""
    with jobs.running(jobs.PYTHON, "-m", "tests.integration.forks", stdin=subprocess.PIPE, stderr=None) as process:
        assert process.stdin is not None and process.stdout is not None
        requests, answers = process.stdin, process.stdout

        def run(code: str) -> int:
            print(json.dumps(code), file=requests, flush=True)
            status, said = json.loads(answers.readline())
            print(said)
            return status

        yield run


@pytest.mark.parametrize(("kind", "code"), BLOCKS)
def test_block_runs(kind: str, code: str, run: Callable[[str], int]) -> None:
    compile(code, "<page>", "exec")
    if kind == "python":
        assert run(code) == 0


def test_a_block_that_fails_is_noticed_and_the_next_one_runs(run: Callable[[str], int]) -> None:
    assert run("import dualmx as mx; mx.nd.array([1]).no_such_name") == 1
    assert run("import os; os.abort()") < 0
    assert run("import dualmx as mx; assert (mx.nd.array([1]) + 1).asscalar() == 2") == 0
