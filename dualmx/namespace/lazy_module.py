"""Modules whose functions are made on first access, so that importing dualmx is quick."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from ..core.module_alias import lazy_names
from ..op.registry import OPS, Op

PREFIXES = {
    "_contrib_": "contrib",
    "_linalg_": "linalg",
    "_random_": "random",
    "_sample_": "random",
    "_image_": "image",
    "_sparse_": "sparse",
}

# Makes the front-end function of an op under a public name.
FunctionFactory = Callable[[Op, str], Callable[..., Any]]


def public_names(name: str) -> tuple[str, str]:
    """Return (sub-namespace, name) under which a registered name appears; the top one is `""`."""
    for prefix, room in PREFIXES.items():
        if name.startswith(prefix):
            return room, name[len(prefix) :]
    return ("_internal", name) if name.startswith("_") else ("", name)


def submodule(parent: ModuleType, name: str, doc: str) -> ModuleType:
    """Return the submodule `name` of `parent`, created and registered if it is new."""
    path = f"{parent.__name__}.{name}"
    found = sys.modules.get(path)
    if found is None:
        found = sys.modules[path] = ModuleType(path, doc)
        setattr(parent, name, found)
    return found


def serve_lazily(
    module: ModuleType, lookup: Callable[[str], Op | None], names: Callable[[], Iterable[str]], make: FunctionFactory
) -> None:
    """Let `room` make the function of the op that `find` returns for an unknown attribute, and keep it."""
    # A room may already answer for some names (optional sub-packages); those answers come second.
    before = vars(module).get("__getattr__")

    def missing(name: str) -> Any:
        op = lookup(name)
        if op is None:
            if before is not None:
                return before(name)
            # With name and object, Python suggests near names.
            raise AttributeError(
                f"module {module.__name__!r} has no operator or attribute {name!r}", name=name, obj=module
            )
        made = make(op, name)
        setattr(module, name, made)
        return made

    module.__getattr__ = missing
    module.__dir__ = lambda: sorted({*vars(module), *names()})


def populate(top: ModuleType, doc: str, make: FunctionFactory) -> None:
    """Serve every registered op in `top` and its sub-namespaces; functions written by hand stay."""
    prefixes: dict[str, list[str]] = {}
    for prefix, room in PREFIXES.items():
        prefixes.setdefault(room, []).append(prefix)

    def in_room(room: str) -> tuple[Callable[[str], Op | None], Callable[[], Iterable[str]]]:
        starts = prefixes[room]
        return (
            lambda name: next((OPS[s + name] for s in starts if s + name in OPS), None),
            lambda: [n[len(s) :] for n in OPS for s in starts if n.startswith(s)],
        )

    for room in prefixes:
        serve_lazily(submodule(top, room, f"{doc}: {room}."), *in_room(room), make)
    serve_lazily(submodule(top, "_internal", f"{doc}: internal names."), OPS.get, lambda: list(OPS), make)

    def public(name: str) -> Op | None:
        return None if name.startswith("_") else OPS.get(name)

    def public_list() -> list[str]:
        return [n for n in OPS if not public_names(n)[0]]

    serve_lazily(submodule(top, "op", f"{doc}."), public, public_list, make)
    serve_lazily(top, public, public_list, make)


ND_SUBMODULES = {
    "ndarray": "ndarray.ndarray", "np": "numpy", "npx": "numpy_extension", "numpy": "numpy",
    "numpy_extension": "numpy_extension", "utils": "ndarray.utils",
}  # fmt: skip
SYM_SUBMODULES = {
    "np": "numpy.symbols", "npx": "numpy_extension.symbols", "numpy": "numpy.symbols",
    "numpy_extension": "numpy_extension.symbols",
}  # fmt: skip


def populate_np(top: ModuleType, submodules: dict[str, str]) -> None:
    """Let `top` answer for the names in `submodules`."""
    find, _ = lazy_names(top.__name__, submodules, "operator or attribute")
    setattr(top, "__getattr__", find)  # noqa: B010
