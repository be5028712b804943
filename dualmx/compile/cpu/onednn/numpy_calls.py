"""Convolutions and products of NumPy arrays by oneDNN, without XLA."""

from __future__ import annotations

import ctypes
import functools
import logging
from typing import Any

import numpy as np

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


@functools.cache
def _sgemm() -> Any:
    sgemm = bindings.library().dnnl_sgemm
    size, array, real = ctypes.c_int64, ctypes.c_void_p, ctypes.c_float
    matrix = [array, size]
    sgemm.argtypes = [*[ctypes.c_char] * 2, *[size] * 3, real, *matrix, *matrix, real, *matrix]
    return sgemm


def multiply(x: Any, y: Any) -> Any:
    """Return the product of two matrices of float32, by as many threads as are worth it."""
    x, x_form, x_step = _rows(x)
    y, y_form, y_step = _rows(y)
    (m, k), n = x.shape, y.shape[1]
    out = np.empty((m, n), np.float32)
    matrices = (x.ctypes.data, x_step, y.ctypes.data, y_step)
    status = _sgemm()(x_form, y_form, m, n, k, 1.0, *matrices, 0.0, out.ctypes.data, n)
    return np.matmul(x, y) if status else out


def _rows(x: Any) -> tuple[Any, bytes, int]:
    """A matrix, copied if its rows or columns do not lie in one piece, whether it is transposed, and the step."""
    (rows, columns), (down, across) = x.shape, x.strides
    if x.flags.aligned:
        if across == 4 and down % 4 == 0 and down >= 4 * columns:
            return x, b"N", down // 4
        if down == 4 and across % 4 == 0 and across >= 4 * rows:
            return x, b"T", across // 4
    return np.array(x, order="C"), b"N", columns
