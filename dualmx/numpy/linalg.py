"""`mx.np.linalg` and sums of products; matrices are in the last two axes."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..core.errors import ArgumentError, ArgumentTypeError
from ..ndarray.handle import invoke
from ..ndarray.value_checks import record_check, stays_finite
from ..op.defs.linalg import FLAT, FROBENIUS, MATRIX, NUCLEAR, NUMBER
from ..op.registry import OPS
from ..symbol import Symbol
from .call import (
    array_from_values,
    as_array,
    axes_of,
    axis_of,
    call_op,
    call_op_all,
    is_number,
    is_symbolic,
    symbol_node,
)
from .fallback import wrap_host_function
from .np_ndarray import as_np_class, ndarray

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
    flag, order = FROBENIUS if axes else FLAT, 2.0
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


def dot(a: Any, b: Any, out: Any = None) -> ndarray:
    """Return the inner product of vectors, the product of matrices; else the sum over the last axis of `a` and the last
    but one of `b`.

    Example:
        >>> import dualmx as mx
        >>> mx.np.dot(mx.np.arange(3), mx.np.arange(3))
        array(5.)
    """
    return call_op("_np_dot", as_array(a, "dot"), as_array(b, "dot", "b", a), out=out)


def matmul(a: Any, b: Any, out: Any = None, **kwargs: Any) -> ndarray:
    """Return the matrix product over the last two axes, the others broadcast."""
    if kwargs:
        raise ArgumentTypeError(f"matmul: unexpected argument {next(iter(kwargs))!r}")
    return call_op("_npi_matmul", as_array(a, "matmul"), as_array(b, "matmul", "b", a), out=out)


def tensordot(a: Any, b: Any, axes: Any = 2) -> ndarray:
    """Return the sum of products over pairs of axes: the last `axes` of `a` with the first of `b`, or two lists."""
    x, y = as_array(a, "tensordot"), as_array(b, "tensordot", "b", a)
    if isinstance(axes, int):
        return call_op("_npi_tensordot_int_axes", x, y, axes=axes)
    if len(axes) != 2:
        raise ArgumentError(f"tensordot: axes={axes!r}: expected a number or two lists of axes")
    left, right = (axes_of(a, "tensordot") for a in axes)
    if len(left) != len(right):
        raise ArgumentError(f"tensordot: axes={axes!r}: expected equally many axes")
    return call_op("_npi_tensordot", x, y, a_axes_summed=left, b_axes_summed=right)


def inner(a: Any, b: Any) -> ndarray:
    """Return the sum of products over the last axes."""
    x, y = as_array(a, "inner"), as_array(b, "inner", "b", a)
    return x * y if not x.ndim or not y.ndim else tensordot(x, y, ((-1,), (-1,)))


def outer(a: Any, b: Any) -> ndarray:
    """Return the products of every element of `a` with every element of `b`, both flattened."""
    x, y = as_array(a, "outer"), as_array(b, "outer", "b", a)
    return tensordot(call_op("_np_reshape", x, newshape=(-1,)), call_op("_np_reshape", y, newshape=(-1,)), 0)


def vdot(a: Any, b: Any) -> ndarray:
    """Return the sum of the products of all elements, both arrays flattened."""
    x, y = as_array(a, "vdot"), as_array(b, "vdot", "b", a)
    return dot(call_op("_np_reshape", x, newshape=(-1,)), call_op("_np_reshape", y, newshape=(-1,)))


def kron(a: Any, b: Any) -> ndarray:
    """Return the Kronecker product: blocks `a[i, j] * b`."""
    return call_op("_npi_kron", as_array(a, "kron"), as_array(b, "kron", "b", a))


def einsum(*operands: Any, **kwargs: Any) -> ndarray:
    """Return Einstein's sum of products: `einsum("ij,jk->ik", a, b)` is a matrix product.

    Args:
        operands: the subscripts, then the arrays.
        kwargs: `out`; `optimize`, accepted (the order is always chosen well).

    Example:
        >>> import dualmx as mx
        >>> mx.np.einsum("ii", mx.np.eye(3))
        array(3.)
    """
    out, _ = kwargs.pop("out", None), kwargs.pop("optimize", False)
    if kwargs:
        raise ArgumentTypeError(f"einsum: unexpected argument {next(iter(kwargs))!r}")
    if not operands or not isinstance(operands[0], str):
        raise ArgumentTypeError("einsum: operands: expected the subscripts as text, then the arrays")
    arrays = [as_array(a, "einsum", f"operand {i}") for i, a in enumerate(operands[1:])]
    return call_op("_npi_einsum", *arrays, out=out, num_args=len(arrays), subscripts=operands[0])


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, out: Any = None) -> ndarray:
    """Return the sums along the diagonals of the matrices that two axes span."""
    x = as_array(a, "trace")
    first, second = axis_of(axis1, x, "trace"), axis_of(axis2, x, "trace")
    return call_op("_np_trace", x, out=out, offset=offset, axis1=first, axis2=second)


__all__ = [
    "cholesky",
    "cond",
    "det",
    "dot",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "einsum",
    "inner",
    "inv",
    "kron",
    "lstsq",
    "matmul",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vdot",
]
