"""Operators that join, split, repeat and pad arrays along axes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.errors import ArgumentError
from ..axes import one_axis
from ..registry import op
from ..schema import Count, Positive, Shape, Tensor
from .window import constant


def _same_but(shapes: list[tuple[int, ...]], axis: int | None) -> None:
    """Check that all shapes agree, except along `axis`."""

    def rest(shape: tuple[int, ...]) -> list[int]:
        return [-1 if k == axis else n for k, n in enumerate(shape)]

    for i, shape in enumerate(shapes):
        if rest(shape) != rest(shapes[0]):
            apart = "" if axis is None else f" except along axis {axis}"
            raise ArgumentError(f"input {i} has shape {shape}, input 0 {shapes[0]}: expected equal shapes{apart}")


def _common(shapes: dict[str, tuple[int, ...]]) -> tuple[int, ...] | None:
    """What the known shapes say together; a length that none of them knows is 0."""
    ndim = max((len(s) for s in shapes.values()), default=0)
    return tuple(max(n) for n in zip(*(s for s in shapes.values() if len(s) == ndim), strict=True)) or None


def _siblings(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """All inputs of Concat have equal lengths except along the joined axis."""
    known = _common(shapes)
    if known is None or not -len(known) <= p.dim < len(known):
        return {}
    shape = tuple(0 if k == p.dim % len(known) else n for k, n in enumerate(known))
    return {f"arg{i}": shape for i in range(p.num_args)}


def _alike(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """All inputs of `stack` have one shape."""
    known = _common(shapes)
    return {} if known is None else {f"arg{i}": known for i in range(p.num_args)}


@op(name="Concat", aliases=("concat",), complete=_siblings)
def concat(*args: Tensor, num_args: Count = 0, dim: int = 1) -> jax.Array:
    """Join the inputs along axis `dim`, along which their lengths add up; all other lengths are equal."""
    if not args:
        raise ArgumentError("got no array: expected at least one")
    axis = one_axis(dim, args[0].ndim, "dim")
    _same_but([a.shape for a in args], axis)
    return jnp.concatenate(args, axis)


def _last_part(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """As for Concat; parts of unknown length, one for each direction, share what the others leave of the output."""
    found, out = _siblings(p, shapes), shapes.get("output")
    if not found or not out or not out[p.dim]:
        return found
    lengths = {name: shapes.get(name, found[name])[p.dim] for name in found}
    missing = [name for name, n in lengths.items() if n == 0]
    rest = out[p.dim] - sum(lengths.values())
    if missing and rest % len(missing) == 0:
        for name in missing:
            found[name] = (*found[name][: p.dim], rest // len(missing), *found[name][p.dim + 1 :])
    return found


@op(complete=_last_part)
def _rnn_param_concat(*args: Tensor, num_args: Count = 0, dim: int = 1) -> jax.Array:
    """Join the weights and biases of a recurrent layer along axis `dim` into its flat parameter vector."""
    if not args:
        raise ArgumentError("got no array: expected at least one")
    axis = one_axis(dim, args[0].ndim, "dim")
    _same_but([a.shape for a in args], axis)
    return jnp.concatenate(args, axis)


@op(complete=_alike)
def stack(*args: Tensor, axis: int = 0, num_args: Count = 0) -> jax.Array:
    """Join inputs of equal shape along a new axis at position `axis`: k times (m, n) -> (k, m, n)."""
    axis = one_axis(axis, args[0].ndim + 1)
    _same_but([a.shape for a in args], None)
    return jnp.stack(args, axis)


def _parts(data: Any, cuts: list[int], axis: int, squeeze_axis: bool) -> tuple[Any, ...]:
    """Cut `data` along `axis` at the positions `cuts` (first and last included)."""
    parts = [lax.slice_in_dim(data, a, b, axis=axis) for a, b in pairwise(cuts)]
    if squeeze_axis:
        if any(p.shape[axis] != 1 for p in parts):
            raise ArgumentError(
                f"squeeze_axis=True: expected parts of length 1 along axis {axis}, got {[p.shape[axis] for p in parts]}"
            )
        shape = data.shape[:axis] + data.shape[axis + 1 :]
        parts = [p.reshape(shape or (1,)) for p in parts]
    return tuple(parts)


@op(name="SliceChannel", aliases=("split",), outputs=lambda p: p.num_outputs)
def slice_channel(
    data: Tensor, *, num_outputs: Positive, axis: int = 1, squeeze_axis: bool = False
) -> tuple[jax.Array, ...]:
    """Split `data` along `axis` into `num_outputs` parts of equal length; `squeeze_axis` drops that axis.

    Raises `ArgumentError` when `num_outputs` does not divide the axis, or with `squeeze_axis` is not its length.
    """
    axis = one_axis(axis, data.ndim)
    n = data.shape[axis]
    if n % num_outputs:
        raise ArgumentError(f"num_outputs={num_outputs}: expected a divisor of {n}, axis {axis} of {data.shape}")
    step = n // num_outputs
    return _parts(data, list(range(0, n + 1, step)) if step else [0] * (num_outputs + 1), axis, squeeze_axis)


@op(aliases=("_npi_split",), outputs=lambda p: p.sections or len(p.indices))
def _split_v2(
    data: Tensor, *, indices: Shape, axis: int = 1, squeeze_axis: bool = False, sections: Count = 0
) -> tuple[jax.Array, ...]:
    """Split `data` along `axis` into parts that begin at `indices`, the first of which is 0.

    With `sections` > 0 there are that many parts instead, the first ones longer by one when lengths do not divide.
    """
    axis = one_axis(axis, data.ndim)
    n = data.shape[axis]
    if sections:
        cuts = [i * (n // sections) + min(i, n % sections) for i in range(sections + 1)]
    else:
        cuts = [*indices, n]
        if cuts[0] != 0 or any(a > b for a, b in pairwise(cuts)):
            raise ArgumentError(f"indices={indices}: expected 0 first, then ascending positions up to {n}")
    return _parts(data, cuts, axis, squeeze_axis)


@op(aliases=("_npi_tile",))
def tile(data: Tensor, *, reps: Shape) -> jax.Array:
    """Repeat the whole array `reps[i]` times along axis i; shape and `reps` are aligned at the last axis."""
    if any(r < 0 for r in reps):
        raise ArgumentError(f"reps={reps}: expected counts of 0 or more")
    return jnp.tile(data, reps)


@op(aliases=("_np_repeat",))
def repeat(data: Tensor, *, repeats: Count, axis: int | None = None) -> jax.Array:
    """Repeat each element `repeats` times along `axis`, or of the flattened array without `axis`."""
    if axis is None:
        data, axis = data.reshape(-1), 0
    axis = one_axis(axis, data.ndim)
    wide = jnp.broadcast_to(
        jnp.expand_dims(data, axis + 1), (*data.shape[: axis + 1], repeats, *data.shape[axis + 1 :])
    )
    return wide.reshape(*data.shape[:axis], data.shape[axis] * repeats, *data.shape[axis + 1 :])


@op(name="Pad", aliases=("pad",))
def pad(
    data: Tensor, *, mode: Literal["constant", "edge", "reflect"], pad_width: Shape, constant_value: float = 0.0
) -> jax.Array:
    """Widen every axis i by `pad_width[2·i]` elements before and `pad_width[2·i+1]` after.

    `constant` fills with `constant_value`, `edge` repeats the outermost elements, `reflect` mirrors without
    repeating them and needs widths below the length of the axis.
    """
    if len(pad_width) != 2 * data.ndim or any(w < 0 for w in pad_width):
        raise ArgumentError(f"pad_width={pad_width}: expected {2 * data.ndim} widths of 0 or more, two per axis")
    widths = list(zip(pad_width[::2], pad_width[1::2], strict=True))
    if mode == "constant":
        fill = np.asarray(constant(constant_value, data.dtype))
        return lax.pad(data, fill, [(before, after, 0) for before, after in widths])
    for axis, (width, n) in enumerate(zip(widths, data.shape, strict=True)):
        if mode == "reflect" and max(width) >= max(n, 1):
            raise ArgumentError(f"pad_width={pad_width}: expected widths below {n} to reflect axis {axis}")
    return jnp.pad(data, widths, mode=mode)
