"""Conversion between NDArrays and NumPy arrays."""

from __future__ import annotations

import jax
import numpy as np

from ..compile.devices import (
    accepts_numpy,
    aligned_copy,
    device_put,
    device_put_small,
    is_aligned,
    jax_from_numpy_nocopy,
)
from ..core import np_mode
from ..core.argcheck import context as as_context
from ..core.context import Context, current_context
from .handle import array_from_buffer
from .ndarray import NDArray

COPY_BELOW_BYTES = 256 << 10  # a copy of so few takes less time than keeping the message that they came in


def as_numpy_view(a: NDArray) -> np.ndarray:
    """Return the values of `a`, computed if they were pending; not to be written to. A copy where it must be one."""
    if a.is_sparse:
        return a.asnumpy()
    data = a._data
    if type(data) is np.ndarray:
        return data
    data = a.realize() if data is None else data
    try:
        return np.asarray(memoryview(data))
    except (TypeError, ValueError, BufferError, jax.errors.JaxRuntimeError):
        pass  # a type that memory views lack, or the memory of an accelerator
    try:
        return np.from_dlpack(data)  # type: ignore[arg-type]
    except (RuntimeError, TypeError, ValueError, BufferError, AttributeError):
        return a.asnumpy()  # a type that NumPy lacks, or the memory of an accelerator


def array_from_numpy(
    values: np.ndarray, ctx: Context | None = None, *, like: NDArray | None = None, copy: bool | None = True
) -> NDArray:
    """Return an array of NumPy `values`, dtype kept.

    Args:
        values: an array of numbers.
        ctx: where the array is; the current context by default.
        like: instead of `ctx`, an array whose context and class the result has.
        copy: True for memory of its own. Otherwise nobody changes `values` any more, and None copies where that is
            needed or saves time, False only where programs cannot take the memory where it lies.

    Example:
        >>> array_from_numpy(np.arange(3)).dtype
        <class 'numpy.int64'>
    """
    if like is not None:
        return like.wrap_array(array_from_numpy(values, like.context, copy=copy))
    where = current_context() if ctx is None else as_context(ctx)
    takes = accepts_numpy(values, where)
    if copy:
        return array_from_buffer(aligned_copy(values) if takes else device_put(values, where), where)
    if copy is False and values.itemsize < 8:
        return array_from_buffer(values, where)
    if values.nbytes <= COPY_BELOW_BYTES:
        return array_from_buffer(values.copy() if takes else device_put_small(values, where), where)
    if takes and is_aligned(values):
        return array_from_buffer(values, where)
    return array_from_buffer(jax_from_numpy_nocopy(values, where), where)


def with_mode_class(a: NDArray) -> NDArray:
    """Return a new array as the class that users expect: an `mx.np` one after `set_np()`."""
    return a.as_np_ndarray() if np_mode.array.get() else a


def assign_numpy(a: NDArray, values: np.ndarray) -> None:
    """Make `a` hold aligned `values` of its shape, which nobody changes any more, cast to its dtype."""
    held = a._data
    is_plain = a._meta is None and held is not None and a._value.dtype == values.dtype
    # Where an array has such memory already, programs take it.
    if (
        is_plain
        and values.nbytes <= COPY_BELOW_BYTES
        and (type(held) is np.ndarray or accepts_numpy(values, a._value.ctx))
    ):
        a._data, a._trace = values.copy(), None
    else:
        array_from_numpy(values, a.context, copy=None).copyto(a)


__all__ = ["array_from_numpy", "as_numpy_view", "assign_numpy", "with_mode_class"]
