"""Arrays and NumPy buffers that look at the same memory, so that what is sent and received is not copied on the way."""

from __future__ import annotations

import jax
import numpy as np

from ..compile.devices import adopted, copied, is_aligned, takes_memory
from ..core import np_mode
from ..core.context import Context, current_context
from ..ndarray import NDArray
from ..ndarray.flush import concrete


def looked_at(a: NDArray) -> np.ndarray:
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


SMALL = 256 << 10  # bytes; a copy of so few takes less time than keeping the message that they came in


def given(values: np.ndarray, ctx: Context) -> NDArray:
    """Return an array of aligned `values`, which nobody changes any more, without a copy where that saves time."""
    if takes_memory(values, ctx):
        if values.nbytes <= SMALL:
            return concrete(values.copy(), ctx)
        if is_aligned(values):
            return concrete(values, ctx)
    return concrete(copied(values, ctx) if values.nbytes <= SMALL else adopted(values, ctx), ctx)


def given_to(a: NDArray, values: np.ndarray) -> None:
    """Make `a` hold aligned `values` of its shape, which nobody changes any more, cast to its dtype."""
    plain = a._x is None and a._data is not None and values.nbytes <= SMALL and a._v.dtype == values.dtype
    if plain and takes_memory(values, a._v.ctx):
        a._data, a._tr = values.copy(), None
    else:
        given(values, a.context).copyto(a)


def like(values: np.ndarray, a: NDArray) -> NDArray:
    """Return an array as `given` does, on the context of `a` and under the rules that `a` follows."""
    return a._like_own(given(values, a.context))


def fresh(values: np.ndarray, ctx: Context | None) -> NDArray:
    """Return an array as `given` does where there is none to be like: `mx.np` arrays after `npx.set_np()`."""
    made = given(values, current_context() if ctx is None else ctx)
    return made.as_np_ndarray() if np_mode.array.get() else made


def lent(values: np.ndarray, ctx: Context) -> NDArray:
    """Return an array of `values` that operators alone read: programs take them where they lie.

    Nobody changes them before what was recorded has been computed.
    """
    return concrete(values, ctx) if values.itemsize < 8 else given(values, ctx)


__all__ = ["fresh", "given", "given_to", "lent", "like", "looked_at"]
