"""This process of the operating system: what a fork may not do, when Ctrl-C arrives, what becomes of freed memory."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from types import FrameType
from typing import Any

from . import knobs
from .errors import ForkError

# glibc's numbers for mallopt.
_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8
_MAX_KEPT_BYTES = (1 << 31) - 1  # bytes of free memory that are kept


class _ForkGuard:
    """State of this process.

    Attributes:
        is_fork: why arrays cannot be computed here, empty where they can.
        runs_xla: XLA was started here, or before the fork that made this process.
    """

    is_fork = ""
    runs_xla = False

    def require_compute(self) -> None:
        """Raise `ForkError` where computing would wait for threads that exist only in the parent process."""
        if self.is_fork:
            raise ForkError(self.is_fork)

    def mark_fork(self) -> None:
        """Note that this process is a fork of one that may run XLA."""
        if self.runs_xla:
            gc.freeze()  # at the end XLA's client would wait for its threads, which exist only in the parent
            self.is_fork = (
                "this process is a fork of one that computes with arrays, and cannot compute itself: start it by "
                "multiprocessing.get_context('spawn'), or fork before the first array is computed"
            )


fork_guard = _ForkGuard()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=fork_guard.mark_fork)


# The functions that `signal` wraps: looking for members of enumerations takes it ten microseconds.
_signals: Any = import_module("_signal")
_CTRL_C = int(signal.SIGINT)


class PausedInterrupt:
    """Delays the first Ctrl-C to the end of a `with` block in the main thread; the second comes through at once."""

    __slots__ = ("_handler", "_first")

    def __enter__(self) -> None:
        self._handler: Any = None
        self._first: tuple[int, FrameType | None] | None = None
        if threading.current_thread() is threading.main_thread():
            handler = _signals.getsignal(_CTRL_C)
            if callable(handler):  # neither ignored nor of another language
                self._handler = handler
                _signals.signal(_CTRL_C, self._delay)

    def _delay(self, number: int, frame: FrameType | None) -> None:
        if self._first is not None:
            self._restore()
            signal.raise_signal(number)
        self._first = number, frame

    def _restore(self) -> None:
        _signals.signal(_CTRL_C, self._handler)

    def __exit__(self, *error: object) -> None:
        if self._handler is not None:
            self._restore()
            if self._first is not None:
                self._handler(*self._first)


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


@contextmanager
def paused_collection() -> Iterator[None]:
    """Pause Python's collector of garbage, which is not needed where many objects take the place of as many others.

    It would look at them all several times, since it counts the new ones before the old ones are gone.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


poisons = knobs.POISON.read() == "1"


def poison(address: int, nbytes: int) -> None:
    """Set all bits of freed memory: NaN, -1, or the largest unsigned number."""
    ctypes.memset(address, 0xFF, nbytes)


__all__ = ["fork_guard", "paused_collection", "poison", "poisons", "retain_freed", "trim"]
