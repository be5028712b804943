"""Reductions along axes: sums, products, extrema, norms, moments, positions of extrema, running sums."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from ...core.dtypes import is_float
from ...core.errors import ArgumentError
from ..registry import op
from ..schema import Axes, OptDType, Tensor, to_int
from .elementwise import absolute
from .rules import accumulator, convert, merge_shapes, need_float, reduced_axes, reduced_shape

Reducer = Callable[[jax.Array, tuple[int, ...]], jax.Array]
OneAxis = Annotated[int | None, lambda v: None if v is None or v == "None" else to_int(v)]

_AXES = """data: any shape and dtype. axis: an axis or several, all of them if None or (). keepdims: reduced axes stay,
    with length 1. exclude: reduce the axes that are not named. Reducing all axes gives shape (1,)."""


def reduction(name: str, fn: Reducer, doc: str, *aliases: str) -> None:
    """Register `name`: `fn(data, axes)` on the chosen axes, the result in the dtype of the data."""

    def body(data: Tensor, *, axis: Axes = None, keepdims: bool = False, exclude: bool = False) -> jax.Array:
        axes = reduced_axes(axis, data.ndim, exclude)
        return fn(data, axes).astype(data.dtype).reshape(reduced_shape(data.shape, axes, keepdims))

    body.__doc__ = f"""{doc}

    {_AXES}

    Raises:
        ArgumentError: an axis out of range or named twice.
    """
    op(name=name, aliases=aliases)(body)


def total(x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
    """Sum over `axes`; half precision adds up in float32, integers wrap, bool means "any"."""
    return jnp.any(x, axes) if x.dtype == jnp.bool_ else jnp.sum(x, axes, dtype=accumulator(x.dtype))


def average(x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
    """Mean over `axes`; integers add up in int64 and truncate toward zero."""
    if is_float(np.dtype(x.dtype)):
        return jnp.mean(x, axes, dtype=accumulator(x.dtype))
    if x.dtype == jnp.bool_:
        return jnp.any(x, axes)
    count = int(np.prod([x.shape[a] for a in axes], dtype=np.int64))
    added = jnp.sum(x, axes, dtype=jnp.int64)
    return jax.lax.div(added, jnp.full_like(added, count))


def product(x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
    """Product over `axes`; half precision multiplies in float32, integers wrap, bool means "all"."""
    return jnp.all(x, axes) if x.dtype == jnp.bool_ else jnp.prod(x, axes, dtype=accumulator(x.dtype))


def _without_nan(fn: Reducer, neutral: float) -> Reducer:
    def run(x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
        if is_float(np.dtype(x.dtype)):
            x = jnp.where(jnp.isnan(x), jnp.full_like(x, neutral), x)
        return fn(x, axes)

    return run


def extreme(pick: Any) -> Reducer:
    """A maximum or minimum that gives the whole gradient to every element that ties."""

    @partial(jax.custom_jvp, nondiff_argnums=(1,))
    def found(x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
        return pick(x, axis=axes, keepdims=True)

    @found.defjvp
    def jvp(axes: tuple[int, ...], primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        y = found(x, axes)
        moved = jnp.sum(jnp.where(x == y, t, jnp.zeros_like(t)), axes, dtype=accumulator(t.dtype), keepdims=True)
        return y, moved.astype(t.dtype)

    return found


def _square_total(x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
    x = x.astype(accumulator(x.dtype))
    return total(x * x, axes)


TABLE: tuple[tuple[Any, ...], ...] = (
    ("sum", total, "Sum of the elements; half precision adds up in float32.", "sum_axis", "_sparse_sum"),
    ("mean", average, "Mean of the elements; half precision adds up in float32.", "_sparse_mean"),
    ("prod", product, "Product of the elements."),
    ("nansum", _without_nan(total, 0), "Sum of the elements that are not nan."),
    ("nanprod", _without_nan(product, 1), "Product of the elements that are not nan."),
    ("max", extreme(jnp.max), "Largest element; every tie receives the whole gradient.", "max_axis"),
    ("min", extreme(jnp.min), "Smallest element; every tie receives the whole gradient.", "min_axis"),
    ("_square_sum", _square_total, "Sum of the squares of the elements."),
)

for _name, _fn, _doc, *_aliases in TABLE:
    reduction(_name, _fn, _doc, *_aliases)


@op(name="norm", aliases=("_sparse_norm",))
def norm(
    data: Tensor, *, ord: int = 2, axis: Axes = None, out_dtype: OptDType = None, keepdims: bool = False
) -> jax.Array:
    """Norm along `axis` (all axes if None): ord 2 is sqrt(sum(x**2)), ord 1 is sum(|x|).

    data: any shape and dtype; the result has the dtype of the data or `out_dtype`, shape (1,) if all axes are reduced.
    The gradient of ord 2 at a zero vector is nan.

    Raises:
        ArgumentError: another `ord`, an axis out of range or named twice.
    """
    if ord not in (1, 2):
        raise ArgumentError(f"norm: ord={ord}: expected 1 or 2")
    axes = reduced_axes(axis, data.ndim)
    x = data
    if out_dtype is not None and np.dtype(out_dtype).itemsize > x.dtype.itemsize:
        x = x.astype(out_dtype)
    x = x.astype(accumulator(x.dtype)) if is_float(np.dtype(x.dtype)) else x.astype(jnp.float64)
    y = jnp.sqrt(jnp.sum(x * x, axes)) if ord == 2 else jnp.sum(absolute(x), axes)
    return convert(y, out_dtype or data.dtype).reshape(reduced_shape(data.shape, axes, keepdims))


def first_position(pick: Any, x: jax.Array, axis: int) -> jax.Array:
    """Index (int32) of the first extremum or nan along `axis`; two plain reductions, which XLA runs as vector code."""
    x = jax.lax.stop_gradient(x)
    hit = x == pick(x, axis=axis, keepdims=True)
    if is_float(np.dtype(x.dtype)):
        hit |= jnp.isnan(x)
    index = jax.lax.broadcasted_iota(jnp.int32, x.shape, axis)
    return jnp.min(jnp.where(hit, index, jnp.int32(x.shape[axis])), axis=axis)


def _position(name: str, pick: Any, doc: str) -> None:
    def body(data: Tensor, *, axis: OneAxis = None, keepdims: bool = False) -> jax.Array:
        axes = reduced_axes(None if axis is None else (axis,), data.ndim)
        at = first_position(pick, data.reshape(-1), 0) if axis is None else first_position(pick, data, axes[0])
        return at.astype(data.dtype).reshape(reduced_shape(data.shape, axes, keepdims))

    body.__doc__ = f"""{doc}

    data: any shape and dtype, which the result has. axis: one axis, or None for the position in the flattened array.
    keepdims: the axis stays, with length 1. A nan counts as the extremum. The derivative is 0.

    Raises:
        ArgumentError: an axis out of range.
    """
    op(name=name)(body)


_position("argmax", jnp.max, "Position of the largest element along `axis`, the first one if several tie.")
_position("argmin", jnp.min, "Position of the smallest element along `axis`, the first one if several tie.")


@op(name="argmax_channel")
def argmax_channel(data: Tensor) -> jax.Array:
    """Position of the largest element along axis 1, the first one if several tie.

    data: (N, C, ...), any dtype, which the result (N, ...) has.

    Raises:
        ArgumentError: fewer than two dimensions.
    """
    reduced_axes((1,), data.ndim)
    return first_position(jnp.max, data, 1).astype(data.dtype)


@op(name="moments", outputs=2)
def moments(data: Tensor, *, axes: Axes = None, keepdims: bool = False) -> tuple[jax.Array, jax.Array]:
    """Mean and variance over `axes`: mean(x) and mean((x - mean(x))**2), computed in float32 for half precision.

    data: any shape, floating-point. Both results: the reduced shape, the dtype of the data.

    Raises:
        ArgumentError: integer data, an axis out of range or named twice.
    """
    need_float("moments", data=data)
    chosen = reduced_axes(axes, data.ndim)
    x = data.astype(accumulator(data.dtype))
    mean = jnp.mean(x, chosen, keepdims=True)
    var = jnp.mean(jnp.square(x - mean), chosen)
    shape = reduced_shape(data.shape, chosen, keepdims)
    return mean.astype(data.dtype).reshape(shape), var.astype(data.dtype).reshape(shape)


@op(name="_np_cumsum", aliases=("cumsum",))
def cumsum(a: Tensor, *, axis: OneAxis = None, dtype: OptDType = None) -> jax.Array:
    """Running sum along `axis`, or along the flattened array if `axis` is None.

    a: any shape; the result has the same, or is flat; its dtype is `dtype`, else that of `a` (int64 for bool).

    Raises:
        ArgumentError: an axis out of range.
    """
    out = np.dtype(dtype or (np.int64 if a.dtype == jnp.bool_ else a.dtype))
    if axis is None:
        a, axis = a.reshape(-1), 0
    (along,) = reduced_axes((axis,), a.ndim)
    return jnp.cumsum(convert(a, accumulator(out)), along, dtype=accumulator(out)).astype(out)


@op(name="_contrib_allclose")
def allclose(a: Tensor, b: Tensor, *, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = True) -> jax.Array:
    """1 if |a - b| <= atol + rtol * |b| holds for every element, else 0.

    a, b: one shape and dtype. equal_nan: nan equals nan. The result is uint8 of shape ().

    Raises:
        ArgumentError: different shapes.
    """
    merge_shapes("_contrib_allclose", {"a": a.shape, "b": b.shape})
    return jnp.allclose(a, b, rtol, atol, equal_nan).astype(jnp.uint8)
