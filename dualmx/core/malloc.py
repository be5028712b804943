"""Policy for freed memory: return it to the system, keep it for the next arrays, or poison it to find faults."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

from . import knobs

# glibc's numbers for mallopt.
_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8
_MAX_KEPT_BYTES = (1 << 31) - 1  # bytes of free memory that are kept


def _call(name: str, *args: int) -> None:
    """Call a function of the GNU C library, where this system has it."""
    if sys.platform == "linux" and hasattr(_library(), name):
        _library()[name](*args)


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None)


@cache
def retain_freed() -> None:
    """Let the C library keep freed array memory, once, by the user's policy; before XLA's threads start.

    Each run of a program takes memory for what lies between its operations, some 150 MB for a step of ResNet-18, and
    glibc maps it anew each time: the system's clearing of its pages takes 5 to 30 % of the time of large programs, most
    on virtual machines. Kept memory lies in the heap of the thread that runs programs, which holds at most 64 MB. With
    one heap for all threads there is no such limit; but the threads that compile wait for each other there, and it
    falls into pieces, of which a process then needs about a quarter more. So this is for those who want it.
    """
    wanted = knobs.KEEP_MEMORY.read()
    if wanted == "0":
        return
    if wanted == "all":
        _call("mallopt", _ARENA_MAX, 1)
    for what, value in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _MAX_KEPT_BYTES)):
        _call("mallopt", what, value)


def trim() -> None:
    """Give back what is free now; after a large compilation much is, in pieces."""
    _call("malloc_trim", 0)


poisons = knobs.POISON.read() == "1"


def poison(address: int, nbytes: int) -> None:
    """Set all bits of freed memory: NaN, -1, or the largest unsigned number."""
    ctypes.memset(address, 0xFF, nbytes)


__all__ = ["poison", "poisons", "retain_freed", "trim"]
