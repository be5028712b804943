"""Products of matrices.

The parts of a large one are computed by several threads. oneDNN's first product would take 30 ms for the code that it
writes, and none of its later ones is quicker.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .threads import in_threads, one_blas_thread

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
