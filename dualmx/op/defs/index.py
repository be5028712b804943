"""Operators that read or write elements at positions given by arrays. Indices may have any dtype: floats are cut
toward zero."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.errors import ArgumentError
from ..axes import one_axis
from ..registry import op
from ..schema import Axes, Count, Positive, Shape, Tensor, UntypedTensor
from .window import as_index, constant, last_wins

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


@op(aliases=("_npi_take",))
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
    return _read(data, where, axis), (where, data.shape[axis])


def _read_backward(axis: int, kept: Any, g: jax.Array) -> tuple[jax.Array, None]:
    # A comparison joins the loop of whatever uses the gradient; a scatter is one of its own over zeros.
    where, n = kept
    shape = (*where.shape[:axis], n, *where.shape[axis + 1 :])
    hit = where == lax.broadcasted_iota(where.dtype, shape, axis)
    return jnp.where(hit, g, jnp.zeros((), g.dtype)), None


_read.defvjp(_read_forward, _read_backward)


@op(aliases=("choose_element_0index", "_npx_pick"), complete=_index_of_data)
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


@op(aliases=("_npi_gather_nd", "_npx_gather_nd"))
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


@op(aliases=("_npx_one_hot",))
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


@op(complete=_table, complete_dtype=lambda p, dtypes: {"weight": p.dtype})
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
