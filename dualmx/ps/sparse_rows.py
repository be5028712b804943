"""Row-sparse values (`IndexedSlices`), the tables that they update, and snapshots of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..core.dtypes import is_float
from ..core.errors import FormatError

INDEX = np.dtype(np.int64)


class IndexedSlices:
    """Some rows of a slice; the others are zero.

    Args:
        ids: numbers of the rows within the slice (k,), ascending.
        values: the rows (k, width).
        size: elements of the slice.

    Example:
        >>> IndexedSlices(np.array([1]), np.array([[5.0, 6.0]]), size=6).dense()
        array([0., 0., 5., 6., 0., 0.])
    """

    def __init__(self, ids: np.ndarray, values: np.ndarray, size: int):
        self.ids, self.values, self.size = ids, values, size

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the slice."""
        return (self.size,)

    @property
    def dtype(self) -> np.dtype:
        """Of the numbers."""
        return self.values.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the dense slice."""
        return self.size * self.dtype.itemsize

    def dense(self) -> np.ndarray:
        """Return the dense slice (size,)."""
        table = np.zeros((self.size // self.values.shape[1], self.values.shape[1]), self.dtype)
        table[self.ids] = self.values
        return table.reshape(-1)

    def pick(self, ids: np.ndarray) -> np.ndarray:
        """The rows `ids` (k, width)."""
        found = np.zeros((len(ids), self.values.shape[1]), self.dtype)
        if len(self.ids):
            at = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
            here = self.ids[at] == ids
            found[here] = self.values[at[here]]
        return found


class MutableTable:
    """A slice whose rows are updated in place; readers get copies.

    Args:
        look: returns the numbers (size,) as they are now.
        size, dtype: of the slice.
        width: elements of a row.
    """

    def __init__(self, look: Callable[[], np.ndarray], size: int, dtype: np.dtype, width: int):
        self._look, self.size, self.dtype, self._width = look, size, dtype, width
        self._copy: np.ndarray | None = None
        self._before: IndexedSlices | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the slice."""
        return (self.size,)

    @property
    def nbytes(self) -> int:
        """Of the slice."""
        return self.size * self.dtype.itemsize

    def begin_update(self, ids: np.ndarray, keep: bool) -> None:
        """Rows `ids` are about to change; their values are kept for `previous` if `keep`."""
        self._copy = None
        self._before = IndexedSlices(ids, self.pick(ids), self.size) if keep else None

    def previous(self) -> TableSnapshot:
        """The numbers before the last change."""
        assert self._before is not None
        return TableSnapshot(self, self._before)

    def dense(self) -> np.ndarray:
        """Return the dense slice (size,), one copy for all readers until the next change."""
        if self._copy is None:
            self._copy = np.array(self._look()).reshape(-1)
        return self._copy

    def pick(self, ids: np.ndarray) -> np.ndarray:
        """The rows `ids` (k, width)."""
        return self._look().reshape(-1, self._width)[ids]


class TableSnapshot:
    """A table as it was before some rows changed; good until the next change.

    Args:
        table: the table.
        rows: what they were.
    """

    def __init__(self, table: MutableTable, rows: IndexedSlices):
        self._table, self._rows = table, rows
        self.shape, self.size, self.dtype, self.nbytes = table.shape, table.size, table.dtype, table.nbytes

    def dense(self) -> np.ndarray:
        """Return the dense slice (size,)."""
        table = self._table.dense().reshape(-1, self._rows.values.shape[1]).copy()
        table[self._rows.ids] = self._rows.values
        return table.reshape(-1)

    def pick(self, ids: np.ndarray) -> np.ndarray:
        """The rows `ids` (k, width)."""
        found, old = self._table.pick(ids), self._rows
        if len(old.ids):
            at = np.minimum(np.searchsorted(old.ids, ids), len(old.ids) - 1)
            here = old.ids[at] == ids
            found[here] = old.values[at[here]]
        return found


Value = np.ndarray | IndexedSlices | MutableTable | TableSnapshot
RowRequest = np.ndarray | None  # rows that a request asks for; None for all that are stored


def dense(value: Value) -> np.ndarray:
    """A slice (n,) with all its rows."""
    return value if isinstance(value, np.ndarray) else value.dense()


def sum_pushes(pushed: Sequence[IndexedSlices]) -> IndexedSlices:
    """The sum of pushes, in their order; 16-bit floats in float32."""
    first = pushed[0]
    if len(pushed) == 1:
        return first
    ids = np.unique(np.concatenate([p.ids for p in pushed]))
    dtype = first.dtype
    wide = np.dtype(np.float32) if is_float(dtype) and dtype.itemsize == 2 else dtype
    total = np.zeros((len(ids), first.values.shape[1]), wide)
    for one in pushed:
        total[np.searchsorted(ids, one.ids)] += one.values.astype(wide, copy=False)
    return IndexedSlices(ids, total.astype(dtype, copy=False), first.size)


def select_rows(value: Value, wanted: RowRequest, width: int) -> list[np.ndarray]:
    """Return the requested rows: `[rows]`, or `[ids, rows]` of the stored ones."""
    if wanted is None:
        if isinstance(value, IndexedSlices):
            return [value.ids, value.values]
        return [np.arange(value.size // width, dtype=INDEX), dense(value)]
    return [value.reshape(-1, width)[wanted] if isinstance(value, np.ndarray) else value.pick(wanted)]


def checked_ids(piece: memoryview, count: int, rows: int, what: str) -> np.ndarray:
    """Row numbers (count,) out of a message.

    Raises:
        FormatError: some are missing, not ascending, or no rows of the slice.
    """
    if piece.nbytes != count * INDEX.itemsize:
        raise FormatError(f"{what}: row numbers are missing")
    ids = np.frombuffer(piece, INDEX)
    if count and (ids[0] < 0 or ids[-1] >= rows or (ids[1:] <= ids[:-1]).any()):
        raise FormatError(f"{what}: row numbers: expected ascending ones in [0, {rows})")
    return ids


__all__ = [
    "INDEX", "IndexedSlices", "MutableTable", "RowRequest", "TableSnapshot", "Value", "checked_ids", "dense",
    "select_rows", "sum_pushes",
]  # fmt: skip
