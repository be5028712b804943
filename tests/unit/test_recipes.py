"""The recipes of CONTRIBUTING.md, followed to the letter in a copy of the package."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests import jobs

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^## (Add .+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
FILE = re.compile(r"^New file `([^`]+)`:\n+```py\n(.*?)^```", re.MULTILINE | re.DOTALL)
CHANGE = re.compile(r"^In `([^`]+)`, `([^`]+)` becomes\s`([^`]+)`\.$", re.MULTILINE)


def follow(recipe: str, tree: Path) -> list[Path]:
    """Carry out a recipe in a tree; returns its tests."""
    for name, old, new in CHANGE.findall(recipe):
        text = (tree / name).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{name} has {old!r} {text.count(old)} times"
        (tree / name).write_text(text.replace(old, new), encoding="utf-8")
    files = FILE.findall(recipe)
    for name, text in files:
        assert not (tree / name).exists(), f"{name} exists"
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text, encoding="utf-8")
    return [tree / name for name, _ in files if name.startswith("tests/")]


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_works_as_written(name: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "dualmx", tmp_path / "dualmx", ignore=shutil.ignore_patterns("__pycache__"))
    tests = follow(RECIPES[name], tmp_path)
    assert tests, "the recipe has no test"
    command = [jobs.PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    jobs.run(*command, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})


def test_a_recipe_that_is_out_of_date_fails(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    with pytest.raises(AssertionError, match="0 times"):
        follow("In `a.py`, `y = 1` becomes `y = 2`.\n", tmp_path)
    with pytest.raises(AssertionError, match="exists"):
        follow("New file `a.py`:\n\n```py\nx = 2\n```\n", tmp_path)
