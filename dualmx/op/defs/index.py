"""Indexing: gather, scatter, slices, and the windows behind `x[...]`. Float indices are truncated toward zero.

A window is `begin`, `end`, `step` per axis, already normalized: the axis contributes the positions
`range(begin, end, step)`, all of which exist. With a negative step, `end` is -1 when position 0 is included. Axes
beyond the given ones are complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.errors import ArgumentError
from ..lowering_context import platform
from ..registry import OPS, op
from ..runtime_scalars import Params, RuntimeCall
from ..schema import (
    FLOAT32_EXACT_INTS,
    Axes,
    Count,
    OptionalInts,
    Positive,
    RuntimeFloats,
    Shape,
    Tensor,
    UntypedTensor,
)
from ..shape_rules import many_axes, one_axis
from ..traits import CONSTANT, Arrangement, IndexRange, Layer, Quantized, Shapes, StorageRule, Traits, stored


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
    strides = [abs(r.step) if len(r) > 1 else 1 for r in taken]
    if any(s > 1 for s in strides):
        box = [range(b, b + (len(r) - 1) * s + 1) for b, r, s in zip(low, taken, strides, strict=True)]
        hit = jnp.ones((), jnp.bool_)
        for axis, s in enumerate(strides):
            if s > 1:
                on = np.arange(len(box[axis])) % s == 0
                hit = hit & on.reshape([-1 if i == axis else 1 for i in range(len(box))])
        zero = jnp.zeros((), value.dtype)
        wide = lax.pad(value, zero, [(0, 0, s - 1) for s in strides])
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


def _taken(p: Params, shape: tuple[int, ...]) -> list[range]:
    return ranges(shape, p["begin"], p["end"], p["step"])


def _box(taken: Sequence[range]) -> tuple[slice, ...]:
    """The index of NumPy that takes these positions."""
    return tuple(slice(r.start, r.stop if r.stop >= 0 else None, r.step) if r else slice(0) for r in taken)


def _put_box(p: Params, shapes: Shapes, cotangents: Sequence[Any]) -> list[Any]:
    (shape,), (cotangent,) = shapes, cotangents
    taken, gradient = _taken(p, shape), np.zeros(shape, cotangent.dtype)
    gradient[_box(taken)] = cotangent.reshape([len(r) for r in taken])
    return [gradient]


def _box_shape(p: Params, shape: tuple[int, ...]) -> tuple[int, ...]:
    return kept(_taken(p, shape), p["squeeze"], p["zero_dim"])


# A call for each place: a trace of each would cost more than all else.
_WINDOW = Arrangement(
    shapes=lambda p, shapes: [_box_shape(p, shapes[0])],
    run=lambda p, arrays: [arrays[0][_box(_taken(p, arrays[0].shape))].reshape(_box_shape(p, arrays[0].shape))],
    pull=_put_box,
)


@op(traits=Traits(is_window=True, arrangement=_WINDOW))
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


Dtype = Literal["float32", "float64", "float16", "bfloat16", "uint8", "int8", "int32", "int64"]


def within(index: jax.Array, length: int, mode: str) -> jax.Array:
    """Return `index` as integers in `[0, length)`: taken modulo `length` with `wrap`, else moved to the nearest."""
    index = as_index(index)
    if mode == "wrap":
        return jnp.mod(index, jnp.asarray(max(length, 1), index.dtype))
    return jnp.clip(index, 0, max(length - 1, 0))


def rows(table: jax.Array, index: jax.Array, axis: int, mode: str) -> jax.Array:
    """Return `table` with `axis` replaced by the axes of `index`, whose values select along it."""
    at = (slice(None),) * axis + (within(index, table.shape[axis], mode),)
    return table.at[at].get(mode="promise_in_bounds")


def _take_bounds(p: Mapping[str, Any], shapes: Shapes) -> IndexRange | None:
    if p["mode"] != "raise":
        return None
    length = shapes[0][p["axis"]]
    return IndexRange((length,), False, False, False, f"take: an index is outside [0, {length}), and mode='raise'")


@op(aliases=("_npi_take",), traits=stored(StorageRule.TAKE_ROWS, index_bounds=_take_bounds), method="take")
def take(
    a: Tensor, indices: UntypedTensor, *, axis: int = 0, mode: Literal["clip", "wrap", "raise"] = "clip"
) -> jax.Array:
    """Select slices of `a` along `axis`: (…, n, …) with indices (k, l) -> (…, k, l, …); dtype of `a`.

    Indices outside [0, n) are moved to the nearest end (`clip`), taken modulo n (`wrap`), or are an error (`raise`),
    which array functions report when the result is waited for; graphs move them to the end. The gradient adds up over
    repeated indices.
    """
    return rows(a, indices, one_axis(axis, a.ndim), mode)


@op()
def batch_take(a: Tensor, indices: UntypedTensor) -> jax.Array:
    """Read one element of every row: `out[i] = a[i, indices[i]]`; a (…, n), indices as many as rows, clipped."""
    flat = a.reshape(-1, a.shape[-1])
    if indices.size != flat.shape[0]:
        raise ArgumentError(f"indices has shape {indices.shape}: expected {flat.shape[0]} indices, one per row of a")
    index = within(indices, flat.shape[1], "clip").reshape(-1, 1)
    return jnp.take_along_axis(flat, index, 1).reshape(indices.shape)


def _index_of_data(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    data = shapes.get("data")
    if not data or p.axis is None or not -len(data) <= p.axis < len(data):
        return {}
    axis = p.axis % len(data)
    rest, kept = data[:axis] + data[axis + 1 :], (*data[:axis], 1, *data[axis + 1 :])
    return {} if shapes.get("index") in (rest, kept) else {"index": kept if p.keepdims else rest or (1,)}


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def _read(data: jax.Array, where: jax.Array, axis: int) -> jax.Array:
    return jnp.take_along_axis(data, where, axis)


def _read_forward(data: jax.Array, where: jax.Array, axis: int) -> tuple[jax.Array, Any]:
    return _read(data, where, axis), (where, data)  # of which only the shape is read


def _read_backward(axis: int, kept: Any, g: jax.Array) -> tuple[jax.Array, None]:
    # A comparison joins the loop of whatever uses the gradient; a scatter is one of its own over zeros.
    where, data = kept
    shape = (*where.shape[:axis], data.shape[axis], *where.shape[axis + 1 :])
    hit = where == lax.broadcasted_iota(where.dtype, shape, axis)
    return jnp.where(hit, g, jnp.zeros((), g.dtype)), None


_read.defvjp(_read_forward, _read_backward)


@op(aliases=("choose_element_0index", "_npx_pick"), complete=_index_of_data, method="pick")
def pick(
    data: Tensor,
    index: UntypedTensor,
    *,
    axis: int | None = -1,
    keepdims: bool = False,
    mode: Literal["clip", "wrap"] = "clip",
) -> jax.Array:
    """Read one element along `axis` for every position of the other axes: data (m, n), index (m,) -> (m,).

    `index` has the shape of `data` without `axis` or with length 1 there; with `keepdims` the result keeps the axis.
    """
    if axis is None:
        raise ArgumentError("axis=None: expected the axis to pick along")
    axis = one_axis(axis, data.ndim)
    left, right = data.shape[:axis], data.shape[axis + 1 :]
    if index.shape not in (left + right, (*left, 1, *right)) and (left + right or index.shape != (1,)):
        raise ArgumentError(
            f"index has shape {index.shape}: expected {left + right}, data {data.shape} without an axis"
        )
    where = within(index, data.shape[axis], mode).reshape(*left, 1, *right)
    out: Any = _read(data, where, axis)
    return out if keepdims else out.reshape(left + right or (1,))


@op()
def fill_element_0index(lhs: Tensor, mhs: Tensor, rhs: UntypedTensor) -> jax.Array:
    """Write one element of every row: `out[i, rhs[i]] = mhs[i]`, the rest as in `lhs`; lhs (m, n), mhs and rhs (m,)."""
    if lhs.ndim != 2 or mhs.shape != lhs.shape[:1] or rhs.shape != lhs.shape[:1]:
        raise ArgumentError(f"shapes {lhs.shape}, {mhs.shape}, {rhs.shape}: expected (m, n), (m,), (m,)")
    hit = as_index(rhs)[:, None] == lax.broadcasted_iota(as_index(rhs).dtype, lhs.shape, 1)
    return jnp.where(hit, mhs[:, None], lhs)


def _points(indices: jax.Array, shape: Sequence[int]) -> tuple[jax.Array, ...]:
    """Split indices (M, …) into M coordinate arrays for the leading axes of `shape`."""
    if indices.ndim < 2 or indices.shape[0] > len(shape):
        raise ArgumentError(
            f"indices has shape {indices.shape}: expected at least 2 axes, the first at most {len(shape)} long"
        )
    return tuple(as_index(indices))


def _scatter_shape(data: jax.Array, indices: jax.Array, shape: tuple[int, ...]) -> tuple[jax.Array, ...]:
    points = _points(indices, shape)
    want = indices.shape[1:] + shape[len(points) :]
    if data.shape != want:
        raise ArgumentError(f"data has shape {data.shape}: expected {want} for indices {indices.shape}, shape={shape}")
    return points


def _gather_bounds(p: Mapping[str, Any], shapes: Shapes) -> IndexRange:
    lengths = shapes[0][: shapes[1][0]]
    return IndexRange(lengths, True, True, True, f"gather_nd: an index is out of bounds for {lengths}")


@op(aliases=("_npi_gather_nd", "_npx_gather_nd"), traits=Traits(index_bounds=_gather_bounds))
def gather_nd(data: Tensor, indices: UntypedTensor) -> jax.Array:
    """Read points: column k of `indices` holds the coordinates of point k along the first axes of `data`.

    Shapes: data (d1, …, dn), indices (M, k…) -> (k…, dM+1, …, dn). Negative coordinates count from the end, others
    outside are clipped. The gradient adds up over repeated points.
    """
    return data.at[_points(indices, data.shape)].get(mode="clip")


@op()
def _backward_gather_nd(data: Tensor, indices: UntypedTensor, *, shape: Shape) -> jax.Array:
    """Add `data` at the points `indices` to zeros of `shape`: the transpose of `gather_nd`."""
    return jnp.zeros(shape, data.dtype).at[_scatter_shape(data, indices, shape)].add(data, mode="drop")


def _put_points(base: jax.Array, data: jax.Array, points: tuple[jax.Array, ...]) -> jax.Array:
    return base.at[tuple(last_wins(points, base.shape[: len(points)]))].set(data, mode="drop")


@op()
def scatter_nd(data: Tensor, indices: UntypedTensor, *, shape: Shape) -> jax.Array:
    """Write `data` at the points `indices` into zeros of `shape`; of several writes to a point the last one stays.

    Shapes: data (k…, sM+1, …), indices (M, k…) with one column of coordinates per point -> shape.
    """
    return _put_points(jnp.zeros(shape, data.dtype), data, _scatter_shape(data, indices, shape))


@op(aliases=("_npi_scatter_set_nd",))
def _scatter_set_nd(lhs: Tensor, rhs: Tensor, indices: UntypedTensor, *, shape: Shape) -> jax.Array:
    """Return `lhs`, which has `shape`, with `rhs` written at the points `indices`, as `scatter_nd` does."""
    if lhs.shape != shape:
        raise ArgumentError(f"shape={shape}: expected the shape of lhs, {lhs.shape}")
    return _put_points(lhs, rhs, _scatter_shape(rhs, indices, shape))


@op(aliases=("_npx_one_hot",), traits=CONSTANT, method="one_hot")
def one_hot(
    indices: UntypedTensor, *, depth: Count, on_value: float = 1.0, off_value: float = 0.0, dtype: Dtype = "float32"
) -> jax.Array:
    """Encode indices (…) as (…, depth): `on_value` at the index, `off_value` elsewhere and for indices outside."""
    index = as_index(indices)[..., None]
    hit = index == lax.broadcasted_iota(index.dtype, (*indices.shape, depth), indices.ndim)
    return jnp.where(hit, constant(on_value, np.dtype(dtype)), constant(off_value, np.dtype(dtype)))


@op()
def _onehot_encode(lhs: UntypedTensor, rhs: Tensor) -> jax.Array:
    """Encode the indices `lhs` (m,) as one-hot rows of the shape and dtype of `rhs` (m, n)."""
    if rhs.ndim != 2 or lhs.shape != rhs.shape[:1]:
        raise ArgumentError(f"shapes {lhs.shape} and {rhs.shape}: expected (m,) and (m, n)")
    return (as_index(lhs)[:, None] == lax.broadcasted_iota(as_index(lhs).dtype, rhs.shape, 1)).astype(rhs.dtype)


def _where_inputs(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    return {to: shapes[at] for at, to in (("x", "y"), ("y", "x")) if at in shapes}


@op(complete=_where_inputs)
def where(condition: UntypedTensor, x: Tensor, y: Tensor) -> jax.Array:
    """Choose `x` where `condition` is not 0, else `y`; all of one shape, or condition (m,) choosing rows."""
    if x.shape != y.shape or condition.shape not in (x.shape, x.shape[:1]):
        raise ArgumentError(
            f"shapes condition {condition.shape}, x {x.shape}, y {y.shape}: expected equal shapes, or condition of the "
            f"length of axis 0"
        )
    chosen = condition != 0
    return jnp.where(chosen.reshape(chosen.shape + (1,) * (x.ndim - chosen.ndim)), x, y)


def _table(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    return {"weight": (p.input_dim, p.output_dim)}


def _look_up(data: jax.Array, weight: jax.Array, want: tuple[int, int]) -> jax.Array:
    if weight.shape != want:
        raise ArgumentError(f"weight has shape {weight.shape}: expected (input_dim, output_dim) = {want}")
    return rows(weight, data, 0, "clip")


@op(
    name="Embedding",
    aliases=("_npx_embedding",),
    complete=_table,
    complete_dtype=lambda p, dtypes: {"weight": p.dtype},
    traits=stored(
        StorageRule.TABLE_LOOKUP,
        is_lookup=True,
        layer=Layer.EMBEDDING,
        stated_sizes={"input_dim": (1, 0), "output_dim": (1, 1)},
        quantized=Quantized("_contrib_quantized_embedding", is_table=True, data_inputs=0),
    ),
)
def embedding(
    data: UntypedTensor,
    weight: Tensor,
    *,
    input_dim: Positive,
    output_dim: Positive,
    dtype: Dtype = "float32",
    sparse_grad: bool = False,
) -> jax.Array:
    """Look up rows of `weight`: data (…) of ids, weight (input_dim, output_dim) -> (…, output_dim).

    Ids outside [0, input_dim) are moved to the nearest row. `dtype` is that of the weight when nothing else tells.
    """
    return _look_up(data, weight, (input_dim, output_dim))


@op(
    complete=_table,
    complete_dtype=lambda p, dtypes: {"weight": p.dtype},
    traits=stored(StorageRule.TABLE_LOOKUP, is_lookup=True),
)
def _contrib_SparseEmbedding(
    data: UntypedTensor,
    weight: Tensor,
    *,
    input_dim: Positive,
    output_dim: Positive,
    dtype: Dtype = "float32",
    deterministic: bool = False,
) -> jax.Array:
    """Look up rows of `weight` as `Embedding` does; kept under its old name."""
    return _look_up(data, weight, (input_dim, output_dim))


@op()
def _contrib_index_copy(old_tensor: Tensor, index_vector: UntypedTensor, new_tensor: Tensor) -> jax.Array:
    """Return `old_tensor` (n, …) with row `index_vector[k]` replaced by `new_tensor[k]`, new_tensor (k, …)."""
    if index_vector.ndim != 1 or new_tensor.shape != (*index_vector.shape, *old_tensor.shape[1:]):
        raise ArgumentError(
            f"new_tensor has shape {new_tensor.shape}: expected one slice of {old_tensor.shape} for each of the "
            f"{index_vector.size} indices"
        )
    return _put_points(old_tensor, new_tensor, (as_index(index_vector),))


@op()
def _contrib_index_array(data: UntypedTensor, *, axes: Axes = None) -> jax.Array:
    """Coordinates (int64) of every element: data (d1, …, dn) -> (d1, …, dn, n), or one per axis in `axes`."""
    kept = range(data.ndim) if axes is None else [one_axis(a, data.ndim, "axes") for a in axes]
    return jnp.stack([lax.broadcasted_iota(jnp.int64, data.shape, a) for a in kept], -1)


@op(aliases=("ravel_multi_index",))
def _ravel_multi_index(data: Tensor, *, shape: Shape) -> jax.Array:
    """Turn coordinates (n, k…) in an array of `shape` into flat positions (k…), of the dtype of `data`."""
    if data.ndim < 1 or data.shape[0] != len(shape):
        raise ArgumentError(f"shape={shape}: expected {data.shape[:1]} axes, the first length of data {data.shape}")
    flat = jnp.zeros(data.shape[1:], jnp.int64)
    for coordinate, n in zip(data.astype(jnp.int64), shape, strict=True):
        flat = flat * n + coordinate
    return (flat if flat.ndim else flat.reshape(1)).astype(data.dtype)


@op(aliases=("unravel_index",))
def _unravel_index(data: Tensor, *, shape: Shape) -> jax.Array:
    """Turn flat positions (k…) in an array of `shape` into coordinates (n, k…), of the dtype of `data`.

    The first length of `shape` may be -1 (unknown); it is not needed.
    """
    flat, out = data.astype(jnp.int64), []
    for n in shape[:0:-1]:
        out.append(flat % n)
        flat = flat // n
    return jnp.stack([flat, *out[::-1]]).astype(data.dtype)


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


@op(name="slice", aliases=("crop", "_npi_slice", "_npx_slice"), traits=stored(StorageRule.SLICE), method="slice")
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


@op(method="slice_axis")
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


def _moving(taken: list[range], shape: tuple[int, ...]) -> RuntimeCall | None:
    """The window of some positions as a call whose place is a runtime input."""
    size, start = tuple(map(len, taken)), tuple(float(r.start) for r in taken)
    if size == shape or 0 in size or any(r.step != 1 for r in taken) or max(start) >= FLOAT32_EXACT_INTS:
        return None
    return OPS["_window"].call(size=size, start=start), start


def _moving_slice(params: Mapping[str, Any], shape: tuple[int, ...], _: np.dtype) -> RuntimeCall | None:
    return _moving(sliced(shape, params["begin"], params["end"], params["step"]), shape)


def _moving_axis(params: Mapping[str, Any], shape: tuple[int, ...], _: np.dtype) -> RuntimeCall | None:
    axis = one_axis(params["axis"], len(shape))
    return _moving(
        [range(n)[params["begin"] : params["end"]] if i == axis else range(n) for i, n in enumerate(shape)], shape
    )


slice_.runtime_form, slice_axis.runtime_form = _moving_slice, _moving_axis


@op(method="slice_like")
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
