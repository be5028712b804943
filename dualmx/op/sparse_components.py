"""Operators on the components of sparse arrays, dense pieces of fixed length, so that no shape depends on values.

A row_sparse array is `rows` (P, …) with `ids` (P,); a csr array is `values` (P,) and `columns` (P,) with `pointer`
(n+1,). P is the number of stored elements rounded up: padding of rows has an id outside the array and is dropped, that
of elements lies behind the last row. None of these operators is registered: the storage types are made of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from .registry import Op
from .schema import Count, Shape, Tensor, UntypedTensor
from .traits import NO_TRAITS, Traits

Array = jax.Array


def component_op(outputs: int = 1, traits: Traits = NO_TRAITS) -> Callable[[Callable[..., Any]], Op]:
    """Make an unregistered operator of the decorated body."""

    def make(fn: Callable[..., Any]) -> Op:
        return Op("_" + fn.__name__, fn, outputs=outputs, traits=traits)

    return make


def row_of_element(pointer: Array, count: int) -> Array:
    """The row that each of `count` stored elements belongs to; the number of rows for those behind the last."""
    ends = jnp.zeros(count, jnp.int32).at[pointer[1:]].add(1, mode="drop")
    return jnp.cumsum(ends, dtype=jnp.int32)


def scatter_rows(rows: Array, at: Array, length: int) -> Array:
    """Zeros (length, …) with `rows` added at `at`; positions outside are dropped."""
    return jnp.zeros((length, *rows.shape[1:]), rows.dtype).at[at].add(rows, mode="drop")


@component_op()
def rows_dense(rows: Tensor, ids: UntypedTensor, *, length: Count) -> Array:
    """The dense array of a row_sparse one; also sums rows (P, …) into `length` slots."""
    return scatter_rows(rows, ids, length)


@component_op(traits=Traits(is_lookup=True))
def rows_gather(ids: UntypedTensor, table: Tensor) -> Array:
    """Rows `ids` of `table`; ids outside get some row."""
    return jnp.take(table, ids, axis=0, mode="clip")


@component_op()
def rows_find(ids: UntypedTensor, wanted: UntypedTensor) -> Array:
    """Position of each of `wanted` in the ascending `ids`; P for those that are not there."""
    wanted = wanted.astype(ids.dtype)
    at = jnp.searchsorted(ids, wanted).astype(jnp.int32)
    return jnp.where(jnp.take(ids, at, mode="clip") == wanted, at, ids.shape[0])


@component_op()
def ids_of_dense(rows: Tensor) -> Array:
    """The number of each row; of rows of zeros, which a row_sparse array does not store, one outside."""
    stored = (rows != 0).any(axis=tuple(range(1, rows.ndim)))
    return jnp.where(stored, jnp.arange(len(rows), dtype=jnp.int32), len(rows))


@component_op()
def take_rows_or_zero(rows: Tensor, at: UntypedTensor) -> Array:
    """Rows at the positions `at`, zeros for positions outside."""
    return jnp.take(rows, at, axis=0, mode="fill", fill_value=0)


@component_op()
def set_rows(table: Tensor, rows: Tensor, ids: UntypedTensor) -> Array:
    """`table` with other rows at `ids`; ids outside are dropped."""
    return table.at[ids].set(rows, mode="drop")


@component_op(outputs=2)
def rows_of_lookups(*data: UntypedTensor, num_rows: Count, num_args: Count = 0) -> tuple[Array, Array]:
    """Ids and rows of the gradient of a table, from pairs (ids, gradient of what was looked up), ids clipped."""
    ids, rows = [], []
    for where, grad in zip(data[::2], data[1::2], strict=True):
        ids.append(jnp.clip(where.astype(jnp.int32), 0, num_rows - 1).reshape(-1))
        rows.append(grad.reshape(-1, *grad.shape[where.ndim :]))
    return (ids[0], rows[0]) if len(ids) == 1 else (jnp.concatenate(ids), jnp.concatenate(rows))


@component_op(outputs=2)
def concat_rows(*data: UntypedTensor, num_args: Count = 0) -> tuple[Array, Array]:
    """Ids and rows of several row_sparse arrays, one behind the other."""
    return jnp.concatenate(data[::2]), jnp.concatenate(data[1::2])


def sum_duplicates(ids: Array, rows: Array, outside: int) -> tuple[Array, Array]:
    """Ascending unique ids and their summed rows, of the same length; the rest has the id `outside`."""
    count = ids.shape[0]
    # One sort of numbers that hold id and place is several times faster than a sort of pairs, or of places by id.
    keys = jnp.sort((ids.astype(jnp.int64) << 32) | jnp.arange(count, dtype=jnp.int64))
    ordered, place = (keys >> 32).astype(ids.dtype), keys.astype(jnp.int32)
    first = jnp.concatenate([jnp.ones(1, jnp.bool_), ordered[1:] != ordered[:-1]])
    slot = jnp.cumsum(first, dtype=jnp.int32) - 1
    unique = jnp.full(count, outside, ids.dtype).at[slot].set(ordered)
    return unique, scatter_rows(rows, jnp.zeros(count, jnp.int32).at[place].set(slot), count)


@component_op()
def csr_dense(values: Tensor, columns: UntypedTensor, pointer: UntypedTensor, *, width: Count) -> Array:
    """The dense matrix of a csr one."""
    height = pointer.shape[0] - 1
    at = (row_of_element(pointer, values.shape[0]), columns)
    return jnp.zeros((height, width), values.dtype).at[at].add(values, mode="drop")


@component_op()
def csr_sample(dense: Tensor, columns: UntypedTensor, pointer: UntypedTensor) -> Array:
    """Elements of `dense`, whose axes may have length 1, at the stored places of a csr matrix."""
    line = row_of_element(pointer, columns.shape[0])
    at = (line if dense.shape[0] > 1 else jnp.zeros_like(line), columns if dense.shape[1] > 1 else 0 * columns)
    return dense.at[at].get(mode="clip")


@component_op()
def csr_combine(values: Tensor, gathered: Tensor, pointer: UntypedTensor) -> Array:
    """Row sums of a csr matrix whose elements weigh the vectors `gathered` (P, k)."""
    return scatter_rows(values[:, None] * gathered, row_of_element(pointer, values.shape[0]), pointer.shape[0] - 1)


@component_op(outputs=2)
def csr_transposed_dot(
    values: Tensor, dense: Tensor, columns: UntypedTensor, pointer: UntypedTensor, *, width: Count
) -> tuple[Array, Array]:
    """Ids, which may repeat, and rows of the product of a transposed csr matrix and `dense`."""
    line = row_of_element(pointer, values.shape[0])
    rows = values[:, None] * jnp.take(dense, line, axis=0, mode="clip")
    return jnp.where(line < pointer.shape[0] - 1, columns, width).astype(jnp.int32), rows


@component_op()
def csr_sum(values: Tensor, columns: UntypedTensor, pointer: UntypedTensor, *, shape: Shape, axis: Count) -> Array:
    """Sums of a csr matrix of `shape` along `axis`."""
    line = row_of_element(pointer, values.shape[0])
    inside = line < shape[0]
    wide = jnp.where(inside, values, 0).astype(jnp.float32 if values.dtype.itemsize < 4 else values.dtype)
    at = columns if axis == 0 else line
    return jnp.zeros(shape[1 - axis], wide.dtype).at[at].add(wide, mode="drop").astype(values.dtype)


@component_op()
def valid_rows(rows: Tensor, ids: UntypedTensor, *, length: Count) -> Array:
    """`rows` with zeros where nothing is stored."""
    return jnp.where((ids < length).reshape(-1, *[1] * (rows.ndim - 1)), rows, 0)


__all__ = [
    "component_op", "concat_rows", "csr_combine", "csr_dense", "csr_sample", "csr_sum", "csr_transposed_dot",
    "row_of_element", "rows_dense", "rows_find", "rows_gather", "rows_of_lookups", "scatter_rows", "set_rows",
    "sum_duplicates", "take_rows_or_zero", "valid_rows",
]  # fmt: skip
