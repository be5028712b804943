"""Sums of products."""

from __future__ import annotations

from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError
from .array import ndarray
from .calls import as_array, axes_of, axis_of, call_op


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


__all__ = ["dot", "einsum", "inner", "kron", "matmul", "outer", "tensordot", "trace", "vdot"]
