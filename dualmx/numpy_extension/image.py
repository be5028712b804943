"""Operators on images as functions of arrays with NumPy semantics: `mx.npx.image`."""

from __future__ import annotations

from ..op.registry import OPS
from .operators import np_function

_PREFIX = "_image_"
FUNCTIONS = {name[len(_PREFIX) :]: np_function(name, name[len(_PREFIX) :]) for name in OPS if name.startswith(_PREFIX)}
globals().update(FUNCTIONS)

__all__ = sorted(FUNCTIONS)  # pyright: ignore[reportUnsupportedDunderAll]
