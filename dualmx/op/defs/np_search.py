"""NumPy's functions that choose, find, order and insert elements."""

from __future__ import annotations

from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from ...core.errors import ArgumentError
from ..axes import one_axis
from ..registry import op
from ..schema import ABSENT, Count, Shape, Tensor, UntypedTensor, When
from .np_pairs import common
from .reduce import OneAxis
from .rules import convert
from .window import as_index


def _spread(name: str, *arrays: jax.Array) -> list[jax.Array]:
    try:
        return jnp.broadcast_arrays(*arrays)
    except ValueError:
        raise ArgumentError(f"{name}: shapes {[a.shape for a in arrays]} do not broadcast") from None


@op()
def _npi_where(condition: UntypedTensor, x: UntypedTensor, y: UntypedTensor) -> jax.Array:
    """Choose `x` where `condition` is not 0, else `y`; the shapes broadcast, mixed dtypes become a common one."""
    dtype = common(x.dtype, y.dtype)
    chosen, x, y = _spread("_npi_where", condition != 0, x.astype(dtype), y.astype(dtype))
    return jnp.where(chosen, x, y)


@op()
def _npi_where_lscalar(condition: UntypedTensor, x: Tensor, *, scalar: float = 0.0) -> jax.Array:
    """Choose `scalar` where `condition` is not 0, else `x`, in the dtype of `x`."""
    chosen, x = _spread("_npi_where_lscalar", condition != 0, x)
    return jnp.where(chosen, convert(jnp.asarray(scalar, jnp.float64), x.dtype), x)


@op()
def _npi_where_rscalar(condition: UntypedTensor, y: Tensor, *, scalar: float = 0.0) -> jax.Array:
    """Choose `y` where `condition` is not 0, else `scalar`, in the dtype of `y`."""
    chosen, y = _spread("_npi_where_rscalar", condition != 0, y)
    return jnp.where(chosen, y, convert(jnp.asarray(scalar, jnp.float64), y.dtype))


@op()
def _npi_where_scalar2(condition: UntypedTensor, *, x: float = 0.0, y: float = 0.0) -> jax.Array:
    """Choose `x` where `condition` is not 0, else `y`, as float32."""
    return jnp.where(condition != 0, jnp.float32(x), jnp.float32(y))


@op(dynamic=True)
def _npx_nonzero(x: UntypedTensor) -> jax.Array:
    """Coordinates (n, ndim), int64, of the elements that are not 0, in order; computed at once.

    A 0-d array counts as one of shape (1,).
    """
    return jnp.stack(jnp.nonzero(jnp.atleast_1d(x)), -1).astype(jnp.int64)


def _unique_count(p: Any) -> int:
    return 1 + p.return_index + p.return_inverse + p.return_counts


@op(dynamic=True, outputs=_unique_count)
def _npi_unique(
    data: Tensor,
    *,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: OneAxis = None,
) -> tuple[jax.Array, ...]:
    """Sorted different elements (or slices along `axis`), and on demand, as int64: where each occurs first, which one
    every element is, how often each occurs; computed at once."""
    found = np.unique(np.asarray(data), return_index, return_inverse, return_counts, axis)
    if not isinstance(found, tuple):
        return (jnp.asarray(found),)
    first, *rest = found
    return (jnp.asarray(first), *(jnp.asarray(r.reshape(-1).astype(np.int64)) for r in rest))


@op(dynamic=True)
def _npi_bincount(
    data: UntypedTensor,
    weights: Annotated[UntypedTensor, When("has_weights", True)] = ABSENT,
    *,
    minlength: Count = 0,
    has_weights: bool = False,
) -> jax.Array:
    """How often each whole number from 0 on occurs in a vector, or the sum of its weights; computed at once.

    data: (n,) of integers; weights: (n,). The result has `max(data) + 1` elements, at least `minlength`, in the dtype
    of the weights or else of the data.
    """
    numbers = np.asarray(data)
    if numbers.ndim != 1 or numbers.dtype.kind not in "biu":
        raise ArgumentError(
            f"_npi_bincount: data is {numbers.dtype}{list(numbers.shape)}: expected a vector of integers"
        )
    if numbers.size and numbers.min() < 0:
        raise ArgumentError(f"_npi_bincount: data holds {numbers.min()}: expected numbers of 0 or more")
    given = None if weights is None else np.asarray(weights)
    if given is not None and given.shape != numbers.shape:
        raise ArgumentError(f"_npi_bincount: weights has shape {given.shape}: expected {numbers.shape}")
    dtype = numbers.dtype if given is None else given.dtype
    return jnp.asarray(np.bincount(numbers, given, minlength).astype(dtype))


