"""Compilations in the background, by one thread for which the process does not wait at its end."""

from __future__ import annotations

import atexit
import ctypes
import gc
import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from .executable import announcement

_log = logging.getLogger(__name__)
_INTERRUPT_SECONDS = 0.5
_Made = TypeVar("_Made")


class Compilation(Generic[_Made]):
    """The compilation of one program: by the thread, or by whoever needs it before the thread has begun.

    Args:
        make: compiles it.
        description: what is compiled.
    """

    def __init__(self, make: Callable[[], _Made], description: str):
        self._make: Callable[[], _Made] | None = make
        self._description = description
        self._lock = threading.Lock()
        self._made: _Made | None = None

    def run(self) -> None:
        """Compile it, unless that has been done; a failure is logged."""
        with self._lock:
            make, self._make = self._make, None
            if make is None:
                return
            try:
                self._made = make()
            except Exception as e:
                _log.warning("%s could not be compiled, and goes on without: %s", self._description, e, exc_info=True)

    def result(self) -> _Made | None:
        """Wait for the compiled program; None if it could not be compiled."""
        with announcement(self._description):
            self.run()
        return self._made


class _Worker:
    """The thread, which begins with the first compilation, and what waits for it."""

    def __init__(self) -> None:
        self._waiting: deque[Compilation[Any]] = deque()
        self._change = threading.Condition()
        self._thread: threading.Thread | None = None
        self.is_busy = self._is_closed = False

    def submit(self, compilation: Compilation[Any]) -> None:
        """Let the thread compile a program after those that wait already."""
        with self._change:
            if self._is_closed:
                return  # whoever needs it compiles it
            if self._thread is None:
                # Not waited for at exit, where a long compilation would keep the process for seconds.
                self._thread = threading.Thread(target=self._work, name="dualmx-compile", daemon=True)
                self._thread.start()
                atexit.register(self.close)
            self._waiting.append(compilation)
            self._change.notify()

    def _work(self) -> None:
        while True:
            with self._change:
                self.is_busy = False
                while not self._waiting and not self._is_closed:
                    self._change.wait()
                if self._is_closed:
                    return
                compilation, self.is_busy = self._waiting.popleft(), True
            compilation.run()

    def close(self) -> None:
        """Compile no more; at the end of the process, what is being compiled is left alone."""
        with self._change:
            self._is_closed = True
            self._change.notify()
            is_busy, thread = self.is_busy, self._thread
        if is_busy and thread is not None:
            gc.disable()  # an exception that meets a callback of it is printed and ignored
            _interrupt(thread)
            thread.join(_INTERRUPT_SECONDS)
            if thread.is_alive() and not exit_while_xla_works():
                thread.join()


def _interrupt(thread: threading.Thread) -> None:
    """End a thread as soon as it runs code of Python."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit))


def exit_while_xla_works() -> bool:
    """Let the process end with its exit status while a thread is inside XLA; False where that is not possible.

    XLA cannot be interrupted, and its thread would abort the process in two ways. Python before 3.14 unwinds a thread
    that comes back while the interpreter ends, which C++ answers by `std::terminate`. And the destructors of libraries
    take away what XLA uses. So a thread that comes back sleeps, and the process ends before the destructors.
    """
    try:
        libc = ctypes.CDLL(None)
        if sys.version_info < (3, 14):
            ctypes.CDLL("libstdc++.so.6")["_ZSt13set_terminatePFvvE"](libc.pause)
        libc.on_exit(libc["_exit"], None)  # which is called with the status
        libc.fflush(None)
    except (AttributeError, OSError):  # another C library
        return False
    return True


worker = _Worker()


def _forget_thread() -> None:
    """In a fork there is no thread; nothing is compiled there."""
    global worker
    worker = _Worker()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_thread)


def submit(compilation: Compilation[Any]) -> None:
    """Let the thread compile a program after those that wait already."""
    worker.submit(compilation)


__all__ = ["Compilation", "exit_while_xla_works", "submit", "worker"]
