"""`CSRNDArray`: a matrix in compressed sparse row form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ..core.context import Context
from ..core.errors import ArgumentError, MXNetError
from ..ndarray.handle import invoke
from ..ndarray.ndarray import NDArray
from ..ndarray.serialize import SparseBody
from ..op import sparse_components as part
from .base import BaseSparseNDArray, component, leading_rows, moved, pad_to, padded_size
from .row_sparse import RowSparseNDArray


class CSRNDArray(BaseSparseNDArray):
    """A matrix of which only some elements are stored, row by row.

    Row i has the values `data[indptr[i]:indptr[i + 1]]` in the columns `indices[indptr[i]:indptr[i + 1]]`. Made by
    `csr_matrix`, `zeros`, `array`, `tostype` and `LibSVMIter`.

    Example:
        >>> import dualmx as mx
        >>> x = mx.nd.array([[0, 1], [2, 3]]).tostype("csr")
        >>> x.data.asnumpy().tolist(), x.indices.asnumpy().tolist(), x.indptr.asnumpy().tolist()
        ([1.0, 2.0, 3.0], [1, 0, 1], [0, 1, 3])
    """

    __slots__ = ("values", "column_ids", "pointer", "count")
    _stype = "csr"
    values: NDArray
    column_ids: NDArray
    pointer: NDArray
    count: int

    @classmethod
    def of(cls, shape: tuple[int, ...], values: NDArray, columns: NDArray, pointer: NDArray, count: int) -> Self:
        """Return the array of padded pieces."""
        self = cls._blank(shape, values.dtype, values.context)
        self.values, self.column_ids, self.pointer, self.count = values, columns, pointer, count
        return self

    @classmethod
    def of_host(
        cls, shape: tuple[int, ...], values: np.ndarray, columns: Any, pointer: Any, ctx: Context | None
    ) -> Self:
        """Return the array of NumPy pieces."""
        size = padded_size(len(values))
        # Padding looks up a row that is looked up anyway: a gradient by row must not have rows that nothing uses.
        places = component(pad_to(np.asarray(columns, np.int32), size, columns[-1] if len(columns) else 0), ctx)
        held = component(np.asarray(pointer, np.int32), ctx)
        return cls.of(tuple(shape), component(pad_to(values, size), ctx), places, held, len(values))

    @classmethod
    def of_numpy(cls, values: np.ndarray, ctx: Context) -> Self:
        """Return the array of the elements of `values` that are not zero."""
        if values.ndim != 2:
            raise ArgumentError(f"a csr array has 2 axes; got an array of shape {values.shape}")
        lines, columns = np.nonzero(values)
        return cls.of_host(values.shape, values[lines, columns], columns, indptr_of(lines, len(values)), ctx)

    @classmethod
    def of_body(cls, body: SparseBody, ctx: Context | None = None) -> Self:
        return cls.of_host(body.shape, body.data, body.aux[1], body.aux[0], ctx)

    def body(self) -> SparseBody:
        values, columns, pointer = self.host()
        return SparseBody("csr", self.shape, values, (pointer, columns))

    def replace_with(self, other: Self) -> None:
        self.values, self.column_ids, self.pointer, self.count = (
            other.values,
            other.column_ids,
            other.pointer,
            other.count,
        )
        self.dense = other.dense

    def host(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values, columns and row pointer as NumPy arrays, the latter two of int64."""
        parts = self.materialized()
        columns, pointer = (a.asnumpy().astype(np.int64) for a in (parts.column_ids, parts.pointer))
        return parts.values.asnumpy()[: parts.count], columns[: parts.count], pointer

    def row_ids(self) -> np.ndarray:
        """The row of each stored element."""
        pointer = self.materialized().pointer.asnumpy()
        return np.repeat(np.arange(len(pointer) - 1), np.diff(pointer))

    def to_dense(self) -> NDArray:
        if self.dense is not None:
            return self.dense
        if len(self.shape) != 2:
            raise MXNetError(f"a csr array has 2 axes; this one has shape {self.shape}")
        return invoke(part.csr_dense.call(width=self.shape[1]), (self.values, self.column_ids, self.pointer))[0]

    def with_values(self, values: NDArray) -> Self:
        return self.of(self.shape, values, self.column_ids, self.pointer, self.count)

    def _stored(self) -> NDArray:
        return self.materialized().values

    def _raw_values(self) -> NDArray:
        return self.values

    def _put_stored(self, values: NDArray) -> None:
        self.values = values

    @property
    def nnz(self) -> int:
        """Number of stored elements."""
        return self.materialized().count

    @property
    def data(self) -> NDArray:
        """The stored values, a copy of shape (nnz,)."""
        parts = self.materialized()
        return leading_rows(parts.values, parts.count)

    @property
    def indices(self) -> NDArray:
        """The columns of the stored values, int64 of shape (nnz,)."""
        return component(self.host()[1], self.context)

    @property
    def indptr(self) -> NDArray:
        """Where each row begins in `data`, int64 of shape (rows + 1,)."""
        return component(self.host()[2], self.context)

    def asscipy(self) -> Any:
        """Return a `scipy.sparse.csr_matrix`."""
        from scipy.sparse import csr_matrix

        values, columns, pointer = self.host()
        return csr_matrix((values, columns, pointer), shape=self.shape, dtype=self.dtype)

    def to_context(self, ctx: Context) -> NDArray:
        if self.dense is not None:
            return self.of_dense(self.dense.copyto(ctx))
        values = self.values.copy() if ctx is self.context else moved(self.values, ctx)
        return self.of(self.shape, values, moved(self.column_ids, ctx), moved(self.pointer, ctx), self.count)

    def __getitem__(self, key: Any) -> NDArray:
        if isinstance(key, (int, np.integer)):
            if not -self.shape[0] <= key < self.shape[0]:
                raise ArgumentError(f"index {key} is out of bounds for axis 0 of length {self.shape[0]}")
            line = int(key) % self.shape[0]
            return self.submatrix(line, line + 1)
        if isinstance(key, slice):
            if key.step not in (None, 1):
                raise ArgumentError(f"a csr array can be sliced with step 1 only, got {key!r}")
            if key.start is None and key.stop is None:
                return self
            begin, end, _ = key.indices(self.shape[0])
            if begin >= end:
                raise ArgumentError(f"slice {key!r} of axis 0 of length {self.shape[0]} is empty")
            return self.submatrix(begin, end)
        if isinstance(key, tuple):
            raise ArgumentError(f"a csr array can be indexed along axis 0 only, got {key!r}")
        raise ArgumentError(f"a csr array takes an int or a slice, got {key!r}")

    def submatrix(self, begin: int, end: int, first: int = 0, last: int | None = None) -> NDArray:
        """Return the rows `begin` to `end` and the columns `first` to `last` as a csr array."""
        width = self.shape[1] if last is None else last
        if self.dense is not None and self.tracked:
            return self.of_dense(self.dense[begin:end, first:width])
        values, columns, pointer = self.host()
        lo, hi = int(pointer[begin]), int(pointer[end])
        kept, place, ends = values[lo:hi], columns[lo:hi], pointer[begin : end + 1] - lo
        if first > 0 or width < self.shape[1]:
            inside = (place >= first) & (place < width)
            ends = np.concatenate([[0], np.cumsum(inside)])[ends]
            kept, place = kept[inside], place[inside] - first
        return self.of_host((end - begin, width - first), kept, place, ends, self.context)

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(key, slice) or key != slice(None):
            raise ArgumentError(f"a csr array can be assigned to as x[:] = … only, got {key!r}")
        if isinstance(value, (int, float, np.number)):
            raise ArgumentError("a csr array cannot be filled with a number; assign an array")
        self.assign(self.array_to_assign(value))

    def _problem(self, full: bool) -> str | None:
        if self.dense is not None:
            return None
        values, columns, pointer = self.host()
        if len(pointer) != self.shape[0] + 1 or len(columns) != len(values):
            return (
                f"shapes of data {values.shape}, indices {columns.shape} and indptr {pointer.shape} do not fit "
                + str(self.shape)
            )
        if pointer[0] != 0 or pointer[-1] != len(values) or (full and (pointer[1:] < pointer[:-1]).any()):
            return f"indptr of a csr array must rise from 0 to the number of stored elements, {len(values)}"
        if full and len(columns):
            lines = self.row_ids()
            same = lines[1:] == lines[:-1]
            if columns.min() < 0 or columns.max() >= self.shape[1] or (same & (columns[1:] <= columns[:-1])).any():
                return (
                    f"indices of a csr array must be non-negative, ascending in each row and less than the number of "
                    f"columns, {self.shape[1]}"
                )
        return None

    def set_row_grad(self, lookups: Sequence[tuple[NDArray, NDArray]], add: bool) -> None:
        rows = RowSparseNDArray.from_numpy_parts(
            self.shape, np.zeros((0, *self.shape[1:]), self.dtype), np.zeros(0), None
        )
        rows.set_row_grad(lookups, False)
        self.set_dense_grad(rows.to_dense(), add)


def indptr_of(lines: np.ndarray, count: int) -> np.ndarray:
    """Row pointer of elements whose rows, in ascending order, are `row_ids`."""
    return np.concatenate([[0], np.cumsum(np.bincount(lines, minlength=count))])


__all__ = ["CSRNDArray", "indptr_of"]
