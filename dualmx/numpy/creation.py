"""Create arrays from values, constants and ranges; float32 by default."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..core.argcheck import context as as_context
from ..core.argcheck import integer, number
from ..core.context import Context, current_context
from ..core.dtypes import arange_values, as_dtype, as_numbers
from ..core.errors import ArgumentError, ArgumentTypeError
from ..ndarray.handle import is_tracked
from ..ndarray.interop import array_from_numpy
from ..ndarray.ndarray import NDArray
from ..ndarray.recorder import local
from .call import as_array, c_order, call_op, shape_of, write_out
from .np_ndarray import as_np_class, ndarray


def _typed(values: onp.ndarray, dtype: Any, ctx: Any, out: Any = None, what: str = "") -> Any:
    wanted = as_dtype(onp.float32 if dtype is None else dtype)
    made = as_np_class(array_from_numpy(values.astype(wanted, copy=False), None if ctx is None else as_context(ctx)))
    return write_out(made, out, what)


def _plain(value: Any) -> Any:
    """Return nested sequences with the arrays in them as NumPy arrays."""
    if isinstance(value, NDArray):
        return value.asnumpy()
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def array(object: Any, dtype: Any = None, ctx: Context | None = None) -> ndarray:
    """Return an array with a copy of the values of `object`: an array, a number, or nested sequences of them.

    Args:
        object: values.
        dtype: element type; by default that of an array, float32 for everything else.
        ctx: where to put it, the current context by default.

    Raises:
        ArgumentTypeError: not array-like, or not numbers.

    Example:
        >>> import dualmx as mx
        >>> mx.np.array([[1, 2], [3, 4]])
        array([[1., 2.],
               [3., 4.]])
    """
    if isinstance(object, NDArray):
        where = current_context() if ctx is None else as_context(ctx)
        found = as_np_class(object.copyto(where) if where is not object.context else object.copy())
        return found if dtype is None else found.astype(dtype, copy=False)
    if isinstance(object, (onp.ndarray, onp.generic)) or type(object).__module__.startswith("jax"):
        return _typed(onp.asarray(object), object.dtype if dtype is None else dtype, ctx)
    if isinstance(object, (str, bytes, dict, set, type(None))):
        raise ArgumentTypeError(f"array: object of type {type(object).__name__} is not array-like")
    try:
        values = onp.array(_plain(object), dtype=None if dtype is None else as_dtype(dtype))
    except (ValueError, TypeError, OverflowError) as e:
        raise ArgumentTypeError(f"array: object is not a regular array of numbers: {e}") from None
    wanted = onp.float32 if dtype is None else dtype
    return _typed(as_numbers(values, wanted), wanted, ctx)


def zeros(shape: Any, dtype: Any = None, order: str = "C", ctx: Context | None = None) -> ndarray:
    """Return an array of zeros.

    Example:
        >>> import dualmx as mx
        >>> mx.np.zeros((0, 3))
        array([], shape=(0, 3))
    """
    c_order(order, "zeros")
    return _full(shape_of(shape, "zeros"), 0, dtype, ctx)


def ones(shape: Any, dtype: Any = None, order: str = "C", ctx: Context | None = None) -> ndarray:
    """Return an array of ones."""
    c_order(order, "ones")
    return _full(shape_of(shape, "ones"), 1, dtype, ctx)


def empty(shape: Any, dtype: Any = None, order: str = "C", ctx: Context | None = None) -> ndarray:
    """Return an array of zeros: there is no uninitialised memory."""
    c_order(order, "empty")
    return _full(shape_of(shape, "empty"), 0, dtype, ctx)


def _full(shape: tuple[int, ...], value: Any, dtype: Any, ctx: Any) -> ndarray:
    wanted = as_dtype(onp.float32 if dtype is None else dtype)
    try:
        return _typed(onp.full(shape, value, wanted), wanted, ctx)
    except (ValueError, MemoryError) as e:
        raise ArgumentError(f"shape={shape}: cannot be allocated: {e}") from None


def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", ctx: Context | None = None, out: Any = None
) -> ndarray:
    """Return an array filled with a number, or with an array that broadcasts to its shape.

    The dtype is that of an array, bool for bools and float32 for other numbers, unless given.

    Example:
        >>> import dualmx as mx
        >>> mx.np.full((2,), True)
        array([ True,  True])
    """
    c_order(order, "full")
    lengths = shape_of(shape, "full")
    if isinstance(fill_value, NDArray):
        found = call_op("_npi_broadcast_to", as_array(fill_value, "full", "fill_value"), shape=lengths)
        return write_out(found if dtype is None else found.astype(dtype, copy=False), out, "full")
    if dtype is None and isinstance(fill_value, (bool, onp.bool_)):
        dtype = "bool"
    return write_out(_full(lengths, fill_value, dtype, ctx), out, "full")


def _like(a: Any, what: str, value: Any, dtype: Any, order: str, ctx: Any, out: Any) -> ndarray:
    c_order(order, what)
    like = as_array(a, what)
    wanted = like.aval.dtype if dtype is None else as_dtype(dtype)
    if local.recording and is_tracked(like) and out is None and what != "empty_like":
        # `backward` may begin at the result, which has a gradient of zeros.
        return call_op("_npi_full_like", like, fill_value=float(value), dtype=wanted.name)
    return write_out(_full(like.shape, onp.asarray(value).astype(wanted), wanted, ctx or like.context), out, what)


def zeros_like(a: Any, dtype: Any = None, order: str = "C", ctx: Context | None = None, out: Any = None) -> ndarray:
    """Return zeros in the shape and, unless given, the dtype of `a`."""
    return _like(a, "zeros_like", 0, dtype, order, ctx, out)


def ones_like(a: Any, dtype: Any = None, order: str = "C", ctx: Context | None = None, out: Any = None) -> ndarray:
    """Return ones in the shape and, unless given, the dtype of `a`."""
    return _like(a, "ones_like", 1, dtype, order, ctx, out)


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "C", ctx: Context | None = None, out: Any = None
) -> ndarray:
    """Return an array filled with a number in the shape and, unless given, the dtype of `a`."""
    return _like(a, "full_like", number("full_like", "fill_value", fill_value), dtype, order, ctx, out)


def empty_like(prototype: Any, dtype: Any = None, order: str = "C", subok: bool = False, shape: Any = None) -> ndarray:
    """Return zeros in the shape and, unless given, the dtype of `prototype`."""
    if shape is not None:
        return zeros(shape, prototype.dtype if dtype is None else dtype, order)
    return _like(prototype, "empty_like", 0, dtype, order, None, None)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, ctx: Context | None = None) -> ndarray:
    """Return `start, start + step, …` below `stop`; `arange(n)` counts from 0.

    Example:
        >>> import dualmx as mx
        >>> mx.np.arange(3)
        array([0., 1., 2.])
    """
    for name, value in (("start", start), ("stop", 0 if stop is None else stop), ("step", 1 if step is None else step)):
        number("arange", name, value)
    if step == 0:
        raise ArgumentError("arange: step=0: expected another number")
    if stop is None:
        start, stop = 0, start
    step = 1.0 if step is None else float(step)
    return _typed(arange_values(float(start), float(stop), step, as_dtype(dtype or "float32")), dtype, ctx)


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
    axis: int = 0, ctx: Context | None = None,
) -> Any:  # fmt: skip
    """Return `num` evenly spaced values from `start` to `stop` (which is left out without `endpoint`)."""
    if isinstance(start, (list, onp.ndarray, NDArray)) or isinstance(stop, (list, onp.ndarray, NDArray)) or axis != 0:
        values, step = onp.linspace(_plain(start), _plain(stop), num, endpoint, retstep=True, axis=axis)
    else:
        number("linspace", "start", start)
        number("linspace", "stop", stop)
        values, step = onp.linspace(start, stop, integer("linspace", "num", num, 0), endpoint, retstep=True)
    made = _typed(values, dtype, ctx)
    return (made, step) if retstep else made


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: float = 10.0, dtype: Any = None, axis: int = 0,
    ctx: Context | None = None,
) -> ndarray:  # fmt: skip
    """Return `base` to the power of `num` evenly spaced values from `start` to `stop`."""
    return _typed(onp.logspace(start, stop, integer("logspace", "num", num, 0), endpoint, base, axis=axis), dtype, ctx)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, **kwargs: Any) -> ndarray:
    """Return a matrix with ones on diagonal `k`; square without `M`."""
    ctx = kwargs.pop("ctx", None)
    c_order(kwargs.pop("order", "C"), "eye")
    if kwargs:
        raise ArgumentTypeError(f"eye: unexpected argument {next(iter(kwargs))!r}")
    columns = None if M is None else integer("eye", "M", M, 0)
    return _typed(onp.eye(integer("eye", "N", N, 0), columns, integer("eye", "k", k)), dtype, ctx)


def identity(n: int, dtype: Any = None, ctx: Context | None = None) -> ndarray:
    """Return the n×n identity matrix."""
    return _typed(onp.identity(integer("identity", "n", n, 0)), dtype, ctx)


def indices(dimensions: Any, dtype: Any = onp.int32, ctx: Context | None = None) -> ndarray:
    """Return the coordinates of every element of an array of these dimensions: (k, d1, …, dk)."""
    if not isinstance(dimensions, (tuple, list)):
        raise ArgumentTypeError(f"indices: dimensions={dimensions!r}: expected a tuple of ints")
    return _typed(onp.indices(shape_of(dimensions, "indices")), dtype or onp.int32, ctx)


def _window(name: str, M: Any, dtype: Any, ctx: Any) -> ndarray:
    return _typed(getattr(onp, name)(integer(name, "M", M)), dtype, ctx)


def hanning(M: int, dtype: Any = onp.float32, ctx: Context | None = None) -> ndarray:
    """Return the Hann window of `M` points: 0.5 - 0.5 cos(2 pi n / (M - 1))."""
    return _window("hanning", M, dtype, ctx)


def hamming(M: int, dtype: Any = onp.float32, ctx: Context | None = None) -> ndarray:
    """Return the Hamming window of `M` points: 0.54 - 0.46 cos(2 pi n / (M - 1))."""
    return _window("hamming", M, dtype, ctx)


def blackman(M: int, dtype: Any = onp.float32, ctx: Context | None = None) -> ndarray:
    """Return the Blackman window of `M` points: 0.42 - 0.5 cos(2 pi n / (M - 1)) + 0.08 cos(4 pi n / (M - 1))."""
    return _window("blackman", M, dtype, ctx)


def copy(a: Any, out: Any = None) -> ndarray:
    """Return a copy of `a`."""
    return write_out(as_array(a, "copy").copy(), out, "copy")


__all__ = [
    "arange", "array", "blackman", "copy", "empty", "empty_like", "eye", "full", "full_like", "hamming",
    "hanning", "identity", "indices", "linspace", "logspace", "ones", "ones_like", "zeros", "zeros_like",
]  # fmt: skip
