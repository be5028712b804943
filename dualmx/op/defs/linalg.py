"""Products of arrays and linear algebra on stacks of matrices (the last two axes)."""

from __future__ import annotations

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.errors import ArgumentError
from ..axes import one_axis
from ..registry import op
from ..schema import Count, Tensor
from ..spatial import is_half

Storage = Literal["default", "csr", "row_sparse"] | None


def _contract(a: jax.Array, b: jax.Array, dims: Any) -> jax.Array:
    """`lax.dot_general`; sums of 16-bit floats are accumulated in float32."""
    return lax.dot_general(a, b, dims, preferred_element_type="float32" if is_half(a) else None).astype(a.dtype)


@op()
def dot(
    lhs: Tensor, rhs: Tensor, *, transpose_a: bool = False, transpose_b: bool = False, forward_stype: Storage = None
) -> jax.Array:
    """Sum of products over the last axis of `lhs` and the first of `rhs`.

    Shapes: (…, k) · (k, …) -> (…, …); vector · vector -> (1,). `transpose_a` contracts the first axis of `lhs`,
    `transpose_b` the last of `rhs`, instead. `forward_stype` asks for a storage type of the result and has no effect
    on dense arrays.
    """
    if not lhs.ndim or not rhs.ndim:
        raise ArgumentError(f"shapes {lhs.shape} and {rhs.shape}: expected at least one axis each")
    i, j = (0 if transpose_a else lhs.ndim - 1), (rhs.ndim - 1 if transpose_b else 0)
    if lhs.shape[i] != rhs.shape[j]:
        raise ArgumentError(
            f"shapes {lhs.shape} and {rhs.shape}: expected axis {i} of lhs and axis {j} of rhs to have equal lengths"
        )
    out = _contract(lhs, rhs, (((i,), (j,)), ((), ())))
    return out if out.ndim else out.reshape(1)


def _product(a: jax.Array, b: jax.Array, transpose_a: bool, transpose_b: bool) -> jax.Array:
    """Matrix product on the last two axes; the leading axes must be equal."""
    n = a.ndim
    i, j = n - 2 if transpose_a else n - 1, n - 1 if transpose_b else n - 2
    if n < 2 or b.ndim != n or a.shape[:-2] != b.shape[:-2] or a.shape[i] != b.shape[j]:
        raise ArgumentError(
            f"shapes {a.shape} and {b.shape}, transpose_a={transpose_a}, transpose_b={transpose_b}: "
            "expected equal leading axes and matrices that can be multiplied"
        )
    stack = tuple(range(n - 2))
    return _contract(a, b, (((i,), (j,)), (stack, stack)))


@op(aliases=("_npx_batch_dot",))
def batch_dot(
    lhs: Tensor, rhs: Tensor, *, transpose_a: bool = False, transpose_b: bool = False, forward_stype: Storage = None
) -> jax.Array:
    """Matrix products of two stacks: (b…, m, k) · (b…, k, n) -> (b…, m, n), each factor transposed if so asked."""
    if lhs.ndim < 3:
        raise ArgumentError(f"lhs has shape {lhs.shape}: expected at least 3 axes; use dot for single matrices")
    return _product(lhs, rhs, transpose_a, transpose_b)


@op()
def khatri_rao(*args: Tensor, num_args: Count = 0) -> jax.Array:
    """Column-wise Kronecker product: matrices (m1, n), (m2, n), … -> (m1·m2·…, n)."""
    if any(a.ndim != 2 or a.shape[1] != args[0].shape[-1] for a in args):
        raise ArgumentError(f"shapes {[a.shape for a in args]}: expected matrices with equal numbers of columns")
    out = args[0]
    for a in args[1:]:
        out = (out[:, None, :] * a[None, :, :]).reshape(-1, a.shape[1])
    return out


def _matrices(a: jax.Array, square: bool = True) -> None:
    if a.ndim < 2 or (square and a.shape[-1] != a.shape[-2]):
        raise ArgumentError(f"A has shape {a.shape}: expected {'square ' * square}matrices in the last two axes")


def _factored(a: jax.Array, square: bool = True) -> None:
    _matrices(a, square)
    if a.dtype not in (np.float32, np.float64):
        raise ArgumentError(f"A is {a.dtype}: expected float32 or float64; cast with .astype('float32')")


