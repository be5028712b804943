"""Threads of programs on NumPy arrays.

NumPy's OpenBLAS has threads of its own, which wait for the next product by spinning: beside the threads of others, a
product of two small matrices then takes 20 ms in place of 0.1. So it has one thread while programs run here, and the
parts of large arrays are computed by threads that wait asleep.
"""

from __future__ import annotations

import contextvars
import ctypes
import functools
import importlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), "dualmx-arrays")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # there are no threads in a fork


def in_threads(work: Callable[[Iterator[Any]], None], items: Sequence[Any], count: int) -> None:
    """Call `work` in several threads, this one included, with one iterator over the items, until all have returned."""
    left = iter(items)
    waiting: list[Future[None]] = []
    try:
        for _ in range(count - 1):
            waiting.append(_pool().submit(contextvars.copy_context().run, work, left))
    except RuntimeError:  # the interpreter ends, and starts no thread any more
        pass
    try:
        work(left)
    finally:
        for _ in left:  # after a failure here the others begin nothing more
            pass
        for future in waiting:
            future.result()


@functools.cache
def _openblas() -> tuple[Any, Any] | None:
    """The functions that get and set the number of threads of NumPy's OpenBLAS; None if it has another library."""
    try:
        # The loader looks a name up in what this extension is linked to.
        library = ctypes.CDLL(importlib.import_module("numpy.linalg._umath_linalg").__file__)
    except (ImportError, OSError, TypeError):
        return None
    for pattern in ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads64_", "openblas_{}_num_threads"):
        try:
            return library[pattern.format("get")], library[pattern.format("set")]
        except AttributeError:
            continue
    return None


class _OneThread:
    """While somebody is inside, OpenBLAS has one thread; afterwards as many as before."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before = 1

    @property
    def n_outside(self) -> int:
        """How many threads OpenBLAS has when nobody is inside; 1 while nobody is."""
        return self._before if self._inside else 1

    def __enter__(self) -> None:
        functions = _openblas()
        if functions is None:
            return
        with self._lock:
            if not self._inside:
                self._before = functions[0]()
                if self._before > 1:
                    functions[1](1)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        functions = _openblas()
        if functions is None:
            return
        with self._lock:
            self._inside -= 1
            if not self._inside and self._before > 1:
                functions[1](self._before)


one_blas_thread = _OneThread()
