"""NumPy's reductions: all axes give shape (), `axis=()` reduces nothing, integers follow NumPy mode's dtypes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from ...core.dtypes import is_float
from ...core.errors import ArgumentError
from ..axes import many_axes, one_axis
from ..registry import op
from ..schema import ABSENT, Axes, OptDType, Tensor, UntypedTensor, When
from .reduce import OneAxis, extreme, first_position
from .rules import accumulator, convert


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


@op()
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


@op()
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


@op()
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


def _position(name: str, pick: Any, what: str) -> None:
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


_position("_npi_argmax", jnp.max, "largest")
_position("_npi_argmin", jnp.min, "smallest")


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
