"""Zero-copy conversion between NDArrays and NumPy buffers."""

from __future__ import annotations

import jax
import numpy as np

from ..compile.devices import accepts_numpy, device_put_small, is_aligned, jax_from_numpy_nocopy
from ..core import np_mode
from ..core.context import Context, current_context
from . import NDArray
from .execute import array_from_buffer


def as_numpy_view(a: NDArray) -> np.ndarray:
    """Return the values of `a`, computed if they were pending; not to be written to. A copy where it must be one."""
    if a.is_sparse:
        return a.asnumpy()
    data = a._data
    if type(data) is np.ndarray:
        return data
    data = a._array() if data is None else data
    try:
        return np.asarray(memoryview(data))
    except (TypeError, ValueError, BufferError, jax.errors.JaxRuntimeError):
        pass  # a type that memory views lack, or the memory of an accelerator
    try:
        return np.from_dlpack(data)  # type: ignore[arg-type]
    except (RuntimeError, TypeError, ValueError, BufferError, AttributeError):
        return a.asnumpy()  # a type that NumPy lacks, or the memory of an accelerator


COPY_BELOW = 256 << 10  # bytes; a copy of so few takes less time than keeping the message that they came in


def from_numpy_nocopy(values: np.ndarray, ctx: Context) -> NDArray:
    """Return an array of aligned `values`, which nobody changes any more, without a copy where that saves time."""
    if accepts_numpy(values, ctx):
        if values.nbytes <= COPY_BELOW:
            return array_from_buffer(values.copy(), ctx)
        if is_aligned(values):
            return array_from_buffer(values, ctx)
    return array_from_buffer(
        device_put_small(values, ctx) if values.nbytes <= COPY_BELOW else jax_from_numpy_nocopy(values, ctx), ctx
    )


def assign_nocopy(a: NDArray, values: np.ndarray) -> None:
    """Make `a` hold aligned `values` of its shape, which nobody changes any more, cast to its dtype."""
    plain = a._meta is None and a._data is not None and values.nbytes <= COPY_BELOW and a._value.dtype == values.dtype
    if plain and accepts_numpy(values, a._value.ctx):
        a._data, a._trace = values.copy(), None
    else:
        from_numpy_nocopy(values, a.context).copyto(a)


def from_numpy_like(values: np.ndarray, a: NDArray) -> NDArray:
    """Return an array as `from_numpy_nocopy` does, on the context of `a` and under the rules that `a` follows."""
    return a._with_own_class(from_numpy_nocopy(values, a.context))


def new_array_nocopy(values: np.ndarray, ctx: Context | None) -> NDArray:
    """Return an array as `from_numpy_nocopy` does where there is none to be like; an `mx.np` one after `set_np()`."""
    made = from_numpy_nocopy(values, current_context() if ctx is None else ctx)
    return made.as_np_ndarray() if np_mode.array.get() else made


def from_borrowed_numpy(values: np.ndarray, ctx: Context) -> NDArray:
    """Return an array of `values` that operators alone read: programs take them where they lie.

    Nobody changes them before what was recorded has been computed.
    """
    return array_from_buffer(values, ctx) if values.itemsize < 8 else from_numpy_nocopy(values, ctx)


__all__ = [
    "as_numpy_view", "assign_nocopy", "from_borrowed_numpy", "from_numpy_like", "from_numpy_nocopy", "new_array_nocopy",
]  # fmt: skip