def _t(a: jax.Array) -> jax.Array:
    return jnp.swapaxes(a, -1, -2)


def _per_matrix(x: jax.Array) -> jax.Array:
    """One number per matrix has at least one axis."""
    return x if x.ndim else x.reshape(1)


def _gemm(a: jax.Array, b: jax.Array, ta: bool, tb: bool, axis: int) -> jax.Array:
    """Product of matrices whose rows lie along `axis` and whose columns along the last axis."""
    axis = one_axis(axis, a.ndim)
    if axis == a.ndim - 1 or a.ndim != b.ndim:
        raise ArgumentError(
            f"axis={axis}, shapes {a.shape} and {b.shape}: expected equally many axes, axis not the last"
        )
    a, b = jnp.moveaxis(a, axis, -2), jnp.moveaxis(b, axis, -2)
    return jnp.moveaxis(_product(a, b, ta, tb), -2, axis)


def _scaled(x: jax.Array, factor: float) -> jax.Array:
    return x if factor == 1.0 else x * jnp.asarray(factor, x.dtype)


@op(aliases=("linalg_gemm",), floating=True)
def _linalg_gemm(
    A: Tensor,
    B: Tensor,
    C: Tensor,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    beta: float = 1.0,
    axis: int = -2,
) -> jax.Array:
    """alpha · op(A) · op(B) + beta · C, op being transposition if so asked; C has the shape of the product.

    Rows of the matrices lie along `axis`, columns along the last axis, all other axes are batch axes.
    """
    out = _gemm(A, B, transpose_a, transpose_b, axis)
    if out.shape != C.shape:
        raise ArgumentError(f"C has shape {C.shape}: expected that of the product, {out.shape}")
    return _scaled(out, alpha) + _scaled(C, beta)


@op(aliases=("linalg_gemm2",), floating=True)
def _linalg_gemm2(
    A: Tensor, B: Tensor, *, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0, axis: int = -2
) -> jax.Array:
    """alpha · op(A) · op(B), op being transposition if so asked; rows lie along `axis`, columns along the last."""
    return _scaled(_gemm(A, B, transpose_a, transpose_b, axis), alpha)


@op(aliases=("linalg_potrf",))
def _linalg_potrf(A: Tensor, *, lower: bool = True) -> jax.Array:
    """Cholesky factor: the lower triangular L with positive diagonal and L · Lᵀ = A, A symmetric positive-definite.

    Unless `lower` it is the upper triangular Lᵀ. A matrix that is not positive-definite is an error, which array
    functions report when the result is waited for; inside executors and hybridized blocks it gives NaN.
    The gradient is symmetric.
    """
    _factored(A)
    return cholesky_factor(A) if lower else _t(cholesky_factor(_t(A)))


@jax.custom_vjp
def cholesky_factor(a: jax.Array) -> jax.Array:
    """Lower triangular L with L · Lᵀ = a; the gradient is symmetric."""
    return jnp.tril(lax.linalg.cholesky(a, symmetrize_input=False))


def _cholesky_fwd(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    low = cholesky_factor(a)
    return low, low


def _cholesky_bwd(low: jax.Array, g: jax.Array) -> tuple[jax.Array]:
    # dA = ½ L⁻ᵀ (P + Pᵀ - diag P) L⁻¹ with P = tril(Lᵀ dL).
    p = jnp.tril(_t(low) @ g)
    p = p + _t(jnp.tril(p, -1))
    solve = lax.linalg.triangular_solve
    right = solve(low, p, left_side=False, lower=True)
    return (solve(low, right, left_side=True, lower=True, transpose_a=True) * 0.5,)


cholesky_factor.defvjp(_cholesky_fwd, _cholesky_bwd)


@op(aliases=("linalg_potri",))
def _linalg_potri(A: Tensor, *, lower: bool = True) -> jax.Array:
    """Inverse (L · Lᵀ)⁻¹ from the Cholesky factor `A`: the lower triangular L or, unless `lower`, Lᵀ."""
    _factored(A)
    A = A if lower else _t(A)
    eye = jnp.broadcast_to(jnp.eye(A.shape[-1], dtype=A.dtype), A.shape)
    low = lax.linalg.triangular_solve(A, eye, left_side=True, lower=True)
    return _product(low, low, True, False)


def _fits(a: jax.Array, b: jax.Array, rightside: bool) -> None:
    _matrices(a)
    if a.ndim != b.ndim or a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-1 if rightside else -2]:
        raise ArgumentError(f"shapes {a.shape} and {b.shape}, rightside={rightside}: expected matrices that fit")


