"""Products of matrices, and how many threads they take.

NumPy's OpenBLAS has threads of its own, which wait for the next product by spinning: beside the threads of others, a
product of two small matrices then takes 20 ms in place of 0.1. So it has one thread while programs run here, and the
parts of a large product are computed by threads that wait asleep. oneDNN's first product would take 30 ms for the code
that it writes, and none of its later ones is quicker.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import math
import os
import threading
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
        parts = [(x[k], y, out[k]) for k in _cuts(x.shape[0], count)]
    else:
        parts = [(x, y[:, k], out[:, k]) for k in _cuts(y.shape[1], count)]
    waiting: list[Future[Any]] = []
    try:
        for part in parts[1:]:
            waiting.append(_pool().submit(np.matmul, *part))
    except RuntimeError:  # the interpreter ends, and starts no thread any more
        pass
    for part in (parts[0], *parts[1 + len(waiting) :]):
        np.matmul(*part)
    for future in waiting:
        future.result()
    return out


def _cuts(length: int, count: int) -> list[slice]:
    """Equal parts of a length, but for the last."""
    step = -(-length // count)
    return [slice(start, start + step) for start in range(0, length, step)]


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), "dualmx-products")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # there are no threads in a fork


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
    product = np.matmul(a, b) if batch else matmul(a, b)
    return product.reshape((*batch, *m, *n)).astype(out, copy=False)


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
