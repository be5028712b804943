"""Products of matrices, and the threads of programs on NumPy arrays.

NumPy's OpenBLAS has threads of its own, which wait for the next product by spinning: beside the threads of others, a
product of two small matrices then takes 20 ms in place of 0.1. So it has one thread while programs run here, and the
parts of large arrays, of products too, are computed by threads that wait asleep. oneDNN's first product would take
30 ms for the code that it writes, and none of its later ones is quicker.
"""

from __future__ import annotations

import contextvars
import ctypes
import functools
import importlib
import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

Sizes = tuple[int, ...]
_MIN_PRODUCTS_PER_THREAD = 1 << 24  # products of numbers, which are worth waking a thread


def matmul(x: Any, y: Any) -> Any:
    """The product of two matrices of one type."""
    count = min(one_blas_thread.n_outside, x.size * y.shape[1] // _MIN_PRODUCTS_PER_THREAD)
    return np.matmul(x, y) if count < 2 else _by_threads(x, y, count)


def _by_threads(x: Any, y: Any, count: int) -> Any:
    """A product, of whose rows, or columns if these are more, each thread computes a part."""
    out = np.empty((x.shape[0], y.shape[1]), x.dtype)
    if x.shape[0] >= y.shape[1]:
        _each(lambda k: np.matmul(x[k], y, out[k]), _cuts(x.shape[0], count))
    else:
        _each(lambda k: np.matmul(x, y[:, k], out[:, k]), _cuts(y.shape[1], count))
    return out


def _matmul_each(x: Any, y: Any) -> Any:
    """The products of the matrices in two stacks of equal sizes."""
    n_products = x.size * y.shape[-1]
    count = min(one_blas_thread.n_outside, n_products // _MIN_PRODUCTS_PER_THREAD, len(x))
    if count < 2:
        return np.matmul(x, y)
    out = np.empty((*x.shape[:-1], y.shape[-1]), x.dtype)
    _each(lambda k: np.matmul(x[k], y[k], out[k]), _cuts(len(x), count))
    return out


def _each(compute: Callable[[slice], Any], parts: Sequence[slice]) -> None:
    """Call a function for each of some parts, in as many threads."""

    def work(left: Iterator[slice]) -> None:
        for part in left:
            compute(part)

    in_threads(work, parts, len(parts))


def _cuts(length: int, count: int) -> list[slice]:
    """Equal parts of a length, but for the last."""
    step = -(-length // count)
    return [slice(start, start + step) for start in range(0, length, step)]


def dot_general(
    x: Any, y: Any, left: Sizes, right: Sizes, left_batch: Sizes, right_batch: Sizes, total: np.dtype, out: np.dtype
) -> Any:
    """The sum of products over axes `left` and `right`, for each element of the batch axes, in the type `total`."""
    rows = [a for a in range(x.ndim) if a not in left and a not in left_batch]
    columns = [a for a in range(y.ndim) if a not in right and a not in right_batch]
    batch = [x.shape[a] for a in left_batch]
    m, n = [x.shape[a] for a in rows], [y.shape[a] for a in columns]
    k = math.prod([x.shape[a] for a in left])
    a = x.transpose((*left_batch, *rows, *left)).reshape((*batch, math.prod(m), k))
    b = y.transpose((*right_batch, *right, *columns)).reshape((*batch, k, math.prod(n)))
    if total.kind != "b":
        a, b = a.astype(total, copy=False), b.astype(total, copy=False)
    product = _matmul_each(a, b) if batch else matmul(a, b)
    return product.reshape((*batch, *m, *n)).astype(out, copy=False)


# -- threads


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