@op(aliases=("linalg_trsm",))
def _linalg_trsm(
    A: Tensor, B: Tensor, *, transpose: bool = False, rightside: bool = False, lower: bool = True, alpha: float = 1.0
) -> jax.Array:
    """Solve op(A) · X = alpha · B (`rightside`: X · op(A)) for X; A triangular, its other triangle is not read."""
    _factored(A)
    _fits(A, B, rightside)
    return lax.linalg.triangular_solve(
        A, _scaled(B, alpha), left_side=not rightside, lower=lower, transpose_a=transpose
    )


@op(aliases=("linalg_trmm",), floating=True)
def _linalg_trmm(
    A: Tensor, B: Tensor, *, transpose: bool = False, rightside: bool = False, lower: bool = True, alpha: float = 1.0
) -> jax.Array:
    """alpha · op(A) · B (`rightside`: B · op(A)); A triangular, its other triangle is not read."""
    _fits(A, B, rightside)
    a = jnp.tril(A) if lower else jnp.triu(A)
    return _scaled(_product(B, a, False, transpose) if rightside else _product(a, B, transpose, False), alpha)


@op(aliases=("linalg_syrk",), floating=True)
def _linalg_syrk(A: Tensor, *, transpose: bool = False, alpha: float = 1.0) -> jax.Array:
    """alpha · A · Aᵀ, or alpha · Aᵀ · A with `transpose`."""
    _matrices(A, square=False)
    return _scaled(_product(A, A, transpose, not transpose), alpha)


@op(aliases=("linalg_sumlogdiag",), floating=True)
def _linalg_sumlogdiag(A: Tensor) -> jax.Array:
    """Sum of the logarithms of the diagonal: (…, n, n) -> (…), (1,) for a single matrix."""
    _matrices(A)
    return _per_matrix(jnp.sum(jnp.log(jnp.diagonal(A, axis1=-2, axis2=-1)), -1))


@op(aliases=("linalg_extractdiag",), floating=True)
def _linalg_extractdiag(A: Tensor, *, offset: int = 0) -> jax.Array:
    """Read diagonal `offset` (positive above the main one): (…, n, n) -> (…, n - |offset|)."""
    _matrices(A)
    if abs(offset) >= A.shape[-1]:
        raise ArgumentError(f"offset={offset}: there is no such diagonal in {A.shape[-2:]}")
    return jnp.diagonal(A, offset, -2, -1)


def _placed(values: jax.Array, rows: np.ndarray, columns: np.ndarray, n: int) -> jax.Array:
    zeros = jnp.zeros((*values.shape[:-1], n, n), values.dtype)
    return zeros.at[..., rows, columns].set(values, unique_indices=True)


@op(aliases=("linalg_makediag",), floating=True)
def _linalg_makediag(A: Tensor, *, offset: int = 0) -> jax.Array:
    """Matrices with `A` on diagonal `offset` and 0 elsewhere: (…, n) -> (…, n + |offset|, n + |offset|)."""
    if not A.ndim:
        raise ArgumentError("A has no axes: expected at least 1")
    i = np.arange(A.shape[-1])
    return _placed(A, i + max(-offset, 0), i + max(offset, 0), A.shape[-1] + abs(offset))


def _triangle(n: int, offset: int, lower: bool) -> tuple[np.ndarray, np.ndarray]:
    """Row and column numbers of a packed triangle: lower ones row by row, upper ones column by column.

    A negative offset means a lower triangle, a positive one an upper triangle, whatever `lower` says.
    """
    rows, columns = np.tril_indices(n, -abs(offset))
    return (rows, columns) if offset < 0 or (offset == 0 and lower) else (columns, rows)


