"""Array methods that are functions of this room: `x.sum(axis=0)` is `np.sum(x, axis=0)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError
from ..ndarray.ndarray import NDArray
from . import linalg, reductions, searching
from . import manipulation as m
from .call import c_order, call_op
from .elementwise import FUNCTIONS, UNARY, around
from .np_ndarray import as_np_class, ndarray


def _all(self: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    return reductions.all(self, axis, keepdims, out)


def _any(self: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    return reductions.any(self, axis, keepdims, out)


def _max(self: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    return reductions.max(self, axis, keepdims, out)


def _min(self: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    return reductions.min(self, axis, keepdims, out)


def _sum(self: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    return reductions.sum(self, axis, dtype, keepdims, None, out)


def _transpose(self: Any, *axes: Any) -> Any:
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
        return m.transpose(self, axes[0] or None)
    return m.transpose(self, axes or None)


def _flatten(self: Any, order: str = "C") -> Any:
    return m.ravel(self, order).copy()


def _ravel(self: Any, order: str = "C") -> Any:
    c_order(order, "ravel")
    return self.reshape(-1)


def _clip(self: Any, min: Any = None, max: Any = None, out: Any = None) -> Any:
    return m.clip(self, min, max, out)


def _round(self: Any, decimals: int = 0, out: Any = None, **kwargs: Any) -> Any:
    return around(self, decimals, out, **kwargs)


def _sort(self: Any, axis: Any = -1, kind: Any = None, order: Any = None) -> None:
    self[...] = searching.sort(self, axis, kind, order)


def _diag(self: Any, k: int = 0, **kwargs: Any) -> Any:
    if kwargs:
        raise ArgumentTypeError(f"diag: unexpected argument {next(iter(kwargs))!r}")
    return m.diag(self, k)


def _norm(self: Any, ord: int = 2, axis: Any = None, keepdims: bool = False) -> Any:
    if ord not in (1, 2):
        raise ArgumentError(f"norm: ord={ord}: expected 1 or 2")
    if ord == 1:
        return reductions.sum(abs(self), axis, None, keepdims)
    return FUNCTIONS["sqrt"](reductions.sum(self * self, axis, None, keepdims))


def _without_nan(self: Any, neutral: float) -> Any:
    return searching.where(FUNCTIONS["isnan"](self), neutral, self)


def _nansum(self: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return reductions.sum(_without_nan(self, 0), axis, None, keepdims)


def _nanprod(self: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return reductions.prod(_without_nan(self, 1), axis, None, None, keepdims)


def _slice_assign(self: Any, rhs: Any, begin: Any, end: Any, step: Any) -> Any:
    return call_op("_slice_assign", self, rhs, begin=begin, end=end, step=step or ())


def _slice_assign_scalar(self: Any, value: Any, begin: Any, end: Any, step: Any) -> Any:
    return call_op("_slice_assign_scalar", self, scalar=float(value), begin=begin, end=end, step=step or ())


HANDWRITTEN: dict[str, tuple[Callable[..., Any], str]] = {
    "all": (_all, "whether all elements over `axis` are other than 0"),
    "any": (_any, "whether some element over `axis` is other than 0"),
    "max": (_max, "the largest element over `axis`"),
    "min": (_min, "the smallest element over `axis`"),
    "sum": (_sum, "the sum over `axis`"),
    "transpose": (_transpose, "the array with its axes permuted, or reversed"),
    "flatten": (_flatten, "a copy with one axis"),
    "ravel": (_ravel, "a view with one axis"),
    "clip": (_clip, "the array limited to [`min`, `max`]"),
    "round": (_round, "the array rounded to `decimals` places, halves to even"),
    "sort": (_sort, "nothing: the array itself is sorted along `axis`"),
    "diag": (_diag, "diagonal `k`, or a matrix with the array on it"),
    "norm": (_norm, "the norm of order 1 or 2 over `axis`"),
    "nansum": (_nansum, "the sum over `axis` of what is not nan"),
    "nanprod": (_nanprod, "the product over `axis` of what is not nan"),
    "slice_assign": (_slice_assign, "a copy in which `rhs` stands in a window"),
    "slice_assign_scalar": (_slice_assign_scalar, "a copy in which a number stands in a window"),
}
_REDUCTIONS = ("argmax", "argmin", "cumsum", "mean", "prod", "ptp", "std", "var")
_SHAPES = (
    "broadcast_to", "diagonal", "expand_dims", "flip", "pad", "repeat", "split", "squeeze", "swapaxes", "tile",
)  # fmt: skip
# Methods with the arguments of the function.
SHARED: dict[str, Callable[..., Any]] = {
    **{n: getattr(reductions, n) for n in _REDUCTIONS},
    **{n: getattr(searching, n) for n in ("argsort", "nonzero", "take")},
    **{n: getattr(m, n) for n in _SHAPES},
    "dot": linalg.dot,
    "trace": linalg.trace,
    **{n: FUNCTIONS[n] for n in UNARY},
}


def _bound(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Fluent form of `np.{name}(x, …)`, which documents the arguments."
    return method


def _as_np(found: Any) -> Any:
    if isinstance(found, list):
        return [_as_np(a) for a in found]
    return as_np_class(found) if type(found) is NDArray else found


def _inherited(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """A fluent method of classic arrays, with the result under this room's class."""

    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _as_np(method(self, *args, **kwargs))

    wrapped.__name__ = wrapped.__qualname__ = name
    wrapped.__doc__ = method.__doc__
    return wrapped


INHERITED = (
    "argmax_channel", "broadcast_axes", "broadcast_like", "depth_to_space", "log_softmax",
    "one_hot", "ones_like", "pick", "rcbrt", "relu", "reshape_like", "rsqrt", "shape_array", "sigmoid", "size_array",
    "slice", "slice_axis", "slice_like", "softmax", "softmin", "space_to_depth", "split_v2", "topk", "zeros_like",
)  # fmt: skip


def install(cls: type[ndarray]) -> None:
    """Give the array class its methods."""
    for name in INHERITED:
        setattr(cls, name, _inherited(name, getattr(NDArray, name)))
    for name, function in SHARED.items():
        setattr(cls, name, _bound(name, function))
    for name, (method, what) in HANDWRITTEN.items():
        method.__name__ = method.__qualname__ = name
        method.__doc__ = f"Return {what}."
        setattr(cls, name, method)
    cls.T = property(lambda self: m.transpose(self), doc="The array with its axes reversed.")  # type: ignore[assignment]


install(ndarray)
