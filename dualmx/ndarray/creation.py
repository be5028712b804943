"""Create arrays from values, constants and ranges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ..compile.devices import accepts_numpy, aligned_empty, context_of, device_of, device_put
from ..core import np_mode
from ..core.argcheck import DType, Shape, integer, number, require_instance
from ..core.argcheck import context as as_context
from ..core.context import Context, current_context
from ..core.dtypes import arange_values, as_dtype, as_numbers
from ..core.errors import ArgumentError, ArgumentTypeError
from ..op.registry import OPS
from .exchange import adopt, is_host
from .exposed import protect
from .handle import array_from_buffer, invoke, invoke_nullary, invoke_out
from .interop import array_from_numpy
from .ndarray import NDArray
from .recorder import engine, local
from .storage import sparse_storage


def array(source_array: Any, ctx: Context | None = None, dtype: DType | None = None) -> NDArray:
    """Return an array with the values of `source_array` (an NDArray, NumPy or JAX array, or nested sequence).

    Args:
        source_array: values; sparse arrays and SciPy matrices stay sparse, text and objects that are numbers are
            converted, None among them to NaN.
        ctx: where to put it, the current context by default; a JAX source stays on its device.
        dtype: element type; by default that of an NDArray or JAX source, float32 for everything else.

    Raises:
        ArgumentTypeError: the source is not array-like, or its elements are not numbers.

    Example:
        >>> array([[1, 2]]).shape
        (1, 2)
    """
    sparse = sparse_storage().of_source(source_array, ctx, dtype)
    if sparse is not None:
        return sparse
    if isinstance(source_array, NDArray):
        # Arrays with other rules become classic ones, so their own methods are not asked.
        made = NDArray.as_in_context(source_array, current_context() if ctx is None else ctx)
        return NDArray.astype(made, dtype) if dtype is not None else NDArray.copy(made)
    if isinstance(source_array, jax.Array):
        return from_jax(source_array, ctx, dtype, copy=True)
    if isinstance(source_array, (str, bytes, dict, set, type(None))):
        raise ArgumentTypeError(f"array: source_array of type {type(source_array).__name__} is not array-like")
    try:
        values = np.asarray(source_array)
    except ValueError as e:
        raise ArgumentTypeError(f"array: source_array is not a regular array: {e}") from None
    return array_from_numpy(as_numbers(values, np.float32 if dtype is None else dtype), ctx)


def from_jax(value: jax.Array, ctx: Context | None = None, dtype: Any = None, copy: bool = False) -> NDArray:
    """Return an array that shares the immutable `value`; its context is that of the value's device by default."""
    where = context_of(value) if ctx is None else as_context(ctx)
    if len(value.sharding.device_set) == 1 and (copy or device_of(where) not in value.devices()):
        value = device_put(value, where)
    made = array_from_buffer(protect(value), where)
    return made if dtype is None else made.astype(dtype, copy=False)


def from_numpy(ndarray: np.ndarray, zero_copy: bool = True, array_cls: type = NDArray) -> NDArray:
    """Return an array with the values and dtype of a NumPy array.

    Args:
        ndarray: the source.
        zero_copy: share its memory, in the processor's memory: `ndarray` becomes read-only, and what is written to the
            result, or to the memory by other ways, is seen on both sides. Without it, or on a mesh, values are copied.
        array_cls: class of the result.

    Raises:
        ArgumentTypeError: not a NumPy array of numbers, or a class that is not of arrays.
        ArgumentError: `zero_copy`, and the elements do not lie in memory one after the other.

    Example:
        >>> values = np.array([1, 2])
        >>> x = from_numpy(values)
        >>> x[0] = 5
        >>> x.dtype, values.tolist()
        (<class 'numpy.int64'>, [5, 2])
    """
    if not isinstance(ndarray, np.ndarray):
        raise ArgumentTypeError(f"from_numpy: ndarray of type {type(ndarray).__name__}: expected a numpy.ndarray")
    if not (isinstance(array_cls, type) and issubclass(array_cls, NDArray)):
        raise ArgumentTypeError(f"from_numpy: array_cls={array_cls!r}: expected NDArray or a class derived from it")
    as_dtype(ndarray.dtype)
    where = current_context()
    if zero_copy and where.mesh is None:
        if not ndarray.flags.c_contiguous:
            raise ArgumentError(
                f"from_numpy: ndarray of shape {ndarray.shape} has strides {ndarray.strides}: zero_copy=True expects "
                "elements in C order; use zero_copy=False or numpy.ascontiguousarray"
            )
        made = adopt(ndarray.view(np.ndarray), where if is_host(where) else Context("cpu", 0))
        ndarray.flags.writeable = False
    else:
        made = array_from_numpy(ndarray)
    if array_cls is not NDArray:
        made.__class__ = array_cls
    return made


