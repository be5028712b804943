"""Linear algebra: `mx.np.linalg`. Stacks of matrices are in the last two axes."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..core.errors import ArgumentError, ArgumentTypeError
from ..ndarray.handle import invoke
from ..ndarray.verify import record_check, stays_finite
from ..op.defs.np_linalg import FROBENIUS, MATRIX, NUCLEAR, NUMBER, WHOLE
from ..op.registry import OPS
from ..symbol import Symbol
from .array import as_np_class, ndarray
from .calls import array_from_values, as_array, axes_of, call_op, call_op_all, is_number, is_symbolic, symbol_node
from .fallback import wrap_host_function

_NO_FACTOR = stays_finite("cholesky: expected symmetric positive-definite matrices; this one has no finite factor")
_NO_INVERSE = stays_finite("inv: a matrix is singular, or its inverse is not finite")
_NO_SOLUTION = stays_finite("solve: a matrix is singular, or the solution is not finite")


def _checked(name: str, condition: Any, *arrays: Any, **params: Any) -> ndarray:
    if is_symbolic(arrays):
        return symbol_node(name, arrays, params, None)
    call = OPS[name].call(**params)
    outs = invoke(call, arrays)
    if outs[0].size:
        record_check(condition, call, arrays, outs)
    return as_np_class(outs[0])


def _parts(found: list[Any]) -> Any:
    """Several results: a tuple of arrays, or, as MXNet has them, a list of symbols."""
    return found if is_symbolic(found) else tuple(found)


def cholesky(a: Any) -> ndarray:
    """Return the lower triangular L with L Lᵀ = a of symmetric positive-definite matrices (..., n, n).

    Raises:
        MXNetError: at the next sync point, a matrix is not positive-definite.

    Example:
        >>> import dualmx as mx
        >>> mx.np.linalg.cholesky(mx.np.array([[4.0, 2.0], [2.0, 2.0]]))
        array([[2., 0.],
               [1., 1.]])
    """
    return _checked("_npi_cholesky", _NO_FACTOR, as_array(a, "cholesky"))


def inv(a: Any) -> ndarray:
    """Return the inverse of matrices (..., n, n); at the next sync point `MXNetError` if one is singular."""
    return _checked("_npi_inv", _NO_INVERSE, as_array(a, "inv"))


def det(a: Any) -> ndarray:
    """Return the determinants (...) of matrices (..., n, n)."""
    return call_op("_npi_det", as_array(a, "det"))


def slogdet(a: Any) -> list[ndarray]:
    """Return sign and logarithm of the absolute value of the determinants of matrices (..., n, n), as a list."""
    return call_op_all("_npi_slogdet", as_array(a, "slogdet"))


def svd(a: Any) -> tuple[ndarray, ndarray, ndarray]:
    """Return (ut, l, v) with a = ut · diag(l) · v of matrices (..., m, n) with m <= n.

    Raises:
        ArgumentError: more rows than columns.

    Example:
        >>> import dualmx as mx
        >>> mx.np.linalg.svd(mx.np.array([[3.0, 0.0], [0.0, 4.0]]))[1]
        array([4., 3.])
    """
    return _parts(call_op_all("_npi_svd", as_array(a, "svd")))


def eig(a: Any) -> tuple[ndarray, ndarray]:
    """Return eigenvalues and eigenvectors (columns) of matrices (..., n, n) with real eigenvalues.

    Raises:
        ArgumentError: an eigenvalue is complex.
    """
    return _parts(call_op_all("_npi_eig", as_array(a, "eig")))


def eigvals(a: Any) -> ndarray:
    """Return the eigenvalues of matrices (..., n, n), which must be real; raises like `eig`."""
    return call_op("_npi_eigvals", as_array(a, "eigvals"))


def eigh(a: Any, UPLO: str = "L") -> tuple[ndarray, ndarray]:
    """Return eigenvalues, ascending, and eigenvectors (columns) of symmetric matrices, of which one triangle is read.

    Example:
        >>> import dualmx as mx
        >>> mx.np.linalg.eigh(mx.np.array([[2.0, 0.0], [0.0, 1.0]]))[0]
        array([1., 2.])
    """
    return _parts(call_op_all("_npi_eigh", as_array(a, "eigh"), UPLO=UPLO))


def eigvalsh(a: Any, UPLO: str = "L") -> ndarray:
    """Return the eigenvalues, ascending, of symmetric matrices, of which one triangle is read."""
    return call_op("_npi_eigvalsh", as_array(a, "eigvalsh"), UPLO=UPLO)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> ndarray:
    """Return a norm of vectors (one axis) or matrices (two axes), of all elements without `ord` and `axis`.

    Args:
        x: array.
        ord: None (2-norm, Frobenius), "fro", "nuc", or a number such as 1, -2, inf.
        axis: an int or a tuple of one or two ints; the last two axes (or the only one) if there is an order.
        keepdims: keep the axes with length 1.

    Raises:
        ArgumentError: an unknown order, or more than two axes. ArgumentTypeError: `axis` is no int or tuple of ints.

    Example:
        >>> import dualmx as mx
        >>> mx.np.linalg.norm(mx.np.array([3.0, 4.0]))
        array(5.)
    """
    if isinstance(axis, list):
        raise ArgumentTypeError(f"norm: axis={axis}: expected None, an int or a tuple of ints")
    array, axes = as_array(x, "norm", "x"), axes_of(axis, "norm")
    flag, order = FROBENIUS if axes else WHOLE, 2.0
    if ord is not None:
        flag = {"fro": FROBENIUS, "nuc": NUCLEAR}.get(str(ord), MATRIX if len(axes or ()) == 2 else NUMBER)
    if flag in (MATRIX, NUMBER):
        try:
            order = float(str(ord))
        except (TypeError, ValueError):
            raise ArgumentError(f"norm: ord={ord!r}: expected None, 'fro', 'nuc' or a number") from None
    if isinstance(array, Symbol) and axes and flag in (MATRIX, NUMBER):
        composed = _composed_norm(array, order, axes, keepdims)
        if composed is not None:
            return composed
    return call_op("_npi_norm", array, ord=order, axis=axes, keepdims=keepdims, flag=flag)


def _composed_norm(x: Any, order: float, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Norms of order 1 (matrices) and inf as nodes of sums and extremes: MXNet's operator does not have them."""
    infinite, matrix = abs(order) == onp.inf, len(axes) == 2
    if not infinite and not (matrix and abs(order) == 1):
        return None
    sizes = call_op("_npi_absolute", x)
    if matrix:
        sizes = call_op("_np_sum", sizes, axis=axes[1:] if infinite else axes[:1], keepdims=True)
    return call_op("_np_max" if order > 0 else "_np_min", sizes, axis=axes, keepdims=keepdims)


