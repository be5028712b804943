"""Slices that several servers lend, seen as one array: their pages are mapped one behind the other, without a copy."""

from __future__ import annotations

import ctypes
import mmap
import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from .shared import PAGE, RemoteArena

MIN_MAPPED_BYTES = 1 << 20  # bytes; what is smaller is copied together
WINDOWS = 4096  # kept, since blocks come again: so long their pages need not be mapped anew
_FIXED, _NORESERVE, _NONE = 0x10, 0x4000, 0
_FAILED = ctypes.c_void_p(-1).value
Place = tuple[int, int, int]  # file or lender, offset, bytes


@cache
def _library() -> Any:
    library = ctypes.CDLL(None)
    kinds = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64]
    library.mmap.restype, library.mmap.argtypes = ctypes.c_void_p, kinds
    library.munmap.restype, library.munmap.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t]
    return library


class _MappedRange:
    """Addresses at which pages of several files follow each other, to be read."""

    def __init__(self, places: Sequence[Place]):
        self.size = sum(nbytes for _, _, nbytes in places)
        self._unmap, map_ = _library().munmap, _library().mmap
        free = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
        self.address = map_(None, self.size, _NONE, free, -1, 0)
        if self.address in (None, _FAILED):
            self.address = None
            raise OSError("no addresses are left")
        at = self.address
        for file, offset, nbytes in places:
            shared = mmap.MAP_SHARED | _FIXED | getattr(mmap, "MAP_POPULATE", 0)
            if map_(at, nbytes, mmap.PROT_READ, shared, file, offset) == _FAILED:
                raise OSError("the pages cannot be mapped")
            at += nbytes

    def __del__(self) -> None:
        if self.address is not None:
            self._unmap(self.address, self.size)


class _MappedView:
    """What an array of a window keeps alive: the window, and the loans that it shows."""

    def __init__(self, window: _MappedRange, pieces: Sequence[memoryview]):
        self._kept = (window, pieces)
        self.__array_interface__ = {
            "version": 3, "typestr": "|u1", "shape": (window.size,), "data": (window.address, True),
        }  # fmt: skip


class ContiguousMapper:
    """Joins pieces of memory that other processes lend."""

    def __init__(self) -> None:
        self._windows: OrderedDict[tuple[Place, ...], _MappedRange] = OrderedDict()
        self._lock = threading.Lock()

    def map(self, pieces: Sequence[memoryview], lenders: Sequence[RemoteArena]) -> np.ndarray | None:
        """Return the bytes (n,) of pieces one behind the other, read-only; None where they cannot be seen so.

        Each of them fills whole pages, but for the end of the last one, and lies in the memory of one of the lenders.
        """
        places: list[Place] = []
        lent: list[Place] = []
        for piece in pieces:
            found = ((lender, at) for lender in lenders if (at := lender.offset(piece)) is not None)
            lender, at = next(found, (None, 0))
            whole = piece.nbytes % PAGE == 0 or piece is pieces[-1]
            if lender is None or at % PAGE or not whole:
                return None
            places.append((lender.file, at, piece.nbytes))
            lent.append((lender.number, at, piece.nbytes))
        key = tuple(lent)
        with self._lock:
            window = self._windows.pop(key, None)
            if window is None:
                try:
                    window = _MappedRange(places)
                except OSError:
                    return None
            self._windows[key] = window
            if len(self._windows) > WINDOWS:
                self._windows.popitem(last=False)
        return np.asarray(_MappedView(window, pieces))

    def forget(self, lender: RemoteArena) -> None:
        """Nothing comes from a lender any more."""
        with self._lock:
            for key in [k for k in self._windows if any(number == lender.number for number, _, _ in k)]:
                del self._windows[key]


__all__ = ["MIN_MAPPED_BYTES", "ContiguousMapper"]
