"""The picture and the walks of docs/design.md are those of today's code."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from tests import jobs

TOP = Path(__file__).parents[2]
DOCS = TOP / "docs"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


house, walks = script("house"), script("walks")


def files_of(name: str) -> list[str]:
    """The files of a walk, in a process of its own: the first call of an operator is cold only once."""
    said = jobs.run(jobs.PYTHON, DOCS / "walks.py", name).stdout
    return re.findall(r"^    (\S+)$", said, re.MULTILINE)


def listed(name: str) -> list[str]:
    """The files of a walk as docs/design.md lists them."""
    found = re.search(rf"`{name}`,\s.*?```text\n(.*?)```", (DOCS / "design.md").read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None, f"docs/design.md does not tell of the walk {name}"
    return found[1].replace("·", " ").split()


@pytest.mark.parametrize("name", [n if n != "push" else pytest.param(n, marks=pytest.mark.slow) for n in walks.LIMITS])
def test_a_walk_passes_through_few_files_and_is_described(name: str) -> None:
    files = files_of(name)
    assert len(files) <= walks.LIMITS[name]
    assert sorted(listed(name)) == sorted(files), f"write the list of `python docs/walks.py {name}` to docs/design.md"


def test_files_entered_are_counted_once_and_others_not() -> None:
    def call() -> None:
        house.rooms()  # not of the package
        from dualmx.core.dtypes import as_dtype

        as_dtype("float32"), as_dtype("float16")

    assert list(walks.walked(call).files) == ["core/dtypes.py"]


def test_the_picture_is_drawn_from_todays_imports() -> None:
    drawn = house.structure(house.svg())
    assert house.structure(house.PICTURE.read_text(encoding="utf-8")) == drawn, "run python docs/house.py"


def test_a_room_with_other_imports_is_another_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    before, edges = house.structure(house.svg()), house.edges()
    monkeypatch.setattr(house, "edges", lambda: edges | {"core": {"tools"}, "tools": set()})
    assert house.structure(house.svg()) != before


def test_rooms_that_import_each_other_cannot_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    edges = house.edges()
    monkeypatch.setattr(house, "edges", lambda: edges | {"core": {"op"}})
    with pytest.raises(SystemExit, match="rooms import each other"):
        house.svg()
