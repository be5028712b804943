"""Operators that change the shape of an array: reshape, permute, insert and drop axes, broadcast, blocks, diagonals."""

from __future__ import annotations

from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ...core.errors import ArgumentError
from ..axes import many_axes, one_axis
from ..registry import op
from ..schema import Axes, Positive, Shape, Tensor, UntypedTensor


def reshaped(old: tuple[int, ...], codes: tuple[int, ...], reverse: bool = False) -> tuple[int, ...]:
    """Resolve MXNet's reshape codes for an array of shape `old`.

    A positive code is a length, 0 keeps the next input axis, -1 is inferred (once), -2 keeps all remaining input
    axes, -3 merges the next two, -4 splits the next one into the two lengths that follow (one may be -1). With
    `reverse` axes and codes are read from the right, so that -4 stands after its two lengths.

    Raises:
        ArgumentError: a code asks for an input axis that does not exist, or the number of elements changes.

    Example:
        >>> reshaped((2, 3, 4), (-4, 1, 2, -2))
        (1, 2, 3, 4)
    """
    shape, text = list(old), f"shape={codes}: "
    if reverse:
        shape, codes = shape[::-1], codes[::-1]
    new: list[int] = []
    at = 0
    waiting = iter(codes)

    def source(count: int) -> list[int]:
        nonlocal at
        if at + count > len(shape):
            raise ArgumentError(f"{text}expected no more than the {len(shape)} axes of the input shape {old}")
        at += count
        return shape[at - count : at]

    for code in waiting:
        if code > 0 or code == -1:
            new.append(code)
            at += 1
        elif code == 0:
            new += source(1)
        elif code == -2:
            new += shape[at:]
            at = len(shape)
        elif code == -3:
            new.append(prod(source(2)))
        elif code == -4:
            (whole,) = source(1)
            parts = [next(waiting, -2), next(waiting, -2)]
            if min(parts) < -1 or parts == [-1, -1] or 0 in parts:
                raise ArgumentError(f"{text}expected two lengths beside -4, at most one of them -1")
            known = prod(p for p in parts if p > 0)
            if whole % known or (-1 not in parts and whole != known):
                raise ArgumentError(f"{text}cannot split an axis of length {whole} into {tuple(parts)}")
            new += [whole // known if p == -1 else p for p in parts]
        else:
            raise ArgumentError(f"{text}expected positive lengths or the codes 0, -1, -2, -3, -4")
    if new.count(-1) > 1:
        raise ArgumentError(f"{text}expected at most one -1")
    size, known = prod(old), prod(n for n in new if n != -1)
    if -1 in new and known and size % known == 0:
        new[new.index(-1)] = size // known
    if prod(new) != size or -1 in new:
        raise ArgumentError(f"{text}expected {size} elements, those of the input shape {old}")
    return tuple(new[::-1] if reverse else new)


def _legacy_shape(old: tuple[int, ...], target: tuple[int, ...], keep_highest: bool) -> tuple[int, ...]:
    """Resolve the old `target_shape`, in which 0 is inferred and `keep_highest` keeps axis 0."""
    if keep_highest:
        target = (old[0], *target[1:])
    if target.count(0) > 1:
        raise ArgumentError(f"target_shape={target}: expected at most one 0")
    return reshaped(old, tuple(-1 if n == 0 else n for n in target))


def _one_length(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """The one unknown length of the input follows from the number of elements of the output."""
    data, out = shapes.get("data"), shapes.get("output")
    if not data or not out or data.count(0) != 1 or 0 in out:
        return {}
    rest = prod(n for n in data if n)
    return {"data": tuple(n or prod(out) // rest for n in data)} if prod(out) % rest == 0 else {}


@op(name="Reshape", aliases=("reshape",), complete=_one_length)
def reshape(
    data: Tensor, *, shape: Shape = (), reverse: bool = False, target_shape: Shape = (), keep_highest: bool = False
) -> jax.Array:
    """Give `data` a new shape of as many elements; dtype of `data`.

    Codes in `shape`: a positive length; 0 keep the input axis; -1 infer; -2 keep all remaining axes; -3 merge two
    axes; -4 split an axis into the next two lengths. `reverse` matches from the right. On (2, 3, 4): (0, -1) ->
    (2, 12), (-3, 4) -> (6, 4), (-4, 1, 2, -2) -> (1, 2, 3, 4). `target_shape` and `keep_highest` are the older
    form, in which 0 is inferred.
    """
    if shape:
        return data.reshape(reshaped(data.shape, shape, reverse))
    if target_shape:
        return data.reshape(_legacy_shape(data.shape, target_shape, keep_highest))
    raise ArgumentError("shape=(): expected at least one length or code")


def _span(begin: int | None, end: int | None, ndim: int, side: str) -> tuple[int, int]:
    """Normalise a half-open range of axes."""
    b = 0 if begin is None else begin + ndim * (begin < 0)
    e = ndim if end is None else end + ndim * (end < 0)
    if not 0 <= b < e <= ndim:
        raise ArgumentError(f"{side}_begin={begin}, {side}_end={end}: expected a range within {ndim} axes")
    return b, e


@op(aliases=("_npx_reshape_like",))
def reshape_like(
    lhs: Tensor,
    rhs: UntypedTensor,
    *,
    lhs_begin: int | None = None,
    lhs_end: int | None = None,
    rhs_begin: int | None = None,
    rhs_end: int | None = None,
) -> jax.Array:
    """Reshape `lhs` to the shape of `rhs`, or its axes [lhs_begin, lhs_end) to those [rhs_begin, rhs_end) of `rhs`.

    Shapes: lhs (a…), rhs (b…) -> (b…), with as many elements as `lhs`; dtype of `lhs`.
    """
    if (lhs_begin, lhs_end, rhs_begin, rhs_end) == (None,) * 4:
        shape = rhs.shape
    else:
        b, e = _span(lhs_begin, lhs_end, lhs.ndim, "lhs")
        rb, re = _span(rhs_begin, rhs_end, rhs.ndim, "rhs")
        shape = lhs.shape[:b] + rhs.shape[rb:re] + lhs.shape[e:]
    if prod(shape) != lhs.size:
        raise ArgumentError(f"new shape {shape}: expected {lhs.size} elements, those of lhs {lhs.shape}")
    return lhs.reshape(shape)


@op(name="Flatten", aliases=("flatten", "_npx_batch_flatten"))
def flatten(data: Tensor) -> jax.Array:
    """Keep axis 0 and merge all others: (n, d1, d2, …) -> (n, d1·d2·…); a 1-d array becomes (n, 1)."""
    return data.reshape(data.shape[0], prod(data.shape[1:]))


@op()
def transpose(data: Tensor, *, axes: Shape = ()) -> jax.Array:
    """Permute the axes: axis i of the result is axis `axes[i]` of `data`; without `axes` their order is reversed."""
    order = many_axes(axes, data.ndim, "axes") if axes else tuple(range(data.ndim))[::-1]
    if len(order) != data.ndim:
        raise ArgumentError(f"axes={axes}: expected {data.ndim} axes, those of the input shape {data.shape}")
    return jnp.transpose(data, order)


@op(name="SwapAxis", aliases=("swapaxes", "_npi_swapaxes"))
def swap_axis(data: Tensor, *, dim1: int = 0, dim2: int = 0) -> jax.Array:
    """Exchange the axes `dim1` and `dim2`."""
    return jnp.swapaxes(data, one_axis(dim1, data.ndim, "dim1"), one_axis(dim2, data.ndim, "dim2"))


@op(aliases=("_npi_expand_dims",))
def expand_dims(data: Tensor, *, axis: int) -> jax.Array:
    """Insert an axis of length 1 at position `axis` of the result: (2, 3) with axis=-1 -> (2, 3, 1)."""
    return jnp.expand_dims(data, one_axis(axis, data.ndim + 1))


@op()
def squeeze(data: Tensor, *, axis: Axes = None) -> jax.Array:
    """Drop the axes `axis`, which must have length 1 (all such axes by default); at least one axis is left."""
    if axis is None:
        axes = tuple(a for a, n in enumerate(data.shape) if n == 1)
    else:
        axes = many_axes(axis, data.ndim)
    for a in axes:
        if data.shape[a] != 1:
            raise ArgumentError(f"axis={axis}: expected axes of length 1, axis {a} of {data.shape} is longer")
    return data.reshape(tuple(n for a, n in enumerate(data.shape) if a not in axes) or (1,))


def _per_axis(values: tuple[int, ...], count: int, name: str) -> tuple[int, ...]:
    if len(values) != count:
        raise ArgumentError(f"{name}={values}: expected {count} values, one per axis")
    return values


def _stretch(data: Any, shape: tuple[int, ...]) -> Any:
    """Broadcast axes of length 1 to the lengths in `shape`, of as many axes as `data`."""
    for axis, (have, want) in enumerate(zip(data.shape, shape, strict=True)):
        if have not in (1, want):
            raise ArgumentError(
                f"cannot broadcast shape {data.shape} to {tuple(shape)}: expected length 1 or {want} along axis {axis}"
            )
    return jnp.broadcast_to(data, shape)


@op()
def broadcast_to(data: Tensor, *, shape: Shape = ()) -> jax.Array:
    """Repeat axes of length 1 so that the result has `shape`; a 0 in `shape` keeps the length of the input."""
    _per_axis(shape, data.ndim, "shape")
    return _stretch(data, tuple(want or have for have, want in zip(data.shape, shape, strict=True)))


@op()
def broadcast_like(lhs: Tensor, rhs: UntypedTensor, *, lhs_axes: Axes = None, rhs_axes: Axes = None) -> jax.Array:
    """Repeat axes of length 1 of `lhs` as in `rhs`: all, or, given both, `lhs_axes` to the lengths of `rhs_axes`.

    Shapes: lhs (1 or d0, …), rhs (d0, …) -> (d0, …); dtype of `lhs`.
    """
    if lhs_axes is None or rhs_axes is None:
        if lhs.ndim != rhs.ndim:
            raise ArgumentError(f"shapes {lhs.shape} and {rhs.shape}: expected the same number of axes")
        return _stretch(lhs, rhs.shape)
    if len(lhs_axes) != len(rhs_axes) or not lhs_axes:
        raise ArgumentError(f"lhs_axes={lhs_axes}, rhs_axes={rhs_axes}: expected equally many, at least one")
    shape = list(lhs.shape)
    left, right = many_axes(lhs_axes, lhs.ndim, "lhs_axes"), many_axes(rhs_axes, rhs.ndim, "rhs_axes")
    for a, b in zip(left, right, strict=True):
        shape[a] = rhs.shape[b]
    return _stretch(lhs, tuple(shape))


@op(aliases=("broadcast_axes",))
def broadcast_axis(data: Tensor, *, axis: Shape = (), size: Shape = ()) -> jax.Array:
    """Repeat `data` along the axes `axis`, which must have length 1, `size` times each."""
    shape = list(data.shape)
    for a, n in zip(many_axes(axis, data.ndim), _per_axis(size, len(axis), "size"), strict=True):
        if shape[a] != 1:
            raise ArgumentError(f"axis={axis}: expected axes of length 1, axis {a} of {data.shape} is longer")
        shape[a] = n
    return jnp.broadcast_to(data, shape)


def _image(shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) != 4:
        raise ArgumentError(f"data of shape {shape}: expected 4 axes (batch, channel, height, width)")
    return shape


@op()
def depth_to_space(data: Tensor, *, block_size: Positive) -> jax.Array:
    """Move channels into blocks of pixels: (n, b·b·c, h, w) -> (n, c, h·b, w·b), `b` being `block_size`."""
    b, (n, c, h, w) = block_size, _image(data.shape)
    if c % (b * b):
        raise ArgumentError(f"block_size={b}: expected {b * b} to divide the {c} channels of {data.shape}")
    blocks = data.reshape(n, b, b, c // (b * b), h, w)
    return blocks.transpose(0, 3, 4, 1, 5, 2).reshape(n, c // (b * b), h * b, w * b)


@op()
def space_to_depth(data: Tensor, *, block_size: Positive) -> jax.Array:
    """Move blocks of pixels into channels: (n, c, h·b, w·b) -> (n, b·b·c, h, w), `b` being `block_size`."""
    b, (n, c, h, w) = block_size, _image(data.shape)
    if h % b or w % b:
        raise ArgumentError(f"block_size={b}: expected it to divide height and width of {data.shape}")
    blocks = data.reshape(n, c, h // b, b, w // b, b)
    return blocks.transpose(0, 3, 5, 1, 2, 4).reshape(n, c * b * b, h // b, w // b)


@op()
def diag(data: Tensor, *, k: int = 0, axis1: int = 0, axis2: int = 1) -> jax.Array:
    """Read the `k`-th diagonal, or make a matrix from it.

    A vector (n,) becomes the matrix (n+|k|, n+|k|) with it on diagonal `k`. Otherwise the diagonal of the axes
    `axis1`, `axis2` is read; its axis comes last, as in `numpy.diagonal`. Positive `k` lies above the main diagonal.
    """
    if data.ndim == 1:
        return jnp.diag(data, k)
    a, b = one_axis(axis1, data.ndim, "axis1"), one_axis(axis2, data.ndim, "axis2")
    if a == b:
        raise ArgumentError(f"axis1={axis1}, axis2={axis2}: expected two different axes")
    if not -data.shape[a] < k < data.shape[b]:
        raise ArgumentError(f"k={k}: there is no such diagonal in {(data.shape[a], data.shape[b])}")
    return jnp.diagonal(data, k, a, b)


@op(aliases=("flip",))
def reverse(data: Tensor, *, axis: Shape) -> jax.Array:
    """Reverse the order of elements along every axis in `axis`; an axis named twice stays as it is."""
    axes = [one_axis(a, data.ndim) for a in axis]
    return lax.rev(data, tuple(a for a in set(axes) if axes.count(a) % 2))
