"""`mx.nd.np`, `mx.sym.np` and their `npx`: imported when they are first named, because they build on these rooms."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

ND_SUBMODULES = {
    "ndarray": "ndarray.ndarray", "np": "numpy", "npx": "numpy_extension", "numpy": "numpy",
    "numpy_extension": "numpy_extension", "utils": "ndarray.utils",
}  # fmt: skip
SYM_SUBMODULES = {
    "np": "numpy.symbols", "npx": "numpy_extension.symbols", "numpy": "numpy.symbols",
    "numpy_extension": "numpy_extension.symbols",
}  # fmt: skip


def populate(top: ModuleType, submodules: dict[str, str]) -> None:
    """Let `top` answer for the names in `places`."""

    def found(name: str) -> Any:
        if name not in submodules:
            raise AttributeError(f"module {top.__name__!r} has no operator or attribute {name!r}", name=name, obj=top)
        made = importlib.import_module(f"{str(__package__).rpartition('.')[0]}.{submodules[name]}")
        setattr(top, name, made)
        return made

    setattr(top, "__getattr__", found)  # noqa: B010
