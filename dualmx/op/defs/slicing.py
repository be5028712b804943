"""Operators that cut out or overwrite rectangular parts of an array."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.errors import ArgumentError
from ..axes import many_axes, one_axis
from ..registry import OPS, op
from ..schema import FLOAT32_EXACT_INTS, Axes, OptionalInts, Tensor, UntypedTensor
from .varying import RUNTIME_FORMS, RuntimeForm
from .window import constant, put_ranges, take_ranges


def sliced(shape: tuple[int, ...], begin: OptionalInts, end: OptionalInts, step: OptionalInts) -> list[range]:
    """Positions along each axis of `shape` taken by Python slices given as three tuples with `None` for "open".

    Raises:
        ArgumentError: lengths differ, there are more slices than axes, or a step is 0.
    """
    if len(begin) != len(end) or len(begin) > len(shape) or len(step) not in (0, len(begin)):
        raise ArgumentError(
            f"begin={begin}, end={end}, step={step}: expected equal lengths of at most {len(shape)}, one per axis"
        )
    if 0 in step:
        raise ArgumentError(f"step={step}: expected steps other than 0")
    steps = step or (None,) * len(begin)
    taken = [range(*slice(*bes).indices(n)) for *bes, n in zip(begin, end, steps, shape, strict=False)]
    return taken + [range(n) for n in shape[len(begin) :]]


def _window_of_lhs(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    lhs = shapes.get("lhs")
    return {"rhs": tuple(map(len, sliced(lhs, p.begin, p.end, p.step)))} if lhs else {}


@op(name="slice", aliases=("crop", "_npi_slice", "_npx_slice"))
def slice_(data: Tensor, *, begin: OptionalInts, end: OptionalInts, step: OptionalInts = ()) -> jax.Array:
    """Cut out `data[begin[0]:end[0]:step[0], …]` with Python's slice rules; `None` is open, later axes are whole."""
    return take_ranges(data, sliced(data.shape, begin, end, step))


@op(aliases=("_crop_assign", "_npi_slice_assign"), complete=_window_of_lhs)
def _slice_assign(
    lhs: Tensor, rhs: Tensor, *, begin: OptionalInts, end: OptionalInts, step: OptionalInts = ()
) -> jax.Array:
    """Return `lhs` with the part that `slice` cuts out replaced by `rhs`, which has exactly its shape."""
    taken = sliced(lhs.shape, begin, end, step)
    if rhs.shape != (shape := tuple(map(len, taken))):
        raise ArgumentError(f"rhs has shape {rhs.shape}: expected {shape}, that of the part it replaces")
    return put_ranges(lhs, rhs, taken)


@op(aliases=("_crop_assign_scalar", "_npi_slice_assign_scalar"))
def _slice_assign_scalar(
    data: Tensor, *, scalar: float = 0.0, begin: OptionalInts, end: OptionalInts, step: OptionalInts = ()
) -> jax.Array:
    """Return `data` with the part that `slice` cuts out set to `scalar`, cast to the dtype of `data`."""
    taken = sliced(data.shape, begin, end, step)
    return put_ranges(data, jnp.full([len(r) for r in taken], constant(scalar, data.dtype)), taken)


@op()
def slice_axis(data: Tensor, *, axis: int, begin: int, end: int | None) -> jax.Array:
    """Cut out `begin:end` along one axis; negative positions count from the end, `end=None` is open.

    Raises `ArgumentError` when the range is empty or leaves the axis.
    """
    axis = one_axis(axis, data.ndim)
    n = data.shape[axis]
    b = begin + n * (begin < 0)
    e = n if end is None else end + n * (end < 0)
    if not 0 <= b < e <= n:
        raise ArgumentError(f"begin={begin}, end={end}: expected at least one position of axis {axis}, length {n}")
    return lax.slice_in_dim(data, b, e, axis=axis)


def _moving(taken: list[range], shape: tuple[int, ...]) -> RuntimeForm | None:
    """The window of some positions as a call whose place is a runtime input."""
    size, start = tuple(map(len, taken)), tuple(float(r.start) for r in taken)
    if size == shape or 0 in size or any(r.step != 1 for r in taken) or max(start) >= FLOAT32_EXACT_INTS:
        return None
    return OPS["_window"].call(size=size, start=start), start


def _moving_slice(params: Mapping[str, Any], shape: tuple[int, ...], _: np.dtype) -> RuntimeForm | None:
    return _moving(sliced(shape, params["begin"], params["end"], params["step"]), shape)


def _moving_axis(params: Mapping[str, Any], shape: tuple[int, ...], _: np.dtype) -> RuntimeForm | None:
    axis = one_axis(params["axis"], len(shape))
    return _moving(
        [range(n)[params["begin"] : params["end"]] if i == axis else range(n) for i, n in enumerate(shape)], shape
    )


RUNTIME_FORMS.update({"slice": _moving_slice, "slice_axis": _moving_axis})


@op()
def slice_like(data: Tensor, shape_like: UntypedTensor, *, axes: Axes = ()) -> jax.Array:
    """Cut `data` to the leading part as long as `shape_like` along `axes` (all axes by default)."""
    if not axes and data.ndim != shape_like.ndim:
        raise ArgumentError(f"shapes {data.shape} and {shape_like.shape}: expected equally many axes, or axes=")
    taken = [range(n) for n in data.shape]
    for axis in many_axes(axes, data.ndim, "axes") if axes else range(data.ndim):
        have, want = data.shape[axis], shape_like.shape[one_axis(axis, shape_like.ndim, "axes")]
        if want > have:
            raise ArgumentError(f"axes={axes}: axis {axis} has length {have}: expected at least {want}, as shape_like")
        taken[axis] = range(want)
    return take_ranges(data, taken)
