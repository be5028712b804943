"""Random matrices of a kind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ndarray import NDArray, array


def get_identity_mat(size: int) -> NDArray:
    """Return the identity matrix."""
    return array(np.eye(size))


def get_identity_mat_batch(size: Sequence[int]) -> NDArray:
    """Return identity matrices of the shape (…, n, n)."""
    return array(np.broadcast_to(np.eye(size[-1]), tuple(size)))


def new_orthonormal_matrix_2d(n: int) -> np.ndarray:
    """Return a random orthonormal matrix (n, n)."""
    return np.linalg.qr(np.random.randn(n, n))[0]


def new_matrix_with_real_eigvals_2d(n: int) -> np.ndarray:
    """Return a random matrix (n, n) whose eigenvalues are real: a product of Q, an upper triangle and Q⁻¹."""
    q = new_orthonormal_matrix_2d(n)
    return q @ np.triu(np.random.uniform(-1, 1, (n, n))) @ q.T


def new_matrix_with_real_eigvals_nd(shape: Sequence[int]) -> np.ndarray:
    """Return random matrices (…, n, n) whose eigenvalues are real."""
    n = int(np.prod(shape[:-2], dtype=int))
    return np.array([new_matrix_with_real_eigvals_2d(shape[-1]) for _ in range(n)]).reshape(tuple(shape))


def new_sym_matrix_with_real_eigvals_2d(n: int) -> np.ndarray:
    """Return a random symmetric matrix (n, n)."""
    a = new_matrix_with_real_eigvals_2d(n)
    return (a + a.T) / 2


def new_sym_matrix_with_real_eigvals_nd(shape: Sequence[int]) -> np.ndarray:
    """Return random symmetric matrices (…, n, n)."""
    n = int(np.prod(shape[:-2], dtype=int))
    return np.array([new_sym_matrix_with_real_eigvals_2d(shape[-1]) for _ in range(n)]).reshape(tuple(shape))
