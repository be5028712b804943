"""The tests are where a reader of the package looks for them: `tests/io` tests `dualmx/io`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What belongs to no room: recordings, the layout of the code itself, and what goes through the whole house.
ACROSS = {"fuzz", "goldens", "integration", "safety", "unit"}


def strays(package: Path, tests: Path) -> Iterator[str]:
    """Tests without a room of their name, and packages without tests."""
    rooms = {p.parent.name for p in package.glob("*/__init__.py")}
    modules = {p.stem for p in package.glob("*.py")}
    tested = {p.parent.name for p in tests.glob("*/test_*.py")}
    files = {p.stem.removeprefix("test_") for p in tests.glob("test_*.py")}
    yield from (
        f"{t} tests nothing of that name" for t in sorted((tested - rooms - modules - ACROSS) | (files - modules))
    )
    yield from (f"{r} has no tests" for r in sorted(rooms - tested))


def test_tests_mirror_the_package() -> None:
    assert list(strays(ROOT / "dualmx", ROOT / "tests")) == []


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        ("io/test_a.py ps/test_a.py test_log.py goldens/test_a.py log/test_b.py", []),
        ("io/test_a.py", ["ps has no tests"]),
        ("io/test_a.py ps/cases.py", ["ps has no tests"]),
        ("io/test_a.py ps/test_a.py dist/test_a.py", ["dist tests nothing of that name"]),
        ("io/test_a.py ps/test_a.py test_dist.py", ["dist tests nothing of that name"]),
    ],
)
def test_strays_are_found(tmp_path: Path, tests: str, said: list[str]) -> None:
    files = ["dualmx/io/__init__.py", "dualmx/ps/__init__.py", "dualmx/log.py", *(f"tests/{t}" for t in tests.split())]
    for file in map(tmp_path.joinpath, files):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    assert list(strays(tmp_path / "dualmx", tmp_path / "tests")) == said
