"""Every public name has prose, and the Markdown pages show code that exists."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import re
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import dualmx
from dualmx.op.registry import OPS

ROOT = Path(__file__).parents[2]
HAS_SPARK = importlib.util.find_spec("pyspark") is not None
MODULES = sorted(
    m.name
    for m in pkgutil.walk_packages(dualmx.__path__, "dualmx.")
    if not any(part.startswith("_") for part in m.name.split(".")[1:])
    and not m.name.startswith("dualmx.op.defs.")  # operators speak for themselves, see below
    and (HAS_SPARK or not m.name.startswith("dualmx.spark.ml"))  # classes that derive from those of pyspark
)


def public_names(module: types.ModuleType) -> list[str]:
    """`__all__`, or what the module itself defines without a leading underscore."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [n for n, v in vars(module).items() if not n.startswith("_") and defined_in(module, v)]


def defined_in(module: types.ModuleType, value: object) -> bool:
    return (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__ == module.__name__


def members(cls: type) -> Iterator[tuple[str, object]]:
    """Public methods and properties that `cls` itself defines."""
    for name, value in vars(cls).items():
        documented = inspect.isfunction(value) and value.__name__ != "<lambda>"
        if not name.startswith("_") and (documented or isinstance(value, (property, classmethod, staticmethod))):
            yield name, getattr(cls, name)


@pytest.mark.parametrize("name", MODULES)
def test_public_names_are_documented(name: str) -> None:
    module = importlib.import_module(name)
    assert (module.__doc__ or "").strip(), f"{name} has no docstring"
    missing = []
    for symbol in public_names(module):
        value = getattr(module, symbol)
        if not defined_in(module, value):
            continue
        if not (inspect.getdoc(value) or "").strip():
            missing.append(symbol)
        if inspect.isclass(value):
            missing += [f"{symbol}.{m}" for m, v in members(value) if not (inspect.getdoc(v) or "").strip()]
    assert not missing, f"{name}: no docstring on {', '.join(missing)}"


def test_all_lists_only_names_that_exist() -> None:
    wrong = []
    for name in MODULES:
        module = importlib.import_module(name)
        wrong += [f"{name}.{n}" for n in getattr(module, "__all__", ()) if not hasattr(module, n)]
    assert not wrong


def test_every_operator_has_prose() -> None:
    short = [name for name, op in OPS.items() if len((op.fn.__doc__ or "").strip()) < 10]
    assert not short


def test_pages_link_to_pages_that_exist() -> None:
    broken = []
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)} -> {target}")
    assert not broken
