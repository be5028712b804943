"""Fluent methods of arrays."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from .fluent import FLUENT


def _method(fn: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return fn(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = fn.__name__
    method.__doc__ = f"Fluent form of `nd.{fn.__name__}(x, …)`.\n\n{fn.__doc__}"
    return method


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
    """Give `cls` a method for every fluent operator that is registered."""
    for name in FLUENT:
        fn = getattr(nd, name, None)
        if fn is not None:
            setattr(cls, name, _method(fn))
    for own in (transpose, broadcast_to, split_v2):
        setattr(cls, own.__name__, own)
