"""Pool of page-aligned buffers, reused when their arrays are freed: faulting in pages costs more than filling them."""

from __future__ import annotations

import mmap
import threading
import weakref
from collections import deque

import numpy as np

from ..core import process

MIN_BYTES = 1 << 20
MAX_KEPT_BYTES = 1 << 30  # most bytes that rest
_PAGE_BYTES = 2 << 20


class BufferPool:
    """Blocks of memory, aligned to pages.

    Example:
        >>> pool = BufferPool()
        >>> a = pool.empty((1 << 20,), np.dtype("float32"))
        >>> where = a.ctypes.data
        >>> del a
        >>> pool.empty((1024, 1024), np.dtype("float32")).ctypes.data == where
        True
    """

    def __init__(self) -> None:
        self._free: deque[mmap.mmap] = deque()  # those that were used last at the right
        self._held: dict[int, tuple[weakref.ref[np.ndarray], mmap.mmap]] = {}
        self._dropped: deque[int] = deque()  # filled by the garbage collector, which takes no lock
        self._numbers = iter(range(1 << 62))
        self._lock = threading.Lock()

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Return an array without values."""
        size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        if size < MIN_BYTES:
            return np.empty(shape, dtype)
        taken = self._take(-(-size // _PAGE_BYTES) * _PAGE_BYTES)
        block = np.frombuffer(taken, np.uint8, size)
        number = next(self._numbers)
        self._held[number] = (weakref.ref(block, lambda _: self._dropped.append(number)), taken)
        return block.view(dtype).reshape(shape)

    def _take(self, size: int) -> mmap.mmap:
        with self._lock:
            while self._dropped:
                released = self._held.pop(self._dropped.popleft())[1]
                if process.poisons:
                    process.poison(np.frombuffer(released, np.uint8).ctypes.data, len(released))
                self._free.append(released)
            found = next((m for m in reversed(self._free) if len(m) == size), None)
            if found is not None:
                self._free.remove(found)
                return found
            while self._free and sum(map(len, self._free)) > MAX_KEPT_BYTES:
                self._free.popleft()
        made = mmap.mmap(-1, size)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            made.madvise(mmap.MADV_HUGEPAGE)
        return made


pool = BufferPool()

__all__ = ["BufferPool", "pool"]
