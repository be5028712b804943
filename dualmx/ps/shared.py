"""Memory that processes of one host share: what is large is written there once, and only its place travels.

An arena is a file without a name that its maker alone writes to. Each block has a row of marks, one for each reader:
the maker sets a reader's mark when it lends the block, and the reader clears it when nothing there looks at the block
any more. A block is used again when neither its maker nor a reader needs it, so its pages stay warm.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import threading
import weakref
from collections import deque
from typing import Any

import numpy as np

from ..core.errors import FormatError

LEAST = 32 << 10  # bytes; what is smaller travels by itself
PAGE = 4096
READERS = 64
BLOCKS = 16384
TABLE = READERS * BLOCKS
_SHRINK = 0x2 | 0x4  # F_SEAL_SHRINK | F_SEAL_GROW
Loan = tuple[int, int, int]  # block, offset, bytes


def available() -> bool:
    """Whether this system has memory files that can be sealed."""
    return hasattr(os, "memfd_create") and hasattr(fcntl, "F_ADD_SEALS")


class Arena:
    """Blocks of memory that are used again and again, and can be lent to other processes.

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
        whole = np.frombuffer(self._map, np.uint8)
        self._base = int(whole.__array_interface__["data"][0])
        self._marks = whole[:TABLE].reshape(BLOCKS, READERS)
        self._top, self._readers = TABLE, 0
        self._blocks: list[tuple[int, int]] = []  # (offset, bytes)
        self._at: dict[int, int] = {}
        self._resting: dict[int, deque[int]] = {}
        self._held: dict[int, weakref.ref[np.ndarray]] = {}
        self._dropped: deque[int] = deque()  # filled by the garbage collector, which takes no lock
        self._lock = threading.RLock()

    def reader(self) -> int:
        """Number for another reader; -1 if there are too many."""
        with self._lock:
            self._readers += 1
            return self._readers - 1 if self._readers <= READERS else -1

    def take(self, nbytes: int) -> np.ndarray | None:
        """Return a block (nbytes,) of uint8, aligned to a page; None without room. When it is dropped, it is free."""
        size = -(-nbytes // PAGE) * PAGE
        with self._lock:
            while self._dropped:
                index = self._dropped.popleft()
                del self._held[index]
                self._resting.setdefault(self._blocks[index][1], deque()).append(index)
            index = self._rested(size)
            if index < 0:
                index = self._grow(size)
            if index < 0:
                return None
            block = np.frombuffer(self._map, np.uint8, nbytes, self._blocks[index][0])
            self._held[index] = weakref.ref(block, lambda _: self._dropped.append(index))
            return block

    def _rested(self, size: int) -> int:
        resting = self._resting.get(size, ())
        for _ in range(len(resting)):
            index = resting.popleft()  # type: ignore[union-attr]
            if not self._marks[index].any():
                return index
            resting.append(index)  # type: ignore[union-attr]
        return -1

    def _grow(self, size: int) -> int:
        if self._top + size > self._end or len(self._blocks) >= BLOCKS:
            return -1
        try:
            os.posix_fallocate(self.fd, self._top, size)  # an error here, not a signal at the first touch
        except OSError:
            return -1
        self._blocks.append((self._top, size))
        self._at[self._top] = len(self._blocks) - 1
        self._top += size
        return len(self._blocks) - 1

    def lend(self, data: Any, reader: int) -> Loan | None:
        """Let `reader` see the bytes of `data`, which are copied unless they are a block; None if there is no room."""
        source = np.frombuffer(data, np.uint8)
        offset = int(source.__array_interface__["data"][0]) - self._base
        index = self._at.get(offset, -1)
        if index < 0:
            block = self.take(source.size)
            if block is None:
                return None
            block[:] = source
            offset = int(block.__array_interface__["data"][0]) - self._base
            index = self._at[offset]
        self._marks[index, reader] = 1
        return index, offset, source.size


class Loans:
    """What another process lends to this one.

    Args:
        fd: its arena; closed here.
        reader: number of this process there.

    Raises:
        FormatError: no arena.
    """

    def __init__(self, fd: int, reader: int):
        try:
            size = os.fstat(fd).st_size
            sealed = fcntl.fcntl(fd, fcntl.F_GET_SEALS) & _SHRINK == _SHRINK
            if not sealed or size < TABLE or not 0 <= reader < READERS:
                raise FormatError("the other end offers memory that is not as expected")
            self._map, self._size, self._reader = mmap.mmap(fd, size), size, reader
        except OSError as e:
            raise FormatError(f"the other end offers memory that cannot be used: {e.strerror or e}") from None
        finally:
            os.close(fd)
        self._marks = np.frombuffer(self._map, np.uint8, TABLE)
        self._held: dict[int, weakref.ref[np.ndarray]] = {}
        self._numbers = iter(range(1 << 62))
        self._owner = os.getpid()

    def view(self, loan: Any) -> np.ndarray:
        """Return the bytes of a loan (n,); it is given back when nothing refers to them any more.

        Raises:
            FormatError: not inside the arena.
        """
        if not (isinstance(loan, list) and len(loan) == 3 and all(isinstance(n, int) for n in loan)):
            raise FormatError(f"shared memory {loan!r}: expected block, offset, bytes")
        index, offset, nbytes = loan
        if not (0 <= index < BLOCKS and nbytes > 0 and TABLE <= offset <= self._size - nbytes):
            raise FormatError(f"shared memory {loan!r}: out of bounds")
        seen = np.frombuffer(self._map, np.uint8, nbytes, offset)
        seen.flags.writeable = False
        number, mark = next(self._numbers), index * READERS + self._reader
        self._held[number] = weakref.ref(seen, lambda _: self._give_back(number, mark))
        return seen

    def _give_back(self, number: int, mark: int) -> None:
        self._held.pop(number, None)
        if os.getpid() == self._owner:  # a forked child forgets what its parent still reads
            self._marks[mark] = 0


__all__ = ["LEAST", "Arena", "Loan", "Loans", "available"]
