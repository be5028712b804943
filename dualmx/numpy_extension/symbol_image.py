"""`mx.sym.npx.image`: image operators as nodes with NumPy semantics."""

from __future__ import annotations

from typing import Any

from ..op.registry import OPS
from .operators import np_symbol_function

_PREFIX = "_image_"


def __getattr__(name: str) -> Any:
    if _PREFIX + name not in OPS:
        raise AttributeError(f"module 'mx.sym.npx.image' has no attribute {name!r}", name=name)
    made = globals()[name] = np_symbol_function(_PREFIX + name, name)
    return made


def __dir__() -> list[str]:
    return sorted({*globals(), *(n[len(_PREFIX) :] for n in OPS if n.startswith(_PREFIX))})
