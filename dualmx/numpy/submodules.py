"""MXNet's submodules of `mx.np`: `mx.np.multiarray`, `mx.np.utils` and others."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

# module: what it shows, all functions of the room if that is empty
SUBMODULES: dict[str, tuple[str, ...]] = {
    "multiarray": (),
    "function_base": ("meshgrid",),
    "io": ("genfromtxt",),
    "stride_tricks": ("broadcast_arrays",),
    "arrayprint": ("set_printoptions",),
    "utils": ("NAN", "NINF", "NZERO", "NaN", "PINF", "PZERO", "bool", "bool_", "e", "float16", "float32", "float64",
              "inf", "int32", "int64", "int8", "nan", "newaxis", "pi", "uint8"),
    "fallback_linalg": ("cond", "matrix_power", "matrix_rank", "multi_dot"),
}  # fmt: skip


def _place(room: ModuleType, name: str, shown: tuple[str, ...]) -> ModuleType:
    path = f"{room.__name__}.{name}"
    made = sys.modules[path] = ModuleType(path, f"Functions of `mx.np` under the name of MXNet's module `{name}`.")

    def find(attribute: str) -> Any:
        if attribute.startswith("__") or (shown and attribute not in shown):
            raise AttributeError(f"module {path!r} has no attribute {attribute!r}", name=attribute, obj=made)
        return getattr(room.linalg if name.endswith("linalg") else room, attribute)

    setattr(made, "__getattr__", find)  # noqa: B010
    setattr(made, "__dir__", lambda: list(shown) or dir(room))  # noqa: B010
    return made


def make_submodules(room: ModuleType) -> None:
    """Make the modules and put them into the room."""
    for name, shown in SUBMODULES.items():
        setattr(room, name, _place(room, name, shown))