def solve(a: Any, b: Any) -> ndarray:
    """Return x with a x = b: a (..., n, n), b (..., n) or (..., n, k).

    Raises:
        MXNetError: at the next sync point, a matrix is singular.
    """
    x = as_array(a, "solve")
    return _checked("_npi_solve", _NO_SOLUTION, x, as_array(b, "solve", "b", x))


def pinv(a: Any, rcond: Any = 1e-15, hermitian: bool = False) -> ndarray:
    """Return the pseudo-inverse (..., n, m) of matrices (..., m, n).

    Args:
        a: matrices.
        rcond: singular values up to this times the largest count as 0; a number or an array.
        hermitian: not supported.

    Raises:
        NotImplementedError: `hermitian`.
    """
    if hermitian:
        raise NotImplementedError("pinv: hermitian=True is not supported")
    x = as_array(a, "pinv")
    if is_symbolic((x,)) and is_number(rcond):
        return call_op("_npi_pinv_scalar_rcond", x, rcond=float(rcond))
    limit: Any = (
        rcond if isinstance(rcond, (ndarray, Symbol)) else array_from_values(onp.asarray(rcond, onp.float32), x.context)
    )
    return call_op("_npi_pinv", x, limit)


def tensorinv(a: Any, ind: int = 2) -> ndarray:
    """Return the inverse of `a` for `tensordot` over the first `ind` axes."""
    return _checked("_npi_tensorinv", _NO_INVERSE, as_array(a, "tensorinv"), ind=ind)


def tensorsolve(a: Any, b: Any, axes: Any = None) -> ndarray:
    """Return x with tensordot(a, x, x.ndim) = b, after moving `axes` of `a` to its end."""
    x = as_array(a, "tensorsolve")
    y = as_array(b, "tensorsolve", "b", x)
    return _checked("_npi_tensorsolve", _NO_SOLUTION, x, y, a_axes=axes_of(axes, "tensorsolve"))


cond, lstsq, matrix_power, matrix_rank, multi_dot, qr = (
    wrap_host_function(name, getattr(onp.linalg, name))
    for name in ("cond", "lstsq", "matrix_power", "matrix_rank", "multi_dot", "qr")
)

__all__ = [
    "cholesky", "cond", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matrix_power", "matrix_rank",
    "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "svd", "tensorinv", "tensorsolve",
]  # fmt: skip
