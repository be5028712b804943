"""Reductions: sums, products, extrema, norms, moments, positions, running sums, for classic and NumPy semantics.

Under NumPy semantics, all axes give shape (), `axis=()` reduces nothing, and integers follow NumPy mode's dtypes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from ...core.dtypes import is_float
from ...core.errors import ArgumentError
from ..registry import op
from ..schema import ABSENT, Axes, OptDType, Tensor, UntypedTensor, When, to_int
from ..shape_rules import (
    accumulator,
    convert,
    many_axes,
    merge_shapes,
    need_float,
    one_axis,
    reduced_axes,
    reduced_shape,
)
from ..traits import CONSTANT, FLOAT_COMBINATION, StorageRule, Traits, stored
from .elementwise import absolute

Reducer = Callable[[jax.Array, tuple[int, ...]], jax.Array]
OneAxis = Annotated[int | None, lambda v: None if v is None or v == "None" else to_int(v)]

_AXES = """data: any shape and dtype. axis: an axis or several, all of them if None or (). keepdims: reduced axes stay,
    with length 1. exclude: reduce the axes that are not named. Reducing all axes gives shape (1,)."""


def reduction(name: str, fn: Reducer, doc: str, storage: StorageRule | None, *aliases: str) -> None:
    """Register `name`: `fn(data, axes)` on the chosen axes, the result in the dtype of the data."""

    def body(data: Tensor, *, axis: Axes = None, keepdims: bool = False, exclude: bool = False) -> jax.Array:
        axes = reduced_axes(axis, data.ndim, exclude)
        return fn(data, axes).astype(data.dtype).reshape(reduced_shape(data.shape, axes, keepdims))

    body.__doc__ = f"""{doc}

    {_AXES}

    Raises:
        ArgumentError: an axis out of range or named twice.
    """
    method = "" if name.startswith("_") else name
    op(name=name, aliases=aliases, traits=Traits(storage=storage), method=method)(body)


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


# name, function, formula, storage rule, MXNet's further names
TABLE: tuple[tuple[Any, ...], ...] = (
    (
        "sum", total, "Sum of the elements; half precision adds up in float32.", StorageRule.SUM, "sum_axis",
        "_sparse_sum",
    ),
    ("mean", average, "Mean of the elements; half precision adds up in float32.", StorageRule.MEAN, "_sparse_mean"),
    ("prod", product, "Product of the elements.", None),
    ("nansum", _without_nan(total, 0), "Sum of the elements that are not nan.", None),
    ("nanprod", _without_nan(product, 1), "Product of the elements that are not nan.", None),
    ("max", extreme(jnp.max), "Largest element; every tie receives the whole gradient.", None, "max_axis"),
    ("min", extreme(jnp.min), "Smallest element; every tie receives the whole gradient.", None, "min_axis"),
    ("_square_sum", _square_total, "Sum of the squares of the elements.", StorageRule.SQUARE_SUM),
)  # fmt: skip

for _name, _fn, _doc, _rule, *_aliases in TABLE:
    reduction(_name, _fn, _doc, _rule, *_aliases)


@op(name="norm", aliases=("_sparse_norm",), traits=stored(StorageRule.NORM), method="norm")
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


def _arg_extremum(name: str, pick: Any, doc: str) -> None:
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
    op(name=name, traits=CONSTANT, method=name)(body)


_arg_extremum("argmax", jnp.max, "Position of the largest element along `axis`, the first one if several tie.")
_arg_extremum("argmin", jnp.min, "Position of the smallest element along `axis`, the first one if several tie.")


@op(name="argmax_channel", traits=CONSTANT, method="argmax_channel")
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


@op(name="_np_cumsum", aliases=("cumsum",), traits=FLOAT_COMBINATION)
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


def chosen(axis: tuple[int, ...] | None, ndim: int) -> tuple[int, ...]:
    """Return the axes to reduce; None means all of them, `()` none. A 0-d array has none, but may be asked for one."""
    if axis is None:
        return tuple(range(ndim))
    found = many_axes(axis, max(ndim, 1))
    return found if ndim else ()


def _as_shape(x: jax.Array, like: jax.Array, axes: tuple[int, ...], keepdims: bool) -> jax.Array:
    kept = [1 if i in axes else n for i, n in enumerate(like.shape) if keepdims or i not in axes]
    return x.reshape(kept)


def _total_type(dtype: str | None, given: Any) -> np.dtype:
    return np.dtype(dtype or (np.int64 if given == jnp.bool_ else given))


def _total_within(given: Any, out: np.dtype) -> np.dtype:
    """The dtype in which elements are combined: floats stay floats until the end, also on the way to an integer."""
    return accumulator(out if is_float(out) or out == np.bool_ or not is_float(np.dtype(given)) else given)


@op(traits=FLOAT_COMBINATION)
def _np_sum(
    a: Tensor, *, axis: Axes = None, dtype: OptDType = None, keepdims: bool = False, initial: float | None = None
) -> jax.Array:
    """Sum over `axis` (all axes if None), begun with `initial`; half precision adds up in float32.

    a: any shape; the result has `dtype`, by default that of `a` (int64 for bool).
    """
    axes, out = chosen(axis, a.ndim), _total_type(dtype, a.dtype)
    within = _total_within(a.dtype, out)
    total = jnp.sum(convert(a, within), axes, dtype=within if out != np.bool_ else None)
    total = total if initial is None else total + jnp.asarray(initial).astype(total.dtype)
    return _as_shape(convert(total, out), a, axes, keepdims)


@op(traits=FLOAT_COMBINATION)
def _np_prod(
    a: Tensor, *, axis: Axes = None, dtype: OptDType = None, keepdims: bool = False, initial: float | None = None
) -> jax.Array:
    """Product over `axis` (all axes if None), begun with `initial`; half precision multiplies in float32.

    a: any shape; the result has `dtype`, by default that of `a` (int64 for bool).
    """
    axes, out = chosen(axis, a.ndim), _total_type(dtype, a.dtype)
    within = _total_within(a.dtype, out)
    total = jnp.prod(convert(a, within), axes, dtype=within if out != np.bool_ else None)
    total = total if initial is None else total * jnp.asarray(initial).astype(total.dtype)
    return _as_shape(convert(total, out), a, axes, keepdims)


def _mean_type(dtype: str | None, given: Any) -> np.dtype:
    return np.dtype(dtype or (given if is_float(np.dtype(given)) else np.float32))


def _moment_type(out: np.dtype) -> np.dtype:
    return accumulator(out) if is_float(out) else np.dtype("float64")


@op(traits=FLOAT_COMBINATION)
def _npi_mean(
    a: Tensor, *, axis: Axes = None, dtype: OptDType = None, keepdims: bool = False, initial: float | None = None
) -> jax.Array:
    """Mean over `axis` (all axes if None); 0 of no elements.

    a: any shape; the result has `dtype`, by default that of `a` (float32 for integers and bool).
    """
    axes, out = chosen(axis, a.ndim), _mean_type(dtype, a.dtype)
    count = max(1, int(np.prod([a.shape[i] for i in axes])))
    mean = jnp.sum(a.astype(_moment_type(out)), axes) / count
    return _as_shape(convert(mean, out), a, axes, keepdims)


def _variance(a: jax.Array, axes: tuple[int, ...], ddof: int, within: np.dtype) -> jax.Array:
    x = a.astype(within)
    count = int(np.prod([a.shape[i] for i in axes]))
    mean = jnp.sum(x, axes, keepdims=True) / max(count, 1)
    return jnp.sum(jnp.square(x - mean), axes) / (count - ddof)


@op(output_names=("var",))
def _npi_var(
    a: Tensor, *, axis: Axes = None, dtype: OptDType = None, ddof: int = 0, keepdims: bool = False
) -> jax.Array:
    """Variance over `axis` (all axes if None): sum((x - mean)**2) / (n - ddof).

    a: any shape; the result has `dtype`, by default that of `a`; integers truncate.
    """
    axes, out = chosen(axis, a.ndim), np.dtype(dtype or a.dtype)
    return _as_shape(convert(_variance(a, axes, ddof, _moment_type(out)), out), a, axes, keepdims)


@op(output_names=("std",))
def _npi_std(
    a: Tensor, *, axis: Axes = None, dtype: OptDType = None, ddof: int = 0, keepdims: bool = False
) -> jax.Array:
    """Standard deviation over `axis` (all axes if None): sqrt(sum((x - mean)**2) / (n - ddof)).

    a: any shape; the result has `dtype`, by default that of `a`; integers truncate.
    """
    axes, out = chosen(axis, a.ndim), np.dtype(dtype or a.dtype)
    return _as_shape(convert(jnp.sqrt(_variance(a, axes, ddof, _moment_type(out))), out), a, axes, keepdims)


def _extremum(name: str, pick: Any, meet: Any, what: str) -> None:
    reduce = extreme(pick)

    def body(a: Tensor, *, axis: Axes = None, keepdims: bool = False, initial: float | None = None) -> jax.Array:
        axes = chosen(axis, a.ndim)
        if not all(a.shape[i] for i in axes) and initial is None:
            raise ArgumentError(f"{name}: a has shape {a.shape}: no element along axis {axis} to choose from")
        if initial is None:
            return _as_shape(reduce(a, axes), a, axes, keepdims)
        floor = jnp.full((), initial).astype(a.dtype)
        found = reduce(a, axes) if a.size else jnp.full([1 if i in axes else n for i, n in enumerate(a.shape)], floor)
        return _as_shape(meet(found, floor), a, axes, keepdims)

    body.__doc__ = f"""{what} element over `axis` (all axes if None); every tie receives the whole gradient.

    a: any shape and dtype; the result has the dtype. initial: a value beside the elements.

    Raises:
        ArgumentError: an axis out of range, or no element.
    """
    op(name=name)(body)


_extremum("_np_max", jnp.max, jnp.maximum, "Largest")
_extremum("_np_min", jnp.min, jnp.minimum, "Smallest")


@op()
def _np_all(data: Tensor, *, axis: Axes = None, keepdims: bool = False) -> jax.Array:
    """True where all elements over `axis` (all axes if None) are other than 0; bool."""
    return jnp.all(data != 0, chosen(axis, data.ndim), keepdims=keepdims)


@op()
def _np_any(data: Tensor, *, axis: Axes = None, keepdims: bool = False) -> jax.Array:
    """True where some element over `axis` (all axes if None) is other than 0; bool."""
    return jnp.any(data != 0, chosen(axis, data.ndim), keepdims=keepdims)


def _np_arg_extremum(name: str, pick: Any, what: str) -> None:
    def body(data: Tensor, *, axis: OneAxis = None, keepdims: bool = False) -> jax.Array:
        at = one_axis(axis, max(data.ndim, 1)) if axis is not None else None
        at = at if data.ndim else None
        if not (data.size if at is None else data.shape[at]):
            raise ArgumentError(f"{name}: data has shape {data.shape}: there is no element to choose from")
        found = first_position(pick, data.reshape(-1), 0) if at is None else first_position(pick, data, at)
        axes = tuple(range(data.ndim)) if at is None else (at,)
        return _as_shape(found.astype(jnp.int64), data, axes, keepdims)

    body.__doc__ = f"""Position of the {what} element along `axis`, or in the flattened array if None; first of ties.

    data: any shape and dtype; the result is int64, without `axis` or, with `keepdims`, of length 1 there.

    Raises:
        ArgumentError: an axis out of range, or no element.
    """
    op(name=name)(body)


_np_arg_extremum("_npi_argmax", jnp.max, "largest")
_np_arg_extremum("_npi_argmin", jnp.min, "smallest")


@op(outputs=2, visible=lambda p: 2 if p.returned else 1, output_names=("output0", "output1"))
def _npi_average(
    a: Tensor,
    weights: Annotated[UntypedTensor, When("weighted", True)] = ABSENT,
    *,
    axis: Axes = None,
    returned: bool = False,
    weighted: bool = True,
) -> tuple[jax.Array, jax.Array]:
    """Weighted mean over `axis`: sum(a * weights) / sum(weights), and with `returned` the sum of the weights.

    a: any shape; weights: the shape of `a`, or (a.shape[axis],) for one axis. Integers truncate.

    Raises:
        ArgumentError: weights of another shape.
    """
    axes = chosen(axis, a.ndim)
    within = accumulator(a.dtype) if is_float(np.dtype(a.dtype)) else np.dtype("float64")
    x = a.astype(within)
    w = jnp.ones_like(x) if weights is None else weights.astype(within)
    if w.shape != x.shape:
        if len(axes) != 1 or w.shape != (a.shape[axes[0]],):
            raise ArgumentError(
                f"_npi_average: weights has shape {w.shape}, a {a.shape}: expected equal shapes, or one weight for "
                f"each position of a single axis"
            )
        w = jnp.broadcast_to(w.reshape([-1 if i == axes[0] else 1 for i in range(a.ndim)]), a.shape)
    scale = jnp.sum(w, axes)
    return convert(jnp.sum(x * w, axes) / scale, a.dtype), convert(scale, a.dtype)


Method = Literal["linear", "lower", "higher", "midpoint", "nearest"]


@op()
def _npi_percentile(
    a: Tensor,
    q: Annotated[UntypedTensor, When("q_scalar", None)] = ABSENT,
    *,
    axis: Axes = None,
    interpolation: Method = "linear",
    keepdims: bool = False,
    q_scalar: float | None = None,
) -> jax.Array:
    """The `q`-th percentiles over `axis` (all axes if None), `q` from 0 to 100.

    a: any shape, its dtype is that of the result (float32 for integers and half precision). q: () or (k,), or the
    number `q_scalar`; its axis comes first in the result. interpolation: how to choose between two neighbours.
    """
    out = np.dtype(a.dtype) if a.dtype in (np.float32, np.float64) else np.dtype("float32")
    axes = chosen(axis, a.ndim)
    at = jnp.asarray(q_scalar, out) if q is None else q.astype(out)
    if any(n == 0 for n in a.shape):
        raise ArgumentError(f"_npi_percentile: a has shape {a.shape}: there is no element")
    found = jnp.percentile(a.astype(out), at, axis=axes, method=interpolation, keepdims=keepdims)
    return found.astype(out)
