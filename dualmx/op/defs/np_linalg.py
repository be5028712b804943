"""NumPy's linear algebra: stacks of matrices in the last two axes; results may have no axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from ...core.errors import ArgumentError
from ..registry import op
from ..schema import Axes, Tensor, UntypedTensor
from .linalg import cholesky_factor, turned


def _matrix(name: str, a: jax.Array, square: bool = True) -> None:
    if a.ndim < 2:
        raise ArgumentError(f"{name}: a has shape {a.shape}: expected at least two axes")
    if square and a.shape[-1] != a.shape[-2]:
        raise ArgumentError(f"{name}: a has shape {a.shape}: expected square matrices in the last two axes")


def _real(name: str, *arrays: jax.Array) -> None:
    for a in arrays:
        if a.dtype not in (jnp.float32, jnp.float64):
            raise ArgumentError(f"{name}: dtype {a.dtype}: expected float32 or float64")


def _wide(name: str, *arrays: jax.Array) -> list[jax.Array]:
    """Integers as float64; half precision is refused."""
    found = [a.astype(jnp.float64) if a.dtype.kind in "biu" else a for a in arrays]
    _real(name, *found)
    return found


@op(name="_npi_cholesky")
def cholesky(a: Tensor) -> jax.Array:
    """Lower triangular L with L Lᵀ = a, for symmetric positive-definite matrices (..., n, n); symmetric gradient."""
    _matrix("cholesky", a)
    _real("cholesky", a)
    return cholesky_factor(a)


@op(name="_npi_inv")
def inv(a: Tensor) -> jax.Array:
    """Inverse of matrices (..., n, n)."""
    _matrix("inv", a)
    _real("inv", a)
    return jnp.linalg.inv(a)


@op(name="_npi_det", output_names=("output0",))
def det(a: Tensor) -> jax.Array:
    """Determinant of matrices (..., n, n), shape (...)."""
    _matrix("det", a)
    _real("det", a)
    return jnp.linalg.det(a)


@op(name="_npi_slogdet", outputs=2)
def slogdet(a: Tensor) -> tuple[jax.Array, jax.Array]:
    """Sign, and logarithm of the absolute value, of the determinant of matrices (..., n, n), each of shape (...)."""
    _matrix("slogdet", a)
    _real("slogdet", a)
    sign, log = jnp.linalg.slogdet(a)
    return sign, log


@op(name="_npi_svd", outputs=3)
def svd(a: Tensor) -> tuple[jax.Array, ...]:
    """Singular values of matrices (..., m, n), m <= n: (ut, l, v) with a = ut · diag(l) · v.

    Shapes: ut (..., m, m), l (..., m) descending, v (..., m, n).
    """
    _matrix("svd", a, square=False)
    _real("svd", a)
    if a.shape[-2] > a.shape[-1]:
        raise ArgumentError(f"svd: a has shape {a.shape}: expected at most as many rows as columns")
    return tuple(jnp.linalg.svd(a, full_matrices=False))


def _symmetric(a: jax.Array, lower: bool) -> jax.Array:
    """The symmetric matrices that one triangle of `a` gives."""
    half = jnp.tril(a) if lower else jnp.triu(a)
    inner = jnp.tril(a, -1) if lower else jnp.triu(a, 1)
    return half + jnp.swapaxes(inner, -1, -2)


@op(name="_npi_eigh", outputs=2)
def eigh(a: Tensor, *, UPLO: Literal["L", "U"] = "L") -> tuple[jax.Array, jax.Array]:
    """Eigenvalues (..., n), ascending, and eigenvectors (columns of (..., n, n)) of symmetric matrices.

    Only the lower ("L") or upper ("U") triangle is read; integers become float64. The largest component of every
    eigenvector is positive.
    """
    _matrix("eigh", a)
    (a,) = _wide("eigh", a)
    values, vectors = jnp.linalg.eigh(_symmetric(a, UPLO == "L"), symmetrize_input=False)
    return values, jnp.swapaxes(turned(jnp.swapaxes(vectors, -1, -2)), -1, -2)


@op(name="_npi_eigvalsh")
def eigvalsh(a: Tensor, *, UPLO: Literal["L", "U"] = "L") -> jax.Array:
    """Eigenvalues (..., n), ascending, of symmetric matrices; see `_npi_eigh`."""
    _matrix("eigvalsh", a)
    (a,) = _wide("eigvalsh", a)
    return jnp.linalg.eigvalsh(_symmetric(a, UPLO == "L"), symmetrize_input=False)


def _real_parts(name: str, a: jax.Array, compute: Callable[[np.ndarray], Any]) -> tuple[jax.Array, ...]:
    """What `compute` returns, eigenvalues first, as real arrays."""
    _matrix(name, a)
    (wide,) = _wide(name, a)
    found = compute(np.asarray(wide))
    if np.any(np.abs(np.imag(found[0])) > 1e-15):
        raise ArgumentError(f"{name}: the matrix has complex eigenvalues: expected real ones only")
    return tuple(jnp.asarray(np.real(part).astype(wide.dtype)) for part in found)


@op(name="_npi_eig", dynamic=True, outputs=2)
def eig(a: Tensor) -> tuple[jax.Array, ...]:
    """Eigenvalues (..., n) and eigenvectors (columns of (..., n, n)) of general matrices, which must be real.

    Computed at once on the host; integers become float64.
    """
    return _real_parts("eig", a, np.linalg.eig)


@op(name="_npi_eigvals", dynamic=True)
def eigvals(a: Tensor) -> jax.Array:
    """Eigenvalues (..., n) of general matrices, which must be real; computed at once on the host."""
    return _real_parts("eigvals", a, lambda x: [np.linalg.eigvals(x)])[0]


@op(name="_npi_solve")
def solve(a: Tensor, b: Tensor) -> jax.Array:
    """Solve a x = b for x: a (..., n, n); b (..., n) if it has one axis less than `a`, else (..., n, k)."""
    _matrix("solve", a)
    a, b = _wide("solve", a, b)
    vector = b.ndim == a.ndim - 1
    rows = b.shape[-1 if vector else -2] if b.ndim >= 1 + (not vector) else None
    if rows != a.shape[-1]:
        raise ArgumentError(f"solve: b has shape {b.shape}: expected {a.shape[-1]} rows, as a {a.shape} has")
    found = jnp.linalg.solve(a, b[..., None] if vector else b)
    return found[..., 0] if vector else found


@op(name="_npi_pinv")
def pinv(a: Tensor, rcond: UntypedTensor) -> jax.Array:
    """Pseudo-inverse (..., n, m) of matrices (..., m, n).

    Singular values up to `rcond` times the largest count as 0. Integers become float64.
    """
    _matrix("pinv", a, square=False)
    (a,) = _wide("pinv", a)
    u, s, vt = jnp.linalg.svd(a, full_matrices=False)
    limit = (rcond.astype(s.dtype)[..., None] if rcond.ndim else rcond.astype(s.dtype)) * jnp.max(
        s, -1, keepdims=True, initial=0
    )
    kept = s > limit
    inverse = jnp.where(kept, 1 / jnp.where(kept, s, 1), 0)
    return jnp.swapaxes(vt, -1, -2) @ (inverse[..., None] * jnp.swapaxes(u, -1, -2))


@op(name="_npi_tensorinv")
def tensorinv(a: Tensor, *, ind: int = 2) -> jax.Array:
    """Inverse for `tensordot` over the first `ind` axes: shape a.shape[ind:] + a.shape[:ind]."""
    if ind <= 0:
        raise ArgumentError(f"tensorinv: ind={ind}: expected a positive number")
    first, second = a.shape[:ind], a.shape[ind:]
    if int(np.prod(first)) != int(np.prod(second)):
        raise ArgumentError(f"tensorinv: a has shape {a.shape}: expected as many elements before axis {ind} as behind")
    (a,) = _wide("tensorinv", a)
    return jnp.linalg.inv(a.reshape(int(np.prod(first)), -1)).reshape(second + first)


@op(name="_npi_tensorsolve")
def tensorsolve(a: Tensor, b: Tensor, *, a_axes: Axes = None) -> jax.Array:
    """Solve tensordot(a, x, x.ndim) = b for x, after moving the axes `a_axes` of `a` to its end."""
    axes = [k % a.ndim for k in a_axes or ()]
    a = jnp.transpose(a, [k for k in range(a.ndim) if k not in axes] + axes)
    shape = a.shape[b.ndim :]
    if int(np.prod(shape)) != b.size or a.size != b.size**2:
        raise ArgumentError(f"tensorsolve: a {a.shape} and b {b.shape} do not fit: expected a square system")
    a, b = _wide("tensorsolve", a, b)
    return jnp.linalg.solve(a.reshape(b.size, b.size), b.reshape(-1)).reshape(shape)


# MXNet's `flag`: which norm the text of `ord` in Python asked for.
WHOLE, NUMBER, MATRIX, FROBENIUS, NUCLEAR = -2, -1, 0, 1, 2
NORMS = {WHOLE: None, FROBENIUS: "fro", NUCLEAR: "nuc"}


@op(name="_npi_norm", output_names=("output0",))
def norm(a: Tensor, *, ord: float = 2, axis: Axes = None, keepdims: bool = False, flag: int = NUMBER) -> jax.Array:
    """Norm of vectors (one axis) or matrices (two axes); without `axis`, the last two axes are matrices.

    ord: for vectors any number, for matrices 1, -1, 2, -2, inf, -inf; others are those of the vector of all elements.
    flag: -2 for the 2-norm of all elements, 1 for the Frobenius norm, 2 for the nuclear norm, 0 (matrices) and -1 for
    the norm of order `ord`.
    """
    order = NORMS.get(flag, ord)
    axes = tuple(k + a.ndim if k < 0 else k for k in axis) if axis is not None else None
    if axes is not None and (len(axes) not in (1, 2) or any(not 0 <= k < a.ndim for k in axes)):
        raise ArgumentError(f"norm: axis={axis}: expected one or two axes of an array of shape {a.shape}")
    x = a.astype(jnp.float64) if a.dtype.kind in "biu" else a
    kept = [1] * a.ndim
    if axes is None and order is None:
        found = jnp.sqrt(jnp.sum(jnp.square(x)))
        return (found.reshape(kept) if keepdims else found).astype(a.dtype)
    if axes is None:
        axes = tuple(range(a.ndim))[-2:] if a.ndim >= 2 else tuple(range(a.ndim)) or ()
        x, axes = (x.reshape(1), (0,)) if not axes else (x, axes)
    if len(axes) == 1:
        if order == "nuc":
            raise ArgumentError("norm: ord='nuc': expected two axes for this order")
        found = jnp.linalg.norm(x, None if order == "fro" else order, axes[0], keepdims)
    elif isinstance(order, (int, float)) and abs(order) not in (1, 2, np.inf):
        moved = jnp.moveaxis(x, axes, (-2, -1))
        found = jnp.linalg.norm(moved.reshape(*moved.shape[:-2], -1), order, -1)
        found = jnp.expand_dims(found, axes) if keepdims else found
    else:
        found = jnp.linalg.norm(x, order, axes, keepdims)
    return found.reshape(()).astype(a.dtype) if not a.ndim else found.astype(a.dtype)
