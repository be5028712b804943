"""`mx.npx.image`: image operators with NumPy semantics; the rest is `mx.image`."""

from __future__ import annotations

from typing import Any

from ..op.registry import OPS
from .operators import np_function

_PREFIX = "_image_"
FUNCTIONS = {name[len(_PREFIX) :]: np_function(name, name[len(_PREFIX) :]) for name in OPS if name.startswith(_PREFIX)}
globals().update(FUNCTIONS)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'dualmx.numpy_extension.image' has no attribute {name!r}")
    from .. import image

    return getattr(image, name)


__all__ = sorted(FUNCTIONS)  # pyright: ignore[reportUnsupportedDunderAll]
