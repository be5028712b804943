"""Convolutions of NumPy arrays by oneDNN, without XLA."""

from __future__ import annotations

import ctypes
import functools
import logging
from typing import Any

from . import bindings
from .ffi_handlers import library

_MESSAGE_BYTES = 512  # of `handlers.c`


@functools.cache
def _compute() -> Any:
    compute = library().dualmx_onednn_compute
    compute.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p]
    compute.restype = None
    return compute


@functools.cache
def _openmp() -> Any:
    return bindings.library()  # which is linked to it


def convolve(text: bytes, first: Any, second: Any, out: Any, is_small: bool) -> bool:
    """Compute what the text of a `ConvSpec` describes into `out`; False if oneDNN has no way to.

    The arrays are contiguous, aligned float32 of the sizes in the text. Other threads of Python run meanwhile. What is
    small is computed by one thread: on a busy machine others may come late.
    """
    message = ctypes.create_string_buffer(_MESSAGE_BYTES)
    addresses = (ctypes.c_void_p * 3)(first.ctypes.data, second.ctypes.data, out.ctypes.data)
    if is_small:  # the number is that of this thread
        openmp = _openmp()
        threads = openmp.omp_get_max_threads()
        openmp.omp_set_num_threads(1)
        _compute()(text, len(text), addresses, message)
        openmp.omp_set_num_threads(threads)
    else:
        _compute()(text, len(text), addresses, message)
    if message.value:
        logging.getLogger("dualmx").info("%s: %s", text.decode(), message.value.decode(errors="replace"))
    return not message.value