@op()
def _npi_diff(a: Tensor, *, n: Count = 1, axis: int = -1) -> jax.Array:
    """Differences of neighbours along `axis`, `n` times; the axis becomes `n` shorter."""
    axis = one_axis(axis, a.ndim)
    for _ in range(n):
        low = jax.lax.slice_in_dim(a, 0, max(a.shape[axis] - 1, 0), axis=axis)
        high = jax.lax.slice_in_dim(a, min(1, a.shape[axis]), None, axis=axis)
        a = high != low if a.dtype == jnp.bool_ else high - low
    return a


@op()
def _npi_ediff1d(
    input1: Tensor,
    input2: Annotated[UntypedTensor, When("to_begin_arr_given", True)] = ABSENT,
    input3: Annotated[UntypedTensor, When("to_end_arr_given", True)] = ABSENT,
    *,
    to_begin_arr_given: bool = False,
    to_end_arr_given: bool = False,
    to_begin_scalar: float | None = None,
    to_end_scalar: float | None = None,
) -> jax.Array:
    """Differences of neighbours in the flattened array, with elements before and after them; dtype of the array."""
    flat = input1.reshape(-1)
    parts = [flat[1:] - flat[:-1]]
    for given, number, at in ((input2, to_begin_scalar, 0), (input3, to_end_scalar, len(parts))):
        if given is not None:
            parts.insert(at and len(parts), given.reshape(-1).astype(flat.dtype))
        elif number is not None:
            parts.insert(at and len(parts), jnp.full((1,), number).astype(flat.dtype))
    return jnp.concatenate(parts)


@op()
def _npi_polyval(p: UntypedTensor, x: UntypedTensor) -> jax.Array:
    """Value at `x` of the polynomial with coefficients `p`, that of the highest power first."""
    if p.ndim != 1:
        raise ArgumentError(f"_npi_polyval: p has shape {p.shape}: expected a vector of coefficients")
    dtype = common(p.dtype, x.dtype)
    value = jnp.zeros(x.shape, dtype)
    for k in range(p.shape[0]):
        value = value * x.astype(dtype) + p[k].astype(dtype)
    return value


@op()
def _np_take_along_axis(arr: Tensor, indices: UntypedTensor, *, axis: int = 0) -> jax.Array:
    """Read elements along `axis` at positions that differ from slice to slice; negative ones count from the end."""
    if indices.ndim != arr.ndim:
        raise ArgumentError(f"_np_take_along_axis: shapes {arr.shape} and {indices.shape}: expected equally many axes")
    return jnp.take_along_axis(arr, as_index(indices), one_axis(axis, arr.ndim))


@op()
def _npi_interp(
    x: UntypedTensor, xp: UntypedTensor, fp: UntypedTensor, *, left: float | None = None, right: float | None = None
) -> jax.Array:
    """Piecewise linear function through the points (`xp`, `fp`) at `x`, in float64; xp ascends."""
    wide = [a.astype(jnp.float64) for a in (x, xp, fp)]
    if xp.ndim != 1 or xp.shape != fp.shape or not xp.shape[0]:
        raise ArgumentError(f"_npi_interp: xp has shape {xp.shape}, fp {fp.shape}: expected equal vectors")
    return jnp.interp(*wide, left=left, right=right)


@op()
def _npi_positions(data: Tensor, *, at: Shape, axis: int = 0) -> jax.Array:
    """Slices of `data` along `axis` at fixed positions; a position of -1 gives zeros."""
    axis = one_axis(axis, data.ndim)
    index = np.asarray(at, np.int64)
    found = jnp.take(data, np.maximum(index, 0), axis=axis)
    if not (index < 0).any():
        return found
    hole = (index < 0).reshape([-1 if i == axis else 1 for i in range(data.ndim)])
    return jnp.where(hole, jnp.zeros((), data.dtype), found)


@op(dynamic=True)
def _contrib_boolean_mask(data: Tensor, index: UntypedTensor, *, axis: int = 0) -> jax.Array:
    """Select the slices of `data` along `axis` whose element of `index` is not 0; computed at once.

    Shapes: data (…, n, …), index (n,) of any dtype. Gradients go to the selected slices of `data`.
    """
    return jnp.take(data, np.flatnonzero(np.asarray(index)), axis=one_axis(axis, data.ndim))