def to_dlpack_for_read(data: NDArray) -> Any:
    """Return a DLPack capsule of the memory of `data`; see `NDArray.to_dlpack_for_read`."""
    return data.to_dlpack_for_read()


def to_dlpack_for_write(data: NDArray) -> Any:
    """Return a DLPack capsule of the memory of `data`, to be written to; see `NDArray.to_dlpack_for_write`."""
    return data.to_dlpack_for_write()


def _shape(shape: Any, what: str) -> tuple[int, ...]:
    """Return a creation shape: positive lengths, or any under NumPy semantics."""
    if isinstance(shape, (int, np.integer)):
        shape = (shape,)
    try:
        found = tuple(int(n) for n in shape)
    except (TypeError, ValueError):
        raise ArgumentError(f"{what}: shape={shape!r}: expected an int or a tuple of ints") from None
    if np_mode.shape.get() and all(n >= 0 for n in found):
        return found
    if not found or any(n <= 0 for n in found):
        raise ArgumentError(f"{what}: shape={found}: expected at least one axis and positive lengths")
    return found


def _run_creation_op(call: Any, ctx: Context | None, out: NDArray | None) -> NDArray:
    if out is not None:
        invoke_out(call, (), (out,))
        return out
    where = as_context(ctx) if ctx is not None else current_context()
    if not local.recording and not engine.naive:
        # Made at once, it is an input of the programs that use it: the first step of a loop, which makes optimizer
        # states, is then the same program as the others.
        fill, dtype = call.op.traits.fill(call.params), as_dtype(call.params.get("dtype"))
        try:
            is_zero = fill == 0 and not np.signbit(fill)
            values = aligned_empty(call.params["shape"], dtype, is_zero)
            if not is_zero:
                np.copyto(values, fill, casting="unsafe")
        except (ValueError, MemoryError) as e:
            name, shape = call.op.name.lstrip("_"), call.params["shape"]
            raise ArgumentError(f"{name}: shape={shape}: cannot be allocated: {e}") from None
        if not accepts_numpy(values, where):
            return array_from_numpy(values, where)
        values.flags.writeable = False
        return array_from_buffer(values, where)
    return invoke_nullary(call, where)[0]


