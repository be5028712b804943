"""Split batches over contexts, and clip gradients."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import autograd
from ..compile.devices import Mesh
from ..core import np_mode
from ..core.argcheck import context as as_context
from ..core.argcheck import integer
from ..core.context import Context
from ..core.errors import ArgumentError, ArgumentTypeError
from ..namespace import nd
from ..ndarray import NDArray
from ..ndarray.handle import is_tracked
from ..ndarray.sharding import shard
from ..sparse import BaseSparseNDArray
from .pytree import with_class_of, with_default_class


def split_data(data: NDArray, num_slice: int, batch_axis: int = 0, even_split: bool = True) -> list[NDArray]:
    """Split an array into `num_slice` parts along `batch_axis`.

    Args:
        data: any shape.
        num_slice: number of parts.
        batch_axis: the axis that is cut.
        even_split: require parts of equal size; otherwise the first parts are one longer.

    Returns:
        The parts, in order.

    Raises:
        ArgumentError: the axis cannot be cut this way.

    Example:
        >>> import dualmx as mx
        >>> [part.shape for part in split_data(mx.nd.ones((7, 2)), 3, even_split=False)]
        [(3, 2), (2, 2), (2, 2)]
    """
    num_slice = integer("split_data", "num_slice", num_slice, 1)
    ends = _part_ends(data.shape, num_slice, batch_axis, even_split)
    if num_slice == 1:
        return [data]
    parts = [
        data[begin:end] if batch_axis == 0 else nd.slice_axis(data, axis=batch_axis, begin=begin, end=end)
        for begin, end in zip([0, *ends], ends, strict=False)
    ]
    return with_class_of(data, parts)


def _part_ends(shape: tuple[int, ...], num_slice: int, batch_axis: int, even_split: bool) -> list[int]:
    """Where the parts of an array end along `batch_axis`."""
    if not -len(shape) <= batch_axis < len(shape):
        raise ArgumentError(f"split_data: batch_axis={batch_axis}: expected an axis of shape {shape}")
    size = shape[batch_axis]
    if even_split and size % num_slice:
        raise ArgumentError(
            f"split_data: shape {shape} cannot be cut evenly into {num_slice} slices along axis {batch_axis}; "
            f"use a batch size that is a multiple of {num_slice}, or even_split=False"
        )
    step, longer = divmod(size, num_slice)
    return [step * (i + 1) + min(i + 1, longer) for i in range(num_slice)]


def split_and_load(data: Any, ctx_list: list[Context], batch_axis: int = 0, even_split: bool = True) -> list[NDArray]:
    """Split an array along `batch_axis` and put one part on each context.

    Args:
        data: an NDArray, a NumPy array or nested lists.
        ctx_list: contexts, one per part; or one `parallel.Mesh`, over whose first axis one array is cut.
        batch_axis, even_split: see `split_data`.

    Raises:
        ArgumentError: the axis cannot be cut this way. ArgumentTypeError: `ctx_list` is no list of contexts.
    """
    if not isinstance(ctx_list, Iterable) or isinstance(ctx_list, str):
        raise ArgumentTypeError(f"split_and_load: ctx_list={ctx_list!r}: expected a list of contexts")
    ctx_list = [as_context(c) for c in ctx_list]
    if not ctx_list:
        raise ArgumentError("split_and_load: ctx_list=[]: expected at least one context")
    if len(ctx_list) == 1 and isinstance(ctx_list[0], Mesh):
        return [_load_sharded(data, ctx_list[0], batch_axis)]
    if len(ctx_list) == 1:
        if isinstance(data, NDArray):
            return [data.as_in_context(ctx_list[0])]
        return with_default_class([nd.array(data, ctx=ctx_list[0], dtype=_dtype_of(data))])
    if (
        isinstance(data, NDArray)
        and data.context.device_type == "cpu"
        and not (data.is_sparse or (autograd.is_recording() and is_tracked(data)))
    ):
        return with_class_of(data, _load_parts(data.asnumpy(), ctx_list, batch_axis, even_split, data.dtype))
    if isinstance(data, np.ndarray):
        return with_default_class(_load_parts(data, ctx_list, batch_axis, even_split, _dtype_of(data)))
    if not isinstance(data, NDArray):
        data = with_default_class(nd.array(data, ctx=ctx_list[0]))
    parts = split_data(data, len(ctx_list), batch_axis, even_split)
    return [part.as_in_context(ctx) for part, ctx in zip(parts, ctx_list, strict=True)]


def _dtype_of(data: Any) -> Any:
    """The dtype of arrays made from NumPy's: their own after `npx.set_np()`, float32 before."""
    return data.dtype if isinstance(data, np.ndarray) and np_mode.array.get() else "float32"


def _load_sharded(data: Any, mesh: Mesh, batch_axis: int) -> NDArray:
    """Shard an array along `batch_axis` over the first axis of a mesh."""
    if not isinstance(data, NDArray):
        data = with_default_class(nd.array(data, dtype=_dtype_of(data)))
    spec: list[Any] = [None] * data.ndim
    spec[batch_axis] = next(iter(mesh.axes))
    return shard(data, spec, mesh)


def _load_parts(host: Any, ctx_list: list[Context], batch_axis: int, even_split: bool, dtype: Any) -> list[NDArray]:
    """Split an array in host memory, where it needs no program, and put each part on its context."""
    ends = _part_ends(host.shape, len(ctx_list), batch_axis, even_split)
    leading = (slice(None),) * (batch_axis % host.ndim)
    return [
        nd.array(host[(*leading, slice(begin, end))], ctx=ctx, dtype=dtype)
        for begin, end, ctx in zip([0, *ends], ends, ctx_list, strict=False)
    ]


def _sum_of_squares(array: NDArray) -> NDArray:
    wide = array.astype("float32")
    return nd.square(nd.norm(wide)) if array.is_sparse else nd.sum(nd.square(wide))


def clip_global_norm(arrays: Iterable[NDArray], max_norm: float, check_isfinite: bool = True) -> Any:
    """Scale arrays in place so that the Euclidean norm of all of them together is at most `max_norm`.

    Args:
        arrays: float arrays, possibly on several contexts.
        max_norm: upper bound.
        check_isfinite: return a Python float and warn about a norm that is not finite, which waits for the arrays;
            otherwise return an array of shape (1,) without waiting.

    Returns:
        The norm before scaling.

    Raises:
        ArgumentError: no arrays. ArgumentTypeError: something is not an NDArray.
    """
    arrays = list(arrays)
    if not arrays:
        raise ArgumentError("clip_global_norm: got no arrays")
    for i, array in enumerate(arrays):
        if not isinstance(array, NDArray):
            raise ArgumentTypeError(f"clip_global_norm: arrays[{i}]={array!r}: expected an NDArray")
    ctx = arrays[0].context
    squares = [_sum_of_squares(a).as_in_context(ctx) for a in arrays]
    norm = nd.sqrt(nd.add_n(*squares))
    scale = nd.minimum(max_norm / (norm + 1e-8), 1.0)
    result: Any = norm
    if check_isfinite:
        result = float(norm.asscalar())
        if not math.isfinite(result):
            warnings.warn("clip_global_norm: nan or inf is detected. Clipping results will be undefined.", stacklevel=2)
    for array in arrays:
        factor = scale.astype(array.dtype).as_in_context(array.context)
        if isinstance(array, BaseSparseNDArray):
            array.scale(factor)
            continue
        array[:] = nd.broadcast_mul(array.reshape((-1,)), factor).reshape(array.shape)
    return result
