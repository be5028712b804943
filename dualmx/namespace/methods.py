"""Fluent methods of arrays."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from ..op.registry import OPS
from .fluent import FLUENT


def _method(name: str, top: ModuleType, shown: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(top, name)(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Fluent form of `{shown}.{name}(x, …)`, which documents the arguments."
    return method


def install_all(cls: type, top: ModuleType, shown: str) -> None:
    """Give `cls` a method for every fluent operator that is registered, calling the function in `top`."""
    for name in FLUENT:
        if name in OPS:
            setattr(cls, name, _method(name, top, shown))


def transpose(self: Any, *axes: Any, **kwargs: Any) -> Any:
    """Return the array with its axes permuted (reversed without arguments)."""
    from .. import ndarray as nd

    if len(axes) == 1 and isinstance(axes[0], (tuple, list)):
        axes = tuple(axes[0])
    return nd.transpose(self, axes=kwargs.get("axes", axes) or ())


def broadcast_to(self: Any, shape: Any) -> Any:
    """Return the array broadcast to `shape`; a 0 keeps the array's own length, missing axes are added in front."""
    from .. import ndarray as nd

    own = self.shape
    if len(shape) > len(own):
        return nd.broadcast_to(self.reshape((1,) * (len(shape) - len(own)) + own), shape=shape)
    return nd.broadcast_to(self, shape=shape)


def split_v2(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Fluent form of `nd.split_v2`."""
    from .. import ndarray as nd

    return nd.split_v2(self, *args, **kwargs)


def install(cls: type, nd: ModuleType) -> None:
    """Give the array class its fluent methods."""
    install_all(cls, nd, "nd")
    for own in (transpose, broadcast_to, split_v2):
        setattr(cls, own.__name__, own)
