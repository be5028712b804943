"""NumPy's sums of products: dot, matmul, tensordot, einsum and their kin."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ...core.errors import ArgumentError
from ..axes import many_axes
from ..registry import op
from ..schema import Count, Shape, UntypedTensor
from .np_pairs import common
from .rules import accumulator


def _same_type(*arrays: jax.Array) -> list[jax.Array]:
    dtype = common(*(a.dtype for a in arrays))
    return [a.astype(dtype) for a in arrays]


def _contract(name: str, lengths: tuple[int, ...], others: tuple[int, ...], shapes: tuple[object, object]) -> None:
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


@op()
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
    _contract("_np_dot", a.shape[-1:], b.shape[right : right + 1], (a.shape, b.shape))
    return tensordot(a, b, (a.ndim - 1,), (right,))


@op(output_names=("out",))
def _npi_matmul(a: UntypedTensor, b: UntypedTensor) -> jax.Array:
    """Matrix product over the last two axes, the axes before broadcast; a vector is a row on the left, a column on the
    right, and its added axis is dropped again.

    Raises:
        ArgumentError: a scalar, lengths that do not match, or leading axes that do not broadcast.
    """
    if not a.ndim or not b.ndim:
        raise ArgumentError(f"_npi_matmul: shapes {a.shape} and {b.shape}: expected at least one axis; use multiply")
    a, b = _same_type(a, b)
    _contract("_npi_matmul", a.shape[-1:], b.shape[-2:][:1], (a.shape, b.shape))
    try:
        jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ArgumentError(f"_npi_matmul: shapes {a.shape} and {b.shape}: leading axes do not broadcast") from None
    if a.dtype == jnp.bool_:
        return jnp.matmul(a.astype(jnp.int32), b.astype(jnp.int32)) != 0
    return jnp.matmul(a, b, preferred_element_type=accumulator(a.dtype)).astype(a.dtype)


@op()
def _npi_tensordot(a: UntypedTensor, b: UntypedTensor, *, a_axes_summed: Shape, b_axes_summed: Shape) -> jax.Array:
    """Sum of products over the axes `a_axes_summed` of `a` and `b_axes_summed` of `b`, paired in order."""
    a, b = _same_type(a, b)
    left, right = many_axes(a_axes_summed, a.ndim, "a_axes_summed"), many_axes(b_axes_summed, b.ndim, "b_axes_summed")
    lengths = tuple(a.shape[i] for i in left), tuple(b.shape[i] for i in right)
    _contract("_npi_tensordot", *lengths, (a.shape, b.shape))
    return tensordot(a, b, left, right)


@op()
def _npi_tensordot_int_axes(a: UntypedTensor, b: UntypedTensor, *, axes: Count) -> jax.Array:
    """Sum of products over the last `axes` axes of `a` and as many first ones of `b`; 0 gives the outer product."""
    if axes > min(a.ndim, b.ndim):
        raise ArgumentError(f"_npi_tensordot_int_axes: axes={axes}: shapes {a.shape} and {b.shape} have fewer")
    a, b = _same_type(a, b)
    _contract("_npi_tensordot_int_axes", a.shape[a.ndim - axes :], b.shape[:axes], (a.shape, b.shape))
    return tensordot(a, b, tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes)))


@op()
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
