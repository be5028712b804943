"""Shared memory between the processes of a host: large payloads are written once, and only their place is sent.

An arena is an anonymous file that only its owner writes. The owner counts how often it shared each block with each
reader; in a table of the arena, each reader counts how often it has released it. A block is reused when the owner does
not need it and the counts agree, so its pages stay warm. A reader maps the slices of several servers one behind
another, and sees one contiguous array without a copy.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import threading
import weakref
from bisect import bisect_right
from collections import OrderedDict, deque
from collections.abc import Sequence
from functools import cache
from itertools import count
from typing import Any

import numpy as np

from ...core import process
from ...core.errors import FormatError

MIN_SHARED_BYTES = 32 << 10  # bytes; what is smaller travels by itself
PAGE = 4096
READERS = 64
BLOCKS = 16384
TABLE = READERS * BLOCKS * 4
CACHE_LINE = 64  # bytes; arrays begin at multiples of them
_SHRINK = 0x2 | 0x4  # F_SEAL_SHRINK | F_SEAL_GROW
SharedRegion = tuple[int, int, int]  # block, offset, bytes


def available() -> bool:
    """Whether this system has memory files that can be sealed."""
    return hasattr(os, "memfd_create") and hasattr(fcntl, "F_ADD_SEALS")


class Arena:
    """Reusable blocks of memory that can be shared with other processes.

    Args:
        limit: most bytes; they are taken from the system when they are first used.

    Attributes:
        fd: the file, to be handed to readers.
    """

    def __init__(self, limit: int):
        self.fd = os.memfd_create("dualmx", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self._end = TABLE + limit
        os.ftruncate(self.fd, self._end)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, _SHRINK)
        self._map = mmap.mmap(self.fd, self._end)
        mapped = np.frombuffer(self._map, np.uint8)
        self._base = _address(mapped)
        self._returned = mapped[:TABLE].view(np.uint32).reshape(BLOCKS, READERS)
        self._leased = np.zeros((BLOCKS, READERS), np.uint32)
        self._top, self._readers = TABLE, 0
        self._offsets: list[int] = []  # of the blocks, ascending
        self._sizes: list[int] = []
        self._free: dict[int, list[int]] = {}
        self._held: dict[int, weakref.ref[np.ndarray]] = {}
        self._dropped: deque[int] = deque()  # filled by the garbage collector, which takes no lock
        self._lock = threading.RLock()

    def reader(self) -> int:
        """Number for another reader; -1 if there are too many."""
        with self._lock:
            self._readers += 1
            return self._readers - 1 if self._readers <= READERS else -1

    def alloc(self, nbytes: int) -> np.ndarray | None:
        """Return a block (nbytes,) of uint8, aligned to a page; None without room. When it is dropped, it is free."""
        size = _rounded(nbytes)
        with self._lock:
            while self._dropped:
                index = self._dropped.popleft()
                del self._held[index]
                self._free.setdefault(self._sizes[index], []).append(index)
            index = self._reuse(size)
            if index >= 0 and process.poisons:
                process.poison(self._base + self._offsets[index], self._sizes[index])
            if index < 0:
                index = self._grow(size)
            if index < 0:
                return None
            block = np.frombuffer(self._map, np.uint8, nbytes, self._offsets[index])
            self._held[index] = weakref.ref(block, lambda _: self._dropped.append(index))
            return block

    def _reuse(self, size: int) -> int:
        """The block of a size that was used last and is free: it may still be in the processor's cache."""
        resting = self._free.get(size, [])
        for at in range(len(resting) - 1, -1, -1):
            index = resting[at]
            if self._returned[index].tobytes() == self._leased[index].tobytes():
                del resting[at]
                return index
        return -1

    def _grow(self, size: int) -> int:
        if self._top + size > self._end or len(self._sizes) >= BLOCKS:
            return -1
        try:
            os.posix_fallocate(self.fd, self._top, size)  # an error here, not a signal at the first touch
        except OSError:
            return -1
        self._offsets.append(self._top)
        self._sizes.append(size)
        self._top += size
        return len(self._sizes) - 1

    def share(self, parts: Sequence[memoryview], reader: int) -> list[int | SharedRegion]:
        """Let `reader` see the bytes of `parts`, which are copied together unless they are in blocks.

        Returns where they are, in order: a lease for parts that lie one behind the other, or a number of bytes for
        parts that are not leased, because they are few or there is no room.
        """
        sources = [np.frombuffer(p, np.uint8) for p in parts]
        found = [self._place(_address(s) - self._base, s.size) for s in sources]
        loose = sum([s.size + -s.size % CACHE_LINE for s, place in zip(sources, found, strict=True) if place is None])
        block = self.alloc(loose) if loose >= MIN_SHARED_BYTES else None
        start = 0 if block is None else _address(block) - self._base
        index = bisect_right(self._offsets, start) - 1
        places: list[int | SharedRegion] = []
        at = 0
        for source, place in zip(sources, found, strict=True):
            size = source.size
            if place is None and block is not None:
                block[at : at + size] = source
                place = (index, start + at, size)
                at += size + -size % CACHE_LINE
            _append(places, size if place is None else place)
        with self._lock:
            for place in places:
                if not isinstance(place, int):
                    self._leased[place[0], reader] += np.uint32(1)
        return places

    def _place(self, offset: int, nbytes: int) -> SharedRegion | None:
        """The place of bytes at an offset from the beginning of the arena; None if they are in no block."""
        if not 0 <= offset < self._end:
            return None
        index = bisect_right(self._offsets, offset) - 1
        if index < 0 or offset + nbytes > self._offsets[index] + self._sizes[index]:
            return None
        return index, offset, nbytes


