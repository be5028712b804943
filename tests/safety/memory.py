"""Arrays with a page beside them that nobody may touch."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

PAGE = mmap.PAGESIZE
ALIGNMENT = 64  # bytes, as XLA wants the memory that it takes without a copy
_protect = ctypes.CDLL(None, use_errno=True).mprotect
_protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def guarded(values: np.ndarray, before: bool = False) -> np.ndarray:
    """Return a copy that ends at a page whose reading or writing kills the process, or begins behind one.

    Its start is aligned, so up to 63 bytes may lie between its end and that page. The mapping goes with the last
    reference to the copy, so that who comes too late dies as well.
    """
    pages = -(-max(values.nbytes, 1) // PAGE)
    mapping = mmap.mmap(-1, (pages + 1) * PAGE)
    everything = np.frombuffer(mapping, np.uint8)
    forbidden = everything.ctypes.data + (0 if before else pages * PAGE)
    if _protect(forbidden, PAGE, 0):
        raise OSError(ctypes.get_errno(), "mprotect")
    start = PAGE if before else (pages * PAGE - values.nbytes) // ALIGNMENT * ALIGNMENT
    copy = everything[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    copy[...] = values
    copy.flags.writeable = False
    return copy
