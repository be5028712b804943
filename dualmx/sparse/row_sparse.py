"""`RowSparseNDArray`: an array of which some rows are stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ..core.context import Context
from ..core.errors import ArgumentError, ArgumentTypeError
from ..ndarray.handle import invoke, is_tracked
from ..ndarray.ndarray import NDArray
from ..ndarray.recorder import local
from ..ndarray.serialize import SparseBody
from ..op import sparse_components as part
from ..op.registry import OPS
from .base import BaseSparseNDArray, component, leading_rows, moved, pad_to, padded_size

# Gradients that accumulate are summed row by row when they have grown this much.
_GROWTH = 4


class RowSparseNDArray(BaseSparseNDArray):
    """Rows of an array with the numbers of these rows; all other rows are zero.

    Typical of gradients of large tables of which a batch uses few rows. Made by `row_sparse_array`, `zeros`, `tostype`
    and by backward passes.

    Example:
        >>> import dualmx as mx
        >>> x = mx.nd.sparse.row_sparse_array(([[1, 2]], [3]), shape=(5, 2))
        >>> x.indices.asnumpy().tolist(), x.data.asnumpy().tolist()
        ([3], [[1.0, 2.0]])
    """

    __slots__ = ("rows", "ids", "count", "table")
    _stype = "row_sparse"
    rows: NDArray
    ids: NDArray
    count: int | None  # stored rows; None while rows of equal number are still apart
    table: NDArray | None  # variable whose rows these are; gradients go to it

    @classmethod
    def of(cls, shape: tuple[int, ...], rows: NDArray, ids: NDArray, count: int | None) -> Self:
        """Return the array of padded pieces."""
        self = cls._blank(shape, rows.dtype, rows.context)
        self.table = None
        self.rows, self.ids, self.count = rows, ids, count
        return self

    @classmethod
    def from_numpy_parts(cls, shape: tuple[int, ...], rows: np.ndarray, ids: np.ndarray, ctx: Context | None) -> Self:
        """Return the array of NumPy pieces."""
        size = padded_size(len(ids), shape[0])
        where = pad_to(np.asarray(ids, np.int32), size, shape[0])
        return cls.of(tuple(shape), component(pad_to(rows, size), ctx), component(where, ctx), len(ids))

    @classmethod
    def of_dense(cls, array: NDArray) -> Self:
        self = super().of_dense(array)
        self.table = None
        return self

    @classmethod
    def of_numpy(cls, values: np.ndarray, ctx: Context) -> Self:
        """Return the array of the rows of `values` that are not zero."""
        ids = np.flatnonzero((values != 0).reshape(len(values), -1).any(1))
        return cls.from_numpy_parts(values.shape, values[ids], ids, ctx)

    @classmethod
    def of_body(cls, body: SparseBody, ctx: Context | None = None) -> Self:
        return cls.from_numpy_parts(body.shape, body.data, body.aux[0], ctx)

    def body(self) -> SparseBody:
        return SparseBody("row_sparse", self.shape, self.data.asnumpy(), (self.indices.asnumpy(),))

    def replace_with(self, other: Self) -> None:
        self.rows, self.ids, self.count, self.dense = other.rows, other.ids, other.count, other.dense
        self.table = None

    def to_dense(self) -> NDArray:
        if self.dense is not None:
            return self.dense
        if self.tracked:
            return invoke(OPS["_sparse_retain"].call(), (self.table, self.indices))[0]  # type: ignore[arg-type]
        return invoke(part.rows_dense.call(length=self.shape[0]), (self.rows, self.ids))[0]

    @property
    def tracked(self) -> bool:
        """True if gradients can flow to the array."""
        return super().tracked or (local.recording and self.table is not None and is_tracked(self.table))

    def with_values(self, values: NDArray) -> Self:
        return self.of((self.shape[0], *values.shape[1:]), values, self.ids, self.count)

    def _stored(self) -> NDArray:
        return self.coalesced().rows

    def _raw_values(self) -> NDArray:
        return self.rows

    def _put_stored(self, values: NDArray) -> None:
        self.rows = values

    def coalesced(self) -> Self:
        """Return the array in pieces with each row once; rows of equal number are summed, which waits for them."""
        if self.dense is not None:
            return self.materialized()
        if self.count is None:
            found = self.ids.asnumpy()
            ids, slots = np.unique(found, return_inverse=True)
            count = int(np.searchsorted(ids, self.shape[0]))
            size = padded_size(count, self.shape[0])
            slots = np.where(slots < count, slots, size).astype(np.int32)
            ctx = self.context
            total = part.rows_dense.call(length=size)
            self.rows = invoke(total, (self.rows, component(slots.reshape(-1), ctx)))[0]
            self.ids = component(pad_to(ids[:count].astype(np.int32), size, self.shape[0]), ctx)
            self.count = count
        return self

    @property
    def n_stored_rows(self) -> int:
        """Number of stored rows."""
        count = self.coalesced().count
        assert count is not None
        return count

    @property
    def nnz(self) -> int:
        """Number of stored elements."""
        return self.n_stored_rows * int(np.prod(self.shape[1:]))

    @property
    def data(self) -> NDArray:
        """The stored rows, a copy of shape (k, \\*shape[1:])."""
        held = self.coalesced()
        return leading_rows(held.rows, held.n_stored_rows)

    @property
    def indices(self) -> NDArray:
        """The numbers of the stored rows, int64 of shape (k,)."""
        held = self.coalesced()
        return component(held.ids.asnumpy()[: held.n_stored_rows].astype(np.int64), self.context)

    def to_context(self, ctx: Context) -> NDArray:
        if self.dense is not None:
            return self.of_dense(self.dense.copyto(ctx))
        rows = self.rows.copy() if ctx is self.context else moved(self.rows, ctx)
        return self.of(self.shape, rows, moved(self.ids, ctx), self.count)

    def retain(self, indices: NDArray) -> RowSparseNDArray:
        """Return the array with the rows `indices` only, zeros for those that are not stored.

        Raises:
            ArgumentTypeError: `indices` is not an NDArray.
        """
        if not isinstance(indices, NDArray):
            raise ArgumentTypeError(f"retain: indices={indices!r}: expected an NDArray")
        ids = indices.asnumpy().reshape(-1).astype(np.int64)
        size = padded_size(len(ids), self.shape[0])
        wanted = component(pad_to(ids.astype(np.int32), size, self.shape[0]), self.context)
        if self.dense is not None:
            rows = invoke(part.take_rows_or_zero.call(), (self.dense, wanted))[0]
        else:
            held = self.coalesced().sorted_by_id()
            at = invoke(part.rows_find.call(), (held.ids, wanted))[0]
            rows = invoke(part.take_rows_or_zero.call(), (held.rows, at))[0]
        return self.of(self.shape, rows, wanted, len(ids))

    def sorted_by_id(self) -> Self:
        """Return the array with its rows in ascending order, as everything but a user's own pieces is."""
        ids = self.ids.asnumpy()
        if (ids[1:] >= ids[:-1]).all():
            return self
        order = np.argsort(ids, kind="stable").astype(np.int32)
        rows = invoke(part.take_rows_or_zero.call(), (self.rows, component(order, self.context)))[0]
        return self.of(self.shape, rows, component(ids[order], self.context), self.count)

    def __getitem__(self, key: Any) -> NDArray:
        if isinstance(key, slice) and key == slice(None):
            return self
        raise ArgumentError(f"a row_sparse array takes [:] only, got {key!r}; use retain or tostype('default')")

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(key, slice) or key != slice(None):
            error = ArgumentError if isinstance(key, slice) else ArgumentTypeError
            raise error(f"a row_sparse array can be assigned to as x[:] = … only, got {key!r}")
        if isinstance(value, (int, float, np.number)) and value == 0:
            self.clear()
        else:
            self.assign(self.array_to_assign(value))

    def clear(self) -> None:
        """Store no row any more."""
        rows = np.zeros((0, *self.shape[1:]), self._value.dtype)
        if self.dense is not None and is_tracked(self.dense):
            self.dense[:] = 0
        else:
            self.replace_with(self.from_numpy_parts(self.shape, rows, np.zeros(0), self.context))
        self._changed()

    def _problem(self, full: bool) -> str | None:
        if not full or self.dense is not None:
            return None
        ids = self.indices.asnumpy()
        if len(ids) and (ids[0] < 0 or ids[-1] >= self.shape[0] or (ids[1:] <= ids[:-1]).any()):
            return (
                f"indices of a row_sparse array must be non-negative, ascending and less than the number of rows, "
                f"{self.shape[0]}"
            )
        return None

    # -- gradients

    def set_row_grad(self, lookups: Sequence[tuple[NDArray, NDArray]], add: bool) -> None:
        flat = [a for pair in lookups for a in pair]
        call = part.rows_of_lookups.call(num_rows=self.shape[0], num_args=len(flat))
        ids, rows = invoke(call, flat)
        if add and self.dense is not None:
            made = self.of(self.shape, rows, ids, None)
            self.set_dense_grad(made.to_dense(), True)
            return
        if add and self.count != 0:
            held = self.coalesced() if self.ids.shape[0] > _GROWTH * ids.shape[0] else self
            ids, rows = invoke(part.concat_rows.call(num_args=4), (held.ids, held.rows, ids, rows))
        self.rows, self.ids, self.count, self.dense, self.table = rows, ids, None, None, None
        self._changed()


__all__ = ["RowSparseNDArray"]
