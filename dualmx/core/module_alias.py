"""Modules under second names, `sys.modules["mxnet"] = dualmx`, and names that are imported when they are first used.

Nothing else imports modules of the package by a name that is not in an import statement.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_OWN = __name__.partition(".")[0]


class _AliasLoader(Loader):
    """Loads the module that `name` already is, or becomes."""

    def __init__(self, name: str):
        self._name = name
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # which importlib has replaced by that of the second name


class _AliasFinder(MetaPathFinder):
    """Finds `mxnet.gluon` where `mxnet` is this package: importlib would load its files a second time."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        head, _, rest = fullname.partition(".")
        if not rest or head == _OWN or sys.modules.get(head) is not sys.modules.get(_OWN):
            return None
        return ModuleSpec(fullname, _AliasLoader(f"{_OWN}.{rest}"))


def install_finder() -> None:
    """Let imports from second names of the package give the modules of the package."""
    if not any(isinstance(f, _AliasFinder) for f in sys.meta_path):
        sys.meta_path.insert(0, _AliasFinder())


def load(module: str) -> Any:
    """Return a module of the package by its name inside it, for a public name whose module is in a room above."""
    return import_module(f"{_OWN}.{module}")


def lazy_names(
    module: str, places: Mapping[str, str], kind: str = "attribute"
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and the `__dir__` of a module some of whose names are imported when they are first used.

    Args:
        module: its full name.
        places: for each name a module inside the package, or `module:attribute`.
        kind: what an error calls the names.
    """

    def find(name: str) -> Any:
        room = sys.modules[module]
        if name not in places:
            # With name and object, Python suggests near names.
            raise AttributeError(f"module {module!r} has no {kind} {name!r}", name=name, obj=room)
        place, _, attribute = places[name].partition(":")
        found = getattr(load(place), attribute) if attribute else load(place)
        setattr(room, name, found)
        return found

    return find, lambda: sorted({*vars(sys.modules[module]), *places})


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
                    return getattr(import_module(place), name)
                except AttributeError:
                    continue
        raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name)

    def names() -> list[str]:
        found = {n for place in modules for n in dir(import_module(place)) if not n.startswith("_")}
        return sorted(found)

    return find, names
