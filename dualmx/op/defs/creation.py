"""Operators that make arrays from parameters alone, for classic and NumPy semantics, and histograms."""

from __future__ import annotations

from math import ceil
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.dtypes import arange_values, cast_scalars, is_float
from ...core.errors import ArgumentError
from ..registry import op
from ..runtime_scalars import Params, define_runtime_form, faithful, survives_float32, typed
from ..schema import (
    ABSENT,
    Count,
    DType,
    Floats,
    Ignored,
    OptDType,
    OptionalTensor,
    Positive,
    Shape,
    Tensor,
    UntypedTensor,
    to_dtype,
)
from ..shape_rules import one_axis
from ..traits import Traits
from .index import constant

Ctx = Annotated[str, str, Ignored]
ZeroType = Annotated[str, lambda v: to_dtype("float32" if v in (None, "None", -1, "-1") else v)]


def _filled(shape: tuple[int, ...], value: float, dtype: Any) -> jax.Array:
    if any(n < 0 for n in shape):
        raise ArgumentError(f"shape={shape}: expected lengths of 0 or more")
    return jnp.full(shape, constant(value, np.dtype(dtype)))


_MAX_CONSTANT = 1 << 20  # elements of an array that a program holds


@op(traits=Traits(fill=lambda p: 0))
def _zeros(*, shape: Shape = (), ctx: Ctx = "", dtype: DType = "float32") -> jax.Array:
    """An array of `shape` filled with 0."""
    return _filled(shape, 0.0, dtype)


@op()
def _zeros_without_dtype(*, shape: Shape = (), ctx: Ctx = "", dtype: ZeroType = "float32") -> jax.Array:
    """An array of `shape` filled with 0, as `_zeros`; a dtype of -1 or None stands for float32."""
    return _filled(shape, 0.0, dtype)


@op(traits=Traits(fill=lambda p: 1))
def _ones(*, shape: Shape = (), ctx: Ctx = "", dtype: DType = "float32") -> jax.Array:
    """An array of `shape` filled with 1."""
    return _filled(shape, 1.0, dtype)


@op(aliases=("_npi_full",), traits=Traits(fill=lambda p: p["value"]))
def _full(*, shape: Shape = (), ctx: Ctx = "", dtype: DType = "float32", value: float) -> jax.Array:
    """An array of `shape` filled with `value`, cast to `dtype`."""
    return _filled(shape, value, dtype)


def _full_fits(params: Params, shape: tuple[int, ...], dtype: np.dtype) -> bool:
    kind, value = np.dtype(params["dtype"]), params["value"]
    if any(n < 0 for n in params["shape"]):
        return False
    return faithful(value, kind) if is_float(kind) else kind.kind == "i" and survives_float32(value, kind)


def _runtime_full(*, shape: tuple[int, ...], ctx: str, dtype: str, value: jax.Array) -> jax.Array:
    return jnp.full(shape, typed(value, dtype))


define_runtime_form(_full, "value", fits=_full_fits, body=_runtime_full)


def _progression(start: float, step: float, count: int, repeat: int, dtype: Any) -> jax.Array:
    """`count` numbers start + (i // repeat)·step: exact for whole numbers, computed in float64 otherwise."""
    steps = lax.iota(jnp.int64, count)
    if repeat > 1:
        steps = steps // repeat
    if start.is_integer() and step.is_integer() and max(abs(start), abs(step)) < 2**53:
        return (steps * int(step) + int(start)).astype(dtype)
    return (steps.astype(jnp.float64) * step + start).astype(dtype)


@op()
def _arange(
    *,
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: Positive = 1,
    infer_range: bool = False,
    ctx: Ctx = "",
    dtype: DType = "float32",
) -> jax.Array:
    """Numbers from `start` below `stop` at distance `step`, each `repeat` times; only `start` given means [0, start).

    Length: ceil((stop - start) / step) · repeat. Raises `ArgumentError` for an empty range or step 0.
    """
    if stop is None:
        start, stop = 0.0, start
    if step == 0 or (stop - start) / step <= 0:
        raise ArgumentError(f"start={start:g}, stop={stop:g}, step={step:g}: expected a range of at least one number")
    first, distance = cast_scalars((start, step), dtype)
    count = ceil((stop - start) / step) * repeat
    if count <= _MAX_CONSTANT and not (first.is_integer() and distance.is_integer()):
        # A program may round a product and a sum at once, and 0 would be missed.
        return _from_host(np.repeat(arange_values(start, stop, step, dtype), repeat), dtype)
    return _progression(first, distance, count, repeat, dtype)


@op(aliases=("_npi_linspace",))
def _linspace(
    *, start: float, stop: float, num: Count, endpoint: bool = True, ctx: Ctx = "", dtype: DType = "float32"
) -> jax.Array:
    """`num` evenly spaced numbers from `start` to `stop`, which is the last one unless `endpoint` is False."""
    step = (stop - start) / max(num - 1 if endpoint else num, 1)
    return _progression(start, step, num, 1, dtype)


@op()
def _eye(*, N: Positive, M: Count = 0, k: int = 0, ctx: Ctx = "", dtype: DType = "float32") -> jax.Array:
    """The (N, M or N) matrix with 1 on diagonal `k` (positive above the main one) and 0 elsewhere."""
    return jnp.eye(N, M or N, k, dtype=dtype)