def _append(places: list[int | SharedRegion], place: int | SharedRegion) -> None:
    last = places[-1] if places else None
    if isinstance(place, int) and isinstance(last, int):
        places[-1] = last + place
    elif not isinstance(place, int) and isinstance(last, tuple) and (last[0], last[1] + last[2]) == place[:2]:
        places[-1] = (last[0], last[1], last[2] + place[2])
    else:
        places.append(place)


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _rounded(nbytes: int) -> int:
    """Round a block's size: few sizes, so that blocks can be reused, at most an eighth too large."""
    pages = -(-nbytes // PAGE)
    step = 1 << max(pages.bit_length() - 4, 0)
    return -(-pages // step) * step * PAGE


_lenders = count()


class RemoteArena:
    """The arena that another process shares with this one.

    Args:
        fd: its arena; closed with this object.
        reader: number of this process there.

    Attributes:
        file: the arena's file.
        number: tells it from all others that this process has met.

    Raises:
        FormatError: no arena.
    """

    def __init__(self, fd: int, reader: int):
        self.file, self.number = fd, next(_lenders)
        weakref.finalize(self, os.close, fd)
        try:
            size = os.fstat(fd).st_size
            sealed = fcntl.fcntl(fd, fcntl.F_GET_SEALS) & _SHRINK == _SHRINK
            if not sealed or size < TABLE or not 0 <= reader < READERS:
                raise FormatError("the other end offers memory that is not as expected")
            self._map, self._size, self._reader = mmap.mmap(fd, size), size, reader
        except OSError as e:
            raise FormatError(f"the other end offers memory that cannot be used: {e.strerror or e}") from None
        self._base = _address(np.frombuffer(self._map, np.uint8, 1))
        self._returned = memoryview(self._map)[:TABLE].cast("I")
        self._held: dict[int, weakref.ref[np.ndarray]] = {}
        self._dropped: deque[int] = deque()  # places in the table, filled by the garbage collector, which takes no lock
        self._counting = threading.Lock()
        self._numbers = iter(range(1 << 62))
        self._owner = os.getpid()

    def view(self, lease: Any) -> np.ndarray:
        """Return the bytes of a region (n,); it is released when nothing refers to them any more.

        Raises:
            FormatError: not inside the arena.
        """
        if not (isinstance(lease, list) and len(lease) == 3 and all(type(n) is int for n in lease)):
            raise FormatError(f"shared memory {lease!r}: expected block, offset, bytes")
        index, offset, nbytes = lease
        if not (0 <= index < BLOCKS and nbytes > 0 and TABLE <= offset <= self._size - nbytes):
            raise FormatError(f"shared memory {lease!r}: out of bounds")
        seen = np.frombuffer(self._map, np.uint8, nbytes, offset)
        seen.flags.writeable = False
        number, at = next(self._numbers), index * READERS + self._reader
        self._held[number] = weakref.ref(seen, lambda _: self._drop(number, at))
        if self._dropped:
            self._count()
        return seen

    def offset(self, piece: memoryview) -> int | None:
        """Return the offset of bytes in the arena; None for bytes elsewhere."""
        offset = _address(np.frombuffer(piece, np.uint8, 1)) - self._base
        return offset if TABLE <= offset <= self._size - piece.nbytes else None

    def _drop(self, number: int, at: int) -> None:
        self._held.pop(number, None)
        if os.getpid() == self._owner:  # a forked child forgets what its parent still reads
            self._dropped.append(at)
            self._count()

    def _count(self) -> None:
        if self._counting.acquire(blocking=False):  # whoever has it counts these, too, or the next who comes
            try:
                while self._dropped:
                    at = self._dropped.popleft()
                    self._returned[at] = self._returned[at] + 1 & 0xFFFFFFFF
            finally:
                self._counting.release()


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
    """What an array of a window keeps alive: the window, and the leases that it shows."""

    def __init__(self, window: _MappedRange, pieces: Sequence[memoryview]):
        self._kept = (window, pieces)
        self.__array_interface__ = {
            "version": 3, "typestr": "|u1", "shape": (window.size,), "data": (window.address, True),
        }  # fmt: skip


class ContiguousMapper:
    """Maps shared memory regions contiguously."""

    def __init__(self) -> None:
        self._windows: OrderedDict[tuple[Place, ...], _MappedRange] = OrderedDict()
        self._lock = threading.Lock()

    def map(self, pieces: Sequence[memoryview], lenders: Sequence[RemoteArena]) -> np.ndarray | None:
        """Return the bytes (n,) of consecutive regions, read-only; None if they cannot be mapped so.

        Each of them fills whole pages, but for the end of the last one, and lies in the memory of one of the lenders.
        """
        places: list[Place] = []
        leased: list[Place] = []
        for piece in pieces:
            found = ((lender, at) for lender in lenders if (at := lender.offset(piece)) is not None)
            lender, at = next(found, (None, 0))
            fills_pages = piece.nbytes % PAGE == 0 or piece is pieces[-1]
            if lender is None or at % PAGE or not fills_pages:
                return None
            places.append((lender.file, at, piece.nbytes))
            leased.append((lender.number, at, piece.nbytes))
        key = tuple(leased)
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
        """Drop the mappings of an arena."""
        with self._lock:
            for key in [k for k in self._windows if any(number == lender.number for number, _, _ in k)]:
                del self._windows[key]


__all__ = [
    "Arena",
    "ContiguousMapper",
    "MIN_MAPPED_BYTES",
    "MIN_SHARED_BYTES",
    "RemoteArena",
    "SharedRegion",
    "available",
]
