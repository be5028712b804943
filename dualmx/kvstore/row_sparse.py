"""Conversion of row_sparse arrays to row ids and rows, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError
from ..ndarray import NDArray
from ..sparse import RowSparseNDArray, store

RowIdsAndValues = tuple[np.ndarray, np.ndarray]  # ascending ids (k,) and rows (k, ...)


def rows_of(array: RowSparseNDArray) -> RowIdsAndValues:
    """The stored rows of an array, each once, with ascending ids."""
    sorted_rows = array.coalesced().sorted_by_id()
    count = sorted_rows.n_stored_rows
    return sorted_rows.ids.asnumpy()[:count].astype(np.int64), sorted_rows.rows.asnumpy()[:count]


def store_rows(out: NDArray, found: RowIdsAndValues, what: str) -> None:
    """Write rows into `out`: a row_sparse array stores them then, and no others; a dense one gets zeros elsewhere."""
    ids, rows = found
    store(out, RowSparseNDArray.from_numpy_parts(out.shape, rows.astype(out.dtype, copy=False), ids, out.context), what)


def parse_row_ids(row_ids: Any, rows: int, what: str) -> np.ndarray:
    """Ascending row numbers out of an array of them.

    Raises:
        ArgumentTypeError: no NDArray. ArgumentError: no rows of an array of `rows` rows.
    """
    if not isinstance(row_ids, NDArray):
        raise ArgumentTypeError(f"{what}: row_ids={row_ids!r}: expected an NDArray of row numbers, or several")
    ids = np.unique(row_ids.asnumpy().reshape(-1).astype(np.int64))
    if len(ids) and (ids[0] < 0 or ids[-1] >= rows):
        raise ArgumentError(f"{what}: row_ids from {ids[0]} to {ids[-1]}: expected rows in [0, {rows})")
    return ids


def union_ids(ids: Sequence[np.ndarray]) -> np.ndarray:
    """All row numbers of several lists, ascending."""
    return ids[0] if len(ids) == 1 else np.unique(np.concatenate(ids))


def select_rows(found: RowIdsAndValues, ids: np.ndarray) -> RowIdsAndValues:
    """Return the rows with the numbers `ids`, all of which are present."""
    if len(ids) == len(found[0]):
        return found
    return ids, found[1][np.searchsorted(found[0], ids)]


__all__ = ["RowIdsAndValues", "parse_row_ids", "rows_of", "select_rows", "store_rows", "union_ids"]
