"""Fluent methods of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from .. import ndarray as nd
from ..core.module_alias import load
from ..ndarray.handle import invoke_out
from ..ndarray.ndarray import NDArray
from ..op.registry import OPS
from .fluent import FLUENT

Holes = Sequence[int | None]


def _fluent_method(name: str, top: ModuleType, shown: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(top, name)(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Fluent form of `{shown}.{name}(x, …)`, which documents the arguments."
    return method


def install_all(cls: type, top: ModuleType, shown: str) -> None:
    """Give `cls` a method for every fluent operator, calling the function in `top`."""
    for name in FLUENT:
        setattr(cls, name, _fluent_method(name, top, shown))


def transpose(self: NDArray, *axes: int | Sequence[int], **kwargs: Any) -> NDArray:
    """Return the array with its axes permuted (reversed without arguments)."""
    if len(axes) == 1 and isinstance(axes[0], (tuple, list)):
        axes = tuple(axes[0])
    return nd.transpose(self, axes=kwargs.get("axes", axes) or ())


def broadcast_to(self: NDArray, shape: Sequence[int]) -> NDArray:
    """Return the array broadcast to `shape`; a 0 keeps the array's own length, missing axes are added in front."""
    own = self.shape
    if len(shape) > len(own):
        return nd.broadcast_to(self.reshape((1,) * (len(shape) - len(own)) + own), shape=shape)
    return nd.broadcast_to(self, shape=shape)


def broadcast_like(self: NDArray, other: NDArray, **kwargs: Any) -> NDArray:
    """Return the array broadcast to the shape of `other`; missing axes are added in front."""
    own = self.shape
    if other.ndim > len(own):
        self = self.reshape((1,) * (other.ndim - len(own)) + own)
    return nd.broadcast_like(self, other, **kwargs)


def expand_dims(self: NDArray, axis: int, inplace: bool = False, **kwargs: Any) -> NDArray:
    """Fluent form of `nd.expand_dims(x, axis)`; with `inplace` the result shares the array's memory."""
    return _view_or_copy(self, nd.expand_dims(self, axis=axis, **kwargs), inplace)


def flatten(self: NDArray, inplace: bool = False, **kwargs: Any) -> NDArray:
    """Fluent form of `nd.flatten(x)`; with `inplace` the result shares the array's memory."""
    return _view_or_copy(self, nd.flatten(self, **kwargs), inplace)


def squeeze(self: NDArray, axis: Any = None, inplace: bool = False, **kwargs: Any) -> NDArray:
    """Fluent form of `nd.squeeze(x, axis)`; with `inplace` the result shares the array's memory."""
    return _view_or_copy(self, nd.squeeze(self, axis=axis, **kwargs), inplace)


def _view_or_copy(x: NDArray, copied: NDArray, inplace: bool) -> NDArray:
    return x.reshape(copied.shape) if inplace else copied


def split_v2(self: NDArray, *args: Any, **kwargs: Any) -> Any:
    """Fluent form of `nd.split_v2(x, indices_or_sections, axis, squeeze_axis)`."""
    return nd.split_v2(self, *args, **kwargs)


def slice_assign(self: NDArray, rhs: NDArray, begin: Holes, end: Holes, step: Holes) -> NDArray:
    """Write `rhs` to the window from `begin` to `end` in steps of `step`, and return the array.

    Raises:
        ArgumentError: the window is not in the array, or `rhs` has another shape than the window.
    """
    return overwrite_with(self, "_slice_assign", (self, rhs), begin, end, step)


def slice_assign_scalar(self: NDArray, value: float, begin: Holes, end: Holes, step: Holes) -> NDArray:
    """Write the number `value` to the window from `begin` to `end` in steps of `step`, and return the array."""
    return overwrite_with(self, "_slice_assign_scalar", (self,), begin, end, step, scalar=value)


def overwrite_with(x: NDArray, name: str, ins: Sequence[NDArray], *window: Holes, **params: Any) -> NDArray:
    """Overwrite `x` with the result of a windowed write."""
    begin, end, step = window
    invoke_out(OPS[name].call(begin=begin, end=end, step=step, **params), ins, (x,))
    return x


def as_np_ndarray(self: NDArray) -> Any:
    """Return a `mx.np.ndarray` on the same value: writes to one are seen by the other, gradients are shared."""
    return load("numpy").as_np(self)


HANDWRITTEN = (
    transpose, broadcast_to, broadcast_like, expand_dims, flatten, squeeze, split_v2, slice_assign, slice_assign_scalar,
    as_np_ndarray,
)  # fmt: skip


def install(cls: type[NDArray], top: ModuleType) -> None:
    """Give the array class its fluent methods."""
    install_all(cls, top, "nd")
    for own in HANDWRITTEN:
        setattr(cls, own.__name__, own)
