"""Modules under whose names scripts written for MXNet look for what lies elsewhere here."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def lazy_reexport(module: str, *modules: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and the `__dir__` of a module that has the public names of other modules.

    Args:
        module: its name.
        places: full names of the modules whose names it has, imported when one is asked for.
    """

    def find(name: str) -> Any:
        if not name.startswith("__"):
            for place in modules:
                try:
                    return getattr(importlib.import_module(place), name)
                except AttributeError:
                    continue
        raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name)

    def names() -> list[str]:
        found = {n for place in modules for n in dir(importlib.import_module(place)) if not n.startswith("_")}
        return sorted(found)

    return find, names
