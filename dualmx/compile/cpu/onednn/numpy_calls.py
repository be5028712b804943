"""Convolutions of NumPy arrays by oneDNN, without XLA."""

from __future__ import annotations

import ctypes
import functools
import logging
from typing import Any

from .ffi_handlers import library

_MESSAGE_BYTES = 512  # of `handlers.c`


@functools.cache
def _compute() -> Any:
    compute = library().dualmx_onednn_compute
    compute.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p]
    compute.restype = None
    return compute


def convolve(text: bytes, first: Any, second: Any, out: Any) -> bool:
    """Compute what the text of a `ConvSpec` describes into `out`; False if oneDNN has no way to.

    The arrays are contiguous, aligned float32 of the sizes in the text. Other threads of Python run meanwhile.
    """
    message = ctypes.create_string_buffer(_MESSAGE_BYTES)
    addresses = (ctypes.c_void_p * 3)(first.ctypes.data, second.ctypes.data, out.ctypes.data)
    _compute()(text, len(text), addresses, message)
    if message.value:
        logging.getLogger("dualmx").info("%s: %s", text.decode(), message.value.decode(errors="replace"))
    return not message.value