def zeros(
    shape: Shape,
    ctx: Context | None = None,
    dtype: DType | None = None,
    stype: str | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Return an array of zeros, float32 by default.

    Example:
        >>> zeros((1, 2)).asnumpy().tolist()
        [[0.0, 0.0]]
    """
    if stype not in (None, "default"):
        return sparse_storage().zeros(stype, shape, ctx, dtype)
    return _run_creation_op(OPS["_zeros"].call(shape=_shape(shape, "zeros"), dtype=_name(dtype)), ctx, out)


def ones(shape: Shape, ctx: Context | None = None, dtype: DType | None = None, out: NDArray | None = None) -> NDArray:
    """Return an array of ones, float32 by default."""
    return _run_creation_op(OPS["_ones"].call(shape=_shape(shape, "ones"), dtype=_name(dtype)), ctx, out)


def full(
    shape: Shape, val: float, ctx: Context | None = None, dtype: DType | None = None, out: NDArray | None = None
) -> NDArray:
    """Return an array filled with `val`, float32 by default.

    Example:
        >>> full((2,), 7, dtype="int32").asnumpy().tolist()
        [7, 7]
    """
    return _run_creation_op(OPS["_full"].call(shape=_shape(shape, "full"), value=val, dtype=_name(dtype)), ctx, out)


def empty(shape: Shape, ctx: Context | None = None, dtype: DType | None = None, stype: str | None = None) -> NDArray:
    """Return an array of zeros: there is no uninitialised memory."""
    return zeros(shape, ctx, dtype, stype)


def _name(dtype: Any) -> str:
    return as_dtype(np.float32 if dtype is None else dtype).name


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: bool | None = None,
    ctx: Context | None = None,
    dtype: DType | None = "float32",
) -> NDArray:
    """Return `start, start + step, …` below `stop` (`arange(n)` counts from 0), each value `repeat` times.

    Example:
        >>> arange(3, repeat=2).asnumpy().tolist()
        [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]
    """
    if stop is None:
        start, stop = 0, start
    for name, value in (("start", start), ("stop", stop), ("step", step)):
        if not math.isfinite(number("arange", name, value)):
            raise ArgumentError(f"arange: {name}={value}: expected a finite number")
    repeat = integer("arange", "repeat", repeat, 1)
    if step == 0 or not math.isfinite(step):
        raise ArgumentError(f"arange: step={step}: expected a finite number other than 0")
    if (stop - start) / step <= 0:
        raise ArgumentError(f"arange: no values from {start} to {stop} by {step}")
    dtype = as_dtype(dtype or "float32")
    return array_from_numpy(np.repeat(arange_values(start, stop, step, dtype), repeat).astype(dtype), ctx)


def linspace(
    start: float,
    stop: float,
    num: int,
    endpoint: bool = True,
    ctx: Context | None = None,
    dtype: DType | None = "float32",
) -> NDArray:
    """Return `num` evenly spaced values from `start` to `stop`.

    Example:
        >>> linspace(0, 1, 3).asnumpy().tolist()
        [0.0, 0.5, 1.0]
    """
    number("linspace", "start", start)
    number("linspace", "stop", stop)
    num = integer("linspace", "num", num, 0)
    return array_from_numpy(np.linspace(start, stop, num, endpoint).astype(as_dtype(dtype or "float32")), ctx)


def eye(N: int, M: int = 0, k: int = 0, ctx: Context | None = None, dtype: DType | None = None) -> NDArray:
    """Return a matrix with ones on diagonal `k`; square if `M` is 0.

    Example:
        >>> eye(2, 3, 1).asnumpy().tolist()
        [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    rows, columns = integer("eye", "N", N, 1), integer("eye", "M", M, 0)
    return array_from_numpy(np.eye(rows, columns or None, integer("eye", "k", k)).astype(as_dtype(_name(dtype))), ctx)


def concatenate(arrays: Sequence[NDArray], axis: int = 0, always_copy: bool = True) -> NDArray:
    """Join arrays along `axis`.

    Example:
        >>> concatenate([ones((1, 2)), zeros((2, 2))]).asnumpy().tolist()
        [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
    """
    arrays = list(arrays)
    if not arrays:
        raise ArgumentError("concatenate: arrays=[]: expected at least one array")
    for i, a in enumerate(arrays):
        require_instance("concatenate", f"arrays[{i}]", a, NDArray, "an NDArray")
    if len(arrays) == 1 and not always_copy:
        return arrays[0]
    call = OPS["Concat"].call(dim=axis, num_args=len(arrays))
    return invoke(call, list(arrays))[0]


def moveaxis(tensor: NDArray, source: Any, destination: Any) -> NDArray:
    """Move axes to new positions, as `numpy.moveaxis`.

    Example:
        >>> moveaxis(zeros((2, 3, 4)), 0, -1).shape
        (3, 4, 2)
    """
    require_instance("moveaxis", "tensor", tensor, NDArray, "an NDArray")
    try:
        order = np.moveaxis(np.empty(tuple(range(1, tensor.ndim + 1))), source, destination).shape
    except (ValueError, TypeError) as e:
        raise ArgumentError(f"moveaxis: source={source!r}, destination={destination!r}: {e}") from None
    return invoke(OPS["transpose"].call(axes=tuple(n - 1 for n in order)), (tensor,))[0]


def onehot_encode(indices: NDArray, out: NDArray) -> NDArray:
    """Write one-hot rows of `indices` to `out` of shape (n, depth).

    Example:
        >>> onehot_encode(array([1, 0]), zeros((2, 3))).asnumpy().tolist()
        [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    require_instance("onehot_encode", "indices", indices, NDArray, "an NDArray")
    require_instance("onehot_encode", "out", out, NDArray, "an NDArray")
    invoke_out(OPS["one_hot"].call(depth=out.shape[1]), (indices,), (out,))
    return out