@op(aliases=("linalg_extracttrian",), floating=True)
def _linalg_extracttrian(A: Tensor, *, offset: int = 0, lower: bool = True) -> jax.Array:
    """Pack the triangle at diagonal `offset` into a vector: (…, n, n) -> (…, m·(m+1)/2), m = n - |offset|.

    A lower triangle (`offset` < 0, or 0 and `lower`) is packed row by row, an upper one column by column.
    """
    _matrices(A)
    if abs(offset) >= A.shape[-1]:
        raise ArgumentError(f"offset={offset}: there is no such diagonal in {A.shape[-2:]}")
    rows, columns = _triangle(A.shape[-1], offset, lower)
    return A[..., rows, columns]


@op(aliases=("linalg_maketrian",), floating=True)
def _linalg_maketrian(A: Tensor, *, offset: int = 0, lower: bool = True) -> jax.Array:
    """Unpack what `linalg_extracttrian` packed into matrices that are 0 elsewhere: (…, m·(m+1)/2) -> (…, n, n)."""
    size = A.shape[-1] if A.ndim else 0
    m = int((8 * size + 1) ** 0.5 - 1) // 2
    if not size or m * (m + 1) // 2 != size:
        raise ArgumentError(f"A has shape {A.shape}: expected a last axis of length m·(m+1)/2")
    n = m + abs(offset)
    rows, columns = _triangle(n, offset, lower)
    return _placed(A, rows, columns, n)


@op(aliases=("linalg_inverse",))
def _linalg_inverse(A: Tensor) -> jax.Array:
    """Inverse of every square matrix; a singular one gives inf or NaN."""
    _factored(A)
    return jnp.linalg.inv(A)


@op(aliases=("linalg_det",), output_names=("output0",))
def _linalg_det(A: Tensor) -> jax.Array:
    """Determinant: (…, n, n) -> (…), (1,) for a single matrix."""
    _factored(A)
    return _per_matrix(jnp.linalg.det(A))


@op(aliases=("linalg_slogdet",), outputs=2)
def _linalg_slogdet(A: Tensor) -> tuple[jax.Array, ...]:
    """Sign of the determinant and logarithm of its absolute value, each (…), (1,) for a single matrix."""
    _factored(A)
    sign, logdet = jnp.linalg.slogdet(A)
    return _per_matrix(sign), _per_matrix(logdet)


@op(aliases=("linalg_gelqf",), outputs=2)
def _linalg_gelqf(A: Tensor) -> tuple[jax.Array, ...]:
    """LQ factorisation A = L · Q of (…, m, n), m ≤ n: returns Q (…, m, n) with orthonormal rows and L (…, m, m)."""
    _factored(A, square=False)
    if A.shape[-2] > A.shape[-1]:
        raise ArgumentError(f"A has shape {A.shape}: expected no more rows than columns")
    q, r = jnp.linalg.qr(_t(A))
    return _t(q), _t(r)


@op(outputs=2)
def _linalg_syevd(A: Tensor) -> tuple[jax.Array, ...]:
    """Eigenvectors and eigenvalues of symmetric matrices: A = Uᵀ · diag(L) · U.

    Returns U (…, n, n), whose rows are the eigenvectors, and L (…, n) in ascending order. The lower triangle is read.
    The largest component of every eigenvector is positive. The gradient is symmetric.
    """
    _factored(A)
    values, vectors = jnp.linalg.eigh(_from_lower(A), symmetrize_input=False)
    return turned(_t(vectors)), values


@jax.custom_vjp
def _from_lower(a: jax.Array) -> jax.Array:
    """The symmetric matrix whose lower triangle is that of `a`, as which all of `a` counts in the gradient."""
    low = jnp.tril(a)
    return low + _t(jnp.tril(a, -1))


_from_lower.defvjp(lambda a: (_from_lower(a), None), lambda _, g: ((g + _t(g)) * 0.5,))


def turned(rows: jax.Array) -> jax.Array:
    """Eigenvectors, one per row, of the sign that makes the largest component positive."""
    peak = jnp.take_along_axis(rows, jnp.argmax(jnp.abs(rows), -1, keepdims=True), -1)
    return rows * lax.stop_gradient(jnp.where(peak < 0, -1, 1).astype(rows.dtype))
