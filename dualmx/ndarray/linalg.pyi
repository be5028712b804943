# Written by `python -m dualmx.namespace.stubs`. Generated, so its length has no bound.
"""Types of `mx.nd.linalg`."""

from collections.abc import Sequence
from typing import TypeAlias

import jax
import numpy as np

from .ndarray import NDArray

__all__ = [
    "det", "extractdiag", "extracttrian", "gelqf", "gemm", "gemm2", "inverse", "makediag", "maketrian", "potrf",
    "potri", "slogdet", "sumlogdiag", "syevd", "syrk", "trmm", "trsm",
]  # fmt: skip

_Array: TypeAlias = NDArray | np.ndarray | jax.Array

def det(A: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Determinant: (…, n, n) -> (…), (1,) for a single matrix."""

def extractdiag(
    A: _Array, offset: int = 0, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Read diagonal `offset` (positive above the main one): (…, n, n) -> (…, n - |offset|)."""

def extracttrian(
    A: _Array,
    offset: int = 0,
    lower: bool = True,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Pack the triangle at diagonal `offset` into a vector: (…, n, n) -> (…, m·(m+1)/2), m = n - |offset|."""

def gelqf(A: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> list[NDArray]:
    """LQ factorisation A = L · Q of (…, m, n), m ≤ n: returns Q (…, m, n) with orthonormal rows and L (…, m, m)."""

def gemm(
    A: _Array,
    B: _Array,
    C: _Array,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    beta: float = 1.0,
    axis: int = -2,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """alpha · op(A) · op(B) + beta · C, op being transposition if so asked; C has the shape of the product."""

def gemm2(
    A: _Array,
    B: _Array,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    axis: int = -2,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """alpha · op(A) · op(B), op being transposition if so asked; rows lie along `axis`, columns along the last."""

def inverse(A: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Inverse of every square matrix; a singular one gives inf or NaN."""

def makediag(
    A: _Array, offset: int = 0, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Matrices with `A` on diagonal `offset` and 0 elsewhere: (…, n) -> (…, n + |offset|, n + |offset|)."""

def maketrian(
    A: _Array,
    offset: int = 0,
    lower: bool = True,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Unpack what `linalg_extracttrian` packed into matrices that are 0 elsewhere: (…, m·(m+1)/2) -> (…, n, n)."""

def potrf(
    A: _Array, lower: bool = True, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Cholesky factor: the lower triangular L with positive diagonal and L · Lᵀ = A, A symmetric positive-definite."""

def potri(
    A: _Array, lower: bool = True, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Inverse (L · Lᵀ)⁻¹ from the Cholesky factor `A`: the lower triangular L or, unless `lower`, Lᵀ."""

def slogdet(A: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> list[NDArray]:
    """Sign of the determinant and logarithm of its absolute value, each (…), (1,) for a single matrix."""

def sumlogdiag(A: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Sum of the logarithms of the diagonal: (…, n, n) -> (…), (1,) for a single matrix."""

def syevd(A: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> list[NDArray]:
    """Eigenvectors and eigenvalues of symmetric matrices: A = Uᵀ · diag(L) · U."""

def syrk(
    A: _Array,
    transpose: bool = False,
    alpha: float = 1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """alpha · A · Aᵀ, or alpha · Aᵀ · A with `transpose`."""

def trmm(
    A: _Array,
    B: _Array,
    transpose: bool = False,
    rightside: bool = False,
    lower: bool = True,
    alpha: float = 1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """alpha · op(A) · B (`rightside`: B · op(A)); A triangular, its other triangle is not read."""

def trsm(
    A: _Array,
    B: _Array,
    transpose: bool = False,
    rightside: bool = False,
    lower: bool = True,
    alpha: float = 1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Solve op(A) · X = alpha · B (`rightside`: X · op(A)) for X; A triangular, its other triangle is not read."""
