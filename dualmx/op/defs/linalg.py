"""Matrix products, sums of products and linear algebra on stacks of matrices (the last two axes)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.errors import ArgumentError
from ..registry import op
from ..schema import Axes, Count, Shape, Tensor, UntypedTensor
from ..shape_rules import accumulator, many_axes, one_axis
from ..spatial import is_half
from ..traits import KEPT_RESULT, StorageRule, Traits, stored
from .binary import common

Storage = Literal["default", "csr", "row_sparse"] | None


def _contract(a: jax.Array, b: jax.Array, dims: Any) -> jax.Array:
    """`lax.dot_general`; sums of 16-bit floats are accumulated in float32."""
    return lax.dot_general(a, b, dims, preferred_element_type="float32" if is_half(a) else None).astype(a.dtype)


@op(traits=stored(StorageRule.MATRIX_PRODUCT, keeps_result=True))
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


@op(aliases=("_npx_batch_dot",), traits=KEPT_RESULT)
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


@op(aliases=("linalg_gemm",), floating=True, traits=KEPT_RESULT)
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


@op(aliases=("linalg_gemm2",), floating=True, traits=KEPT_RESULT)
def _linalg_gemm2(
    A: Tensor, B: Tensor, *, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0, axis: int = -2
) -> jax.Array:
    """alpha · op(A) · op(B), op being transposition if so asked; rows lie along `axis`, columns along the last."""
    return _scaled(_gemm(A, B, transpose_a, transpose_b, axis), alpha)


@op(
    aliases=("linalg_potrf",),
    traits=Traits(
        not_finite="_linalg_potrf: expected symmetric positive-definite matrices; "
        "this one has no finite Cholesky factor"
    ),
)
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


@op(
    aliases=("linalg_potri",),
    traits=Traits(not_finite="_linalg_potri: expected Cholesky factors; this one is singular"),
)
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


@op(
    aliases=("linalg_inverse",),
    traits=Traits(not_finite="_linalg_inverse: a matrix is singular, or its inverse is not finite"),
)
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
FLAT, NUMBER, MATRIX, FROBENIUS, NUCLEAR = -2, -1, 0, 1, 2
NORMS = {FLAT: None, FROBENIUS: "fro", NUCLEAR: "nuc"}


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


def _same_type(*arrays: jax.Array) -> list[jax.Array]:
    dtype = common(*(a.dtype for a in arrays))
    return [a.astype(dtype) for a in arrays]


def _check_contraction(
    name: str, lengths: tuple[int, ...], others: tuple[int, ...], shapes: tuple[object, object]
) -> None:
    if lengths != others:
        raise ArgumentError(
            f"{name}: shapes {shapes[0]} and {shapes[1]} not aligned: summed axes have lengths {lengths} and {others}"
        )


def tensordot(a: jax.Array, b: jax.Array, left: tuple[int, ...], right: tuple[int, ...]) -> jax.Array:
    """Sum products over pairs of axes, in float32 at least for half precision."""
    dtype = a.dtype
    if dtype == jnp.bool_:
        return jnp.tensordot(a.astype(jnp.int32), b.astype(jnp.int32), (left, right)) != 0
    return jnp.tensordot(a, b, (left, right), preferred_element_type=accumulator(dtype)).astype(dtype)


@op(traits=KEPT_RESULT)
def _np_dot(a: UntypedTensor, b: UntypedTensor) -> jax.Array:
    """Inner product of vectors, product of matrices; else the sum over the last axis of `a`, the last but one of `b`.

    a, b: mixed dtypes become a common one; a scalar multiplies.

    Raises:
        ArgumentError: the summed axes have different lengths.
    """
    a, b = _same_type(a, b)
    if not a.ndim or not b.ndim:
        return a * b
    right = max(b.ndim - 2, 0)
    _check_contraction("_np_dot", a.shape[-1:], b.shape[right : right + 1], (a.shape, b.shape))
    return tensordot(a, b, (a.ndim - 1,), (right,))


@op(output_names=("out",), traits=KEPT_RESULT)
def _npi_matmul(a: UntypedTensor, b: UntypedTensor) -> jax.Array:
    """Matrix product over the last two axes, the axes before broadcast; a vector is a row on the left, a column on the
    right, and its added axis is dropped again.

    Raises:
        ArgumentError: a scalar, lengths that do not match, or leading axes that do not broadcast.
    """
    if not a.ndim or not b.ndim:
        raise ArgumentError(f"_npi_matmul: shapes {a.shape} and {b.shape}: expected at least one axis; use multiply")
    a, b = _same_type(a, b)
    _check_contraction("_npi_matmul", a.shape[-1:], b.shape[-2:][:1], (a.shape, b.shape))
    try:
        jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ArgumentError(f"_npi_matmul: shapes {a.shape} and {b.shape}: leading axes do not broadcast") from None
    if a.dtype == jnp.bool_:
        return jnp.matmul(a.astype(jnp.int32), b.astype(jnp.int32)) != 0
    return jnp.matmul(a, b, preferred_element_type=accumulator(a.dtype)).astype(a.dtype)


@op(traits=KEPT_RESULT)
def _npi_tensordot(a: UntypedTensor, b: UntypedTensor, *, a_axes_summed: Shape, b_axes_summed: Shape) -> jax.Array:
    """Sum of products over the axes `a_axes_summed` of `a` and `b_axes_summed` of `b`, paired in order."""
    a, b = _same_type(a, b)
    left, right = many_axes(a_axes_summed, a.ndim, "a_axes_summed"), many_axes(b_axes_summed, b.ndim, "b_axes_summed")
    lengths = tuple(a.shape[i] for i in left), tuple(b.shape[i] for i in right)
    _check_contraction("_npi_tensordot", *lengths, (a.shape, b.shape))
    return tensordot(a, b, left, right)


@op(traits=KEPT_RESULT)
def _npi_tensordot_int_axes(a: UntypedTensor, b: UntypedTensor, *, axes: Count) -> jax.Array:
    """Sum of products over the last `axes` axes of `a` and as many first ones of `b`; 0 gives the outer product."""
    if axes > min(a.ndim, b.ndim):
        raise ArgumentError(f"_npi_tensordot_int_axes: axes={axes}: shapes {a.shape} and {b.shape} have fewer")
    a, b = _same_type(a, b)
    _check_contraction("_npi_tensordot_int_axes", a.shape[a.ndim - axes :], b.shape[:axes], (a.shape, b.shape))
    return tensordot(a, b, tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes)))


@op(traits=KEPT_RESULT)
def _npi_einsum(*data: UntypedTensor, num_args: Count = 0, subscripts: str = "", optimize: int = 0) -> jax.Array:
    """Einstein's sum of products as `subscripts` say: `"ij,jk->ik"` is a matrix product.

    data: as many arrays as `subscripts` has terms; mixed dtypes become a common one. optimize: accepted.
    """
    arrays = _same_type(*data)
    dtype = arrays[0].dtype
    wide = accumulator(dtype) if dtype != np.bool_ else np.dtype("int32")
    try:
        found = jnp.einsum(subscripts, *[a.astype(wide) for a in arrays], optimize="optimal")
    except (ValueError, TypeError, KeyError, AssertionError) as e:
        shapes = [a.shape for a in arrays]
        raise ArgumentError(f"_npi_einsum: subscripts={subscripts!r} on shapes {shapes}: {e}") from None
    return found.astype(dtype)


@op()
def _npi_kron(a: UntypedTensor, b: UntypedTensor) -> jax.Array:
    """Kronecker product: blocks `a[i, j] * b`."""
    return jnp.kron(*_same_type(a, b))
