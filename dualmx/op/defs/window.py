"""Windows of an array: reads and writes behind `x[...]`, for basic (slice) and advanced (index array) indexing.

Windows are given per axis as `begin`, `end`, `step`, already normalised: the axis contributes the positions
`range(begin, end, step)`, all of which exist. With a negative step `end` is -1 when position 0 is included. Axes
beyond the given ones are whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.errors import ArgumentError
from ..backend import platform
from ..registry import op
from ..schema import Count, RuntimeFloats, Shape, Tensor, UntypedTensor


def ranges(shape: Sequence[int], begin: tuple, end: tuple, step: tuple) -> list[range]:
    """Positions taken along every axis of `shape`; `ArgumentError` when one of them does not exist."""
    if not len(begin) == len(end) == len(step) <= len(shape):
        raise ArgumentError(
            f"begin={begin}, end={end}, step={step}: expected equal lengths of at most {len(shape)}, one per axis"
        )
    taken = [range(b, e, s) for b, e, s in zip(begin, end, step, strict=True)]
    taken += [range(n) for n in shape[len(begin) :]]
    for axis, (r, n) in enumerate(zip(taken, shape, strict=True)):
        if len(r) and not (0 <= r[0] < n and 0 <= r[-1] < n):
            raise ArgumentError(f"window {r.start}:{r.stop}:{r.step} of axis {axis}: expected positions below {n}")
    return taken


def take_ranges(data: jax.Array, taken: Sequence[range]) -> jax.Array:
    """Return the elements of `data` at the positions `taken[axis]` of every axis, in that order."""
    low = [min(r[0], r[-1]) if r else 0 for r in taken]
    high = [max(r[0], r[-1]) + 1 if r else 0 for r in taken]
    out = data
    if tuple(high) != data.shape or any(low) or any(abs(r.step) > 1 for r in taken):
        out = lax.slice(data, low, high, [abs(r.step) for r in taken])
    back = [axis for axis, r in enumerate(taken) if r.step < 0 and len(r) > 1]
    return lax.rev(out, back) if back else out


def put_ranges(data: jax.Array, value: jax.Array, taken: Sequence[range]) -> jax.Array:
    """Return `data` with `value` (shape: the lengths of `taken`, dtype of `data`) at the positions `taken`.

    A contiguous window is one `dynamic_update_slice`, which XLA does in place; a strided one merges the value into
    its bounding box first, so that nothing outside the box is touched.
    """
    if not all(taken):
        return data
    back = [axis for axis, r in enumerate(taken) if r.step < 0 and len(r) > 1]
    value = lax.rev(value, back) if back else value
    low = [min(r[0], r[-1]) for r in taken]
    spread = [abs(r.step) if len(r) > 1 else 1 for r in taken]
    if any(s > 1 for s in spread):
        box = [range(b, b + (len(r) - 1) * s + 1) for b, r, s in zip(low, taken, spread, strict=True)]
        hit = jnp.ones((), jnp.bool_)
        for axis, s in enumerate(spread):
            if s > 1:
                on = np.arange(len(box[axis])) % s == 0
                hit = hit & on.reshape([-1 if i == axis else 1 for i in range(len(box))])
        zero = jnp.zeros((), value.dtype)
        wide = lax.pad(value, zero, [(0, 0, s - 1) for s in spread])
        value = jnp.where(hit, wide, take_ranges(data, box))
    if value.shape == data.shape:
        return value
    return lax.dynamic_update_slice(data, value, [np.int32(b) for b in low])


def fit(value: jax.Array, shape: tuple[int, ...], dtype: np.dtype) -> jax.Array:
    """Broadcast `value` to `shape` as NumPy assignment does (extra leading axes of length 1 are dropped) and cast."""
    extra = value.ndim - len(shape)
    if extra > 0 and all(n == 1 for n in value.shape[:extra]):
        value = value.reshape(value.shape[extra:])
    try:
        value = jnp.broadcast_to(value, shape)
    except ValueError:
        raise ArgumentError(
            f"value of shape {value.shape}: expected a shape that broadcasts to that of the window, {tuple(shape)}"
        ) from None
    return value.astype(dtype)


def constant(scalar: float, dtype: np.dtype) -> np.ndarray:
    """`scalar` cast to `dtype` as C does: toward zero, whole numbers wrap around."""
    value = np.asarray(scalar, np.float64)
    if np.dtype(dtype).kind in "iu":
        with np.errstate(invalid="ignore"):
            value = value.astype(np.int64)
    with np.errstate(over="ignore"):
        return value.astype(dtype)


def kept(taken: Sequence[range], squeeze: tuple[int, ...], zero_dim: bool) -> tuple[int, ...]:
    """Shape of a window once the axes in `squeeze` are dropped."""
    for axis in squeeze:
        if not 0 <= axis < len(taken) or len(taken[axis]) != 1:
            raise ArgumentError(f"squeeze={squeeze}: expected axes along which the window has length 1")
    shape = tuple(len(r) for axis, r in enumerate(taken) if axis not in squeeze)
    return shape if shape or zero_dim or not taken else (1,)


@op()
def _basic_slice(
    data: Tensor, *, begin: Shape = (), end: Shape = (), step: Shape = (), squeeze: Shape = (), zero_dim: bool = False
) -> jax.Array:
    """Read the window `data[begin:end:step, ...]` and drop the axes `squeeze`; dtype of `data`.

    Shapes: data (d0, …) -> (len(range(begin0, end0, step0)), …) without the squeezed axes; when no axis is left the
    result is (1,), or () with `zero_dim`. Raises `ArgumentError` for positions that do not exist.
    """
    taken = ranges(data.shape, begin, end, step)
    return take_ranges(data, taken).reshape(kept(taken, squeeze, zero_dim))


def _starts(name: str, data: jax.Array, size: tuple[int, ...], start: Sequence[Any]) -> list[jax.Array]:
    if not len(size) == len(start) == data.ndim or any(s > n for s, n in zip(size, data.shape, strict=True)):
        raise ArgumentError(f"{name}: size={size}, {len(start)} starts: expected one per axis within {data.shape}")
    return [jnp.asarray(s).astype(jnp.int32) for s in start]


@op()
def _window(
    data: Tensor, *, size: Shape, start: RuntimeFloats, squeeze: Shape = (), zero_dim: bool = False
) -> jax.Array:
    """Read `size` elements along every axis from `start`, which changes without compiling; dtype of `data`.

    Shapes: data (d0, …) -> size without the axes `squeeze`; when no axis is left the result is (1,), or () with
    `zero_dim`. The starts are exact below 2**24 and must leave room for the window.
    """
    taken = lax.dynamic_slice(data, _starts("_window", data, size, start), size)
    return taken.reshape(kept([range(s) for s in size], squeeze, zero_dim))


@op()
def _window_assign(
    data: Tensor, value: UntypedTensor, *, size: Shape, start: RuntimeFloats, squeeze: Shape = ()
) -> jax.Array:
    """Return `data` with the window of `_window` replaced by `value`, broadcast to it and cast to `data`'s dtype.

    Shapes: data (d0, …), value broadcastable to the result of `_window` -> (d0, …).
    """
    starts = _starts("_window_assign", data, size, start)
    value = fit(value, kept([range(s) for s in size], squeeze, False), data.dtype)
    return lax.dynamic_update_slice(data, value.reshape(size), starts)


@op()
def _basic_slice_assign(
    data: Tensor, value: UntypedTensor, *, begin: Shape = (), end: Shape = (), step: Shape = (), squeeze: Shape = ()
) -> jax.Array:
    """Return `data` with the window replaced by `value`, broadcast to the squeezed window and cast to `data`'s dtype.

    Shapes: data (d0, …), value broadcastable to the result of `_basic_slice` -> (d0, …). The gradient of the window
    goes to `value`, the rest to `data`.
    """
    taken = ranges(data.shape, begin, end, step)
    value = fit(value, kept(taken, squeeze, False), data.dtype)
    return put_ranges(data, value.reshape([len(r) for r in taken]), taken)


def to_spec(items: Sequence[object]) -> str:
    """Write the `spec` of `_advanced_get` for `items`.

    Items are `"a"` (next index array), an int, `None` (new axis), or a `range` or normalised slice.

    Example:
        >>> to_spec(["a", slice(0, 4, 2), None, 3])
        'a,0:4:2,n,3'
    """
    words = []
    for item in items:
        if isinstance(item, (range, slice)):
            words.append(f"{item.start}:{item.stop}:{item.step}")
        else:
            words.append("n" if item is None else str(item))
    return ",".join(words)


def _advanced(shape: tuple[int, ...], spec: str, arrays: Sequence[jax.Array]) -> tuple[list[range], list[Any]]:
    """Read `spec`: positions per axis taken by slices, then the index expression on the array cut to them."""
    begin, end, step, items = [], [], [], list[Any]()
    waiting = list(arrays)
    for word in filter(None, spec.split(",")):
        if word == "n":
            items.append(None)
            continue
        axis = len(begin)
        if axis == len(shape):
            raise ArgumentError(f"spec={spec!r}: expected at most {len(shape)} axes")
        if ":" in word:
            b, e, s = map(int, word.split(":"))
            items.append(slice(None))
        else:
            b, e, s = 0, shape[axis], 1
            if word == "a":
                if not waiting:
                    raise ArgumentError(f"spec={spec!r}: expected {spec.split(',').count('a')} index arrays")
                items.append(as_index(waiting.pop(0)))
            else:
                items.append(jnp.asarray(int(word), jnp.int32))
        begin.append(b)
        end.append(e)
        step.append(s)
    if waiting:
        raise ArgumentError(f"spec={spec!r}: got {len(arrays)} index arrays, expected {spec.split(',').count('a')}")
    return ranges(shape, tuple(begin), tuple(end), tuple(step)), items


def as_index(index: jax.Array) -> jax.Array:
    """Return `index` as integers XLA gathers with: floats are cut toward zero, 64-bit integers are kept."""
    index = jnp.asarray(index)
    return index if index.dtype in (np.int32, np.int64) else index.astype(jnp.int32)


def last_wins(indices: Sequence[jax.Array], dims: Sequence[int]) -> list[jax.Array]:
    """Make a scatter deterministic: of equal points (`indices[axis][k]` along `dims`) only the last stays inside.

    XLA's CPU backend writes in order, so nothing is needed there; elsewhere earlier duplicates move out of bounds,
    where `mode="drop"` ignores them.
    """
    points = list(jnp.broadcast_arrays(*indices))
    if platform() == "cpu":
        return points
    flat = jnp.zeros(points[0].shape, jnp.int64)
    for p, n in zip(points, dims, strict=True):
        flat = flat * n + jnp.where(p < 0, p + n, p)
    order = lax.iota(jnp.int32, flat.size).reshape(flat.shape)
    newest = jnp.full((prod(dims),), -1, jnp.int32).at[flat].max(order, mode="drop")
    wins = newest.at[flat].get(mode="fill", fill_value=-1) == order
    return [jnp.where(wins, points[0], jnp.asarray(dims[0], points[0].dtype)), *points[1:]]


@op()
def _advanced_get(*args: UntypedTensor, spec: str, num_args: Count = 0) -> jax.Array:
    """NumPy advanced indexing: read `args[0]` at the index arrays `args[1:]`, placed among its axes by `spec`.

    `spec` lists, separated by commas, one item per axis: `a` the next index array, `b:e:s` a normalised slice, an
    integer, or `n` for a new axis (see `to_spec`); missing axes are whole. Index arrays broadcast together; their
    axes stand where they are adjacent and come first otherwise, as in NumPy. Indices may be negative; the caller
    checks bounds. The gradient adds up over repeated indices.
    """
    data, *arrays = args
    taken, items = _advanced(data.shape, spec, arrays)
    out = take_ranges(data, taken).at[tuple(items)].get(mode="clip")
    return out if out.ndim else out.reshape(1)


@op()
def _advanced_set(*args: UntypedTensor, spec: str, num_args: Count = 0) -> jax.Array:
    """NumPy advanced assignment: `args[0]` with `args[1]` written at the index arrays `args[2:]`, placed by `spec`.

    `spec` is that of `_advanced_get`. The value is broadcast to the indexed shape and cast to the dtype of `args[0]`.
    Of several writes to one element the last wins. Shape and dtype of the result are those of `args[0]`.
    """
    data, value, *arrays = args
    taken, items = _advanced(data.shape, spec, arrays)
    box = take_ranges(data, taken)
    shape = jax.eval_shape(lambda x: x.at[tuple(items)].get(mode="clip"), box).shape
    value = fit(value, (1,) if not shape and value.shape == (1,) else shape, data.dtype).reshape(shape)
    axes = [axis for axis, item in enumerate(i for i in items if i is not None) if isinstance(item, jax.Array)]
    at = [position for position, item in enumerate(items) if isinstance(item, jax.Array)]
    if at:
        for position, index in zip(at, last_wins([items[i] for i in at], [box.shape[a] for a in axes]), strict=True):
            items[position] = index
    return put_ranges(data, box.at[tuple(items)].set(value, mode="drop"), taken)