@op(aliases=("_npx_arange_like",))
def _contrib_arange_like(
    data: Tensor, *, start: float = 0.0, step: float = 1.0, repeat: Positive = 1, ctx: Ctx = "", axis: int | None = None
) -> jax.Array:
    """Numbers start, start + step, …, each `repeat` times, in the shape of `data` or as a vector as long as `axis`."""
    shape = data.shape if axis is None else (data.shape[one_axis(axis, data.ndim)],)
    return _progression(start, step, int(np.prod(shape)), repeat, data.dtype).reshape(shape)


@op(aliases=("_npi_histogram",), outputs=2)
def _histogram(
    data: UntypedTensor,
    bins: Annotated[UntypedTensor, OptionalTensor] = ABSENT,
    *,
    bin_cnt: int | None = None,
    range: Floats | None = None,
) -> tuple[jax.Array, ...]:
    """Count the elements of `data` in bins; returns counts (int64, (n,)) and bin edges (dtype of `data`, (n+1,)).

    Bins are given by ascending edges `bins`, or as `bin_cnt` equal ones over `range`. A bin contains its lower edge,
    the last one also its upper edge; elements outside are not counted.
    """
    if bins is None:
        if not bin_cnt or bin_cnt < 1 or range is None or len(range) != 2 or not range[0] < range[1]:
            raise ArgumentError(f"bin_cnt={bin_cnt}, range={range}: expected 1 bin or more over (low, high), or bins")
        edges = _progression(range[0], (range[1] - range[0]) / bin_cnt, bin_cnt + 1, 1, jnp.float64)
    else:
        edges = bins.astype(jnp.float64)
    values = data.reshape(-1).astype(jnp.float64)
    at = jnp.searchsorted(edges, values, side="right") - 1
    last = edges.size - 2
    at = jnp.where(values == edges[-1], last, at)
    counts = jnp.zeros(edges.size - 1, jnp.int64).at[jnp.where(at < 0, last + 1, at)].add(1, mode="drop")
    return counts, edges.astype(data.dtype) if bins is None else bins


Type = Annotated[str, lambda v: to_dtype("float32" if v in (None, "None") else v)]


def _register_filled(name: str, value: float) -> None:
    def body(*, shape: Shape = (), ctx: Ctx = "", dtype: Type = "float32") -> jax.Array:
        return jnp.full(shape, constant(value, np.dtype(dtype)))

    body.__doc__ = f"An array of `shape`, () and lengths of 0 included, filled with {value:g}."
    op(name=name)(body)


_register_filled("_npi_zeros", 0.0)
_register_filled("_npi_ones", 1.0)


@op()
def _npi_full_like(a: Tensor, *, fill_value: float, ctx: Ctx = "", dtype: OptDType = None) -> jax.Array:
    """An array of the shape and, unless given, the dtype of `a`, filled with `fill_value`."""
    return jnp.full(a.shape, constant(fill_value, np.dtype(dtype or a.dtype)))


def _from_host(values: Any, dtype: Any) -> jax.Array:
    return jnp.asarray(values.astype(np.dtype(dtype)))


@op()
def _npi_arange(
    *,
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: Count = 1,
    infer_range: bool = False,
    ctx: Ctx = "",
    dtype: Type = "float32",
) -> jax.Array:
    """`start, start + step, …` below `stop`, each value `repeat` times; without `stop` from 0 below `start`."""
    low, high = (0.0, start) if stop is None else (start, stop)
    return _from_host(np.repeat(arange_values(low, high, step, dtype), repeat), dtype)


@op()
def _npi_eye(*, N: Count, M: int | None = None, k: int = 0, ctx: Ctx = "", dtype: Type = "float32") -> jax.Array:
    """A matrix with ones on diagonal `k`; square without `M`."""
    return _from_host(np.eye(N, M, k), dtype)


@op()
def _npi_identity(*, shape: Shape = (), ctx: Ctx = "", dtype: Type = "float32") -> jax.Array:
    """The identity matrix of `shape` (n, n)."""
    return _from_host(np.eye(*shape), dtype)


@op()
def _npi_indices(*, dimensions: Shape, dtype: DType = "int32", ctx: Ctx = "") -> jax.Array:
    """The coordinates of every element of an array of these dimensions: (k, d1, …, dk)."""
    return _from_host(np.indices(dimensions), dtype)


@op()
def _npi_logspace(
    *,
    start: float,
    stop: float,
    num: Count,
    endpoint: bool = True,
    base: float = 10.0,
    ctx: Ctx = "",
    dtype: Type = "float32",
) -> jax.Array:
    """`base` to the power of `num` evenly spaced values from `start` to `stop`."""
    with np.errstate(all="ignore"):  # negative bases have no real powers
        return _from_host(np.logspace(start, stop, num, endpoint, base), dtype)


def _window(name: str) -> None:
    def body(*, M: int = 0, ctx: Ctx = "", dtype: Type = "float32") -> jax.Array:
        return _from_host(getattr(np, name)(M), dtype)

    body.__doc__ = f"The {name} window of `M` points, which falls off towards both ends."
    op(name=f"_npi_{name}")(body)


for _name in ("hanning", "hamming", "blackman"):
    _window(_name)
