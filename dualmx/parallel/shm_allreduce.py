"""All-reduce through shared memory, for the processes of one host.

Each process writes its array, slice by slice, into a ring in its own memory, and reads the rings of the others while
they are still in the processor's cache. Counters tell how far each process is, and each has one writer. Stores must
become visible in program order, which x86 guarantees.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence

import numpy as np

from ..core.errors import MXNetError
from ..ps import PeerLinks
from .reduce_ops import reduce_values

SLICE_BYTES = 1 << 20
N_SLOTS = 8
_CACHE_LINE_BYTES = 64  # bytes between counters, so that processes do not write to the same line of the cache
_MAX_SPINS = 200


class SharedMemoryAllReduce:
    """One rank's end of the shared-memory all-reduce; all members of a group create theirs together.

    Args:
        rank: number of this process in the group.
        ranks: the members' ranks in the job.
        peers: links between them.
        block: memory of this process, of `size(members)` bytes, which the others see.
        others: memory of all processes, by number in the group; that of this one included.
    """

    def __init__(self, rank: int, ranks: Sequence[int], peers: PeerLinks, block: np.ndarray, others: list[np.ndarray]):
        n = len(others)
        self._rank, self._ranks, self._peers = rank, ranks, peers
        views = [block if i == rank else other for i, other in enumerate(others)]
        self._written = [v[:8].view(np.uint64) for v in views]
        # What this process has taken of each other one, and what each has taken of this one.
        self._read_of = [block[_CACHE_LINE_BYTES * (1 + i) :][:8].view(np.uint64) for i in range(n)]
        self._read_by = [v[_CACHE_LINE_BYTES * (1 + rank) :][:8].view(np.uint64) for v in views]
        self._slots = [v[_CACHE_LINE_BYTES * (1 + n) :] for v in views]
        self._count = 0

    @staticmethod
    def size(members: int) -> int:
        """Bytes of memory that each process gives."""
        return _CACHE_LINE_BYTES * (1 + members) + N_SLOTS * SLICE_BYTES

    @staticmethod
    def is_supported() -> bool:
        """Whether this machine keeps the order of stores."""
        return platform.machine().lower() in ("x86_64", "amd64")

    def all_reduce(self, x: np.ndarray, op: str, postscale: float, out: np.ndarray, channel: str, what: str) -> None:
        """Combine flat arrays of one type and length; all members call it at the same place of their programs.

        Raises:
            MXNetError: a process is gone.
        """
        step = SLICE_BYTES // x.itemsize
        pieces = [slice(b, min(b + step, x.size)) for b in range(0, x.size, step)]
        me, n = self._rank, len(self._ranks)
        others = [i for i in range(n) if i != me]
        rings = [s[: N_SLOTS * SLICE_BYTES].view(x.dtype) for s in self._slots]
        base = self._count
        self._peers.traffic.sent += x.nbytes * len(others)
        self._peers.traffic.received += x.nbytes * len(others)

        posted = 0

        def post() -> None:
            """Write the next slice, whose place is free."""
            nonlocal posted
            number, piece = base + posted, pieces[posted]
            at = number % N_SLOTS * step
            rings[me][at : at + piece.stop - piece.start] = x[piece]
            posted += 1
            self._written[me][0] = number + 1

        for k, piece in enumerate(pieces):
            number, size = base + k, piece.stop - piece.start
            # As far ahead as the others let it, so that they find something whenever they run.
            while posted < len(pieces) and all(self._read_by[i][0] + N_SLOTS > base + posted for i in others):
                post()
            while posted <= k:
                for i in others:
                    self._spin_until(self._read_by[i], number - N_SLOTS + 1, i, channel, what)
                post()
            at = number % N_SLOTS * step
            for i in others:
                self._spin_until(self._written[i], number + 1, i, channel, what)
            parts = [x[piece] if i == me else rings[i][at : at + size] for i in range(n)]
            reduce_values(parts, op, postscale, out[piece])
            for i in others:
                self._read_of[i][0] = number + 1
        self._count = base + len(pieces)

    def _spin_until(self, counter: np.ndarray, least: int, member: int, channel: str, what: str) -> None:
        for _ in range(_MAX_SPINS):
            if counter[0] >= least:
                return
        began = time.monotonic()
        naps = 0
        rank, traffic = self._ranks[member], self._peers.traffic
        try:
            while counter[0] < least:
                time.sleep(0 if naps < _MAX_SPINS else 1e-4)
                naps += 1
                if naps % 64 == 0:
                    traffic.begin_wait([self._peers.workers[rank]], what, began)
                    try:
                        self._peers.check(channel, [rank], what, time.monotonic() - began)
                    except MXNetError:
                        if counter[0] < least:  # else it is gone, but has done its part
                            raise
        finally:
            if naps >= 64:
                traffic.end_wait()


__all__ = ["SharedMemoryAllReduce"]
