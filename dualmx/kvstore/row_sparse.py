"""Conversion of row_sparse arrays to row ids and rows, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError
from ..ndarray import NDArray
from ..ps.row_requests import is_row_sliced, pull_rows
from ..sparse import RowSparseNDArray, store, write_rows

if TYPE_CHECKING:
    from .dist import DistKVStore

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


# -- between a distributed store and arrays


def pull_rows_into(kv: DistKVStore, pairs: Sequence[tuple[Any, list[NDArray]]], row_ids: list[NDArray]) -> None:
    """Fetch the rows `row_ids`, one array of them for all arrays of the pairs or one for each.

    Raises:
        ArgumentError: another number of them, or rows that are not there. MXNetError: a peer is gone.
    """
    what, count = "kvstore.row_sparse_pull", sum(len(group) for _, group in pairs)
    if len(row_ids) not in (1, count):
        raise ArgumentError(f"{what}: {len(row_ids)} arrays of row_ids for {count} arrays in out")
    remaining = iter(row_ids * count if len(row_ids) == 1 else row_ids)
    asked: list[tuple[Any, NDArray, np.ndarray]] = []
    for k, group in pairs:
        for a in group:
            kv._check_array("row_sparse_pull", k, a)
            asked.append((k, a, parse_row_ids(next(remaining), a.shape[0], what)))
    ids = {k: union_ids([i for other, _, i in asked if other == k]) for k, _ in pairs}
    unsliced = [k for k in ids if not is_row_sliced(kv._kv.keys[kv._number, k])]
    received = pull_rows(kv._kv, kv._number, {k: i for k, i in ids.items() if k not in unsliced})
    values = kv._values(unsliced) if unsliced else {}
    kv._wait_for_pushes(ids)
    found = received() | {k: (ids[k], values[k][ids[k]]) for k in unsliced}
    for k, a, own in asked:
        store_rows(a, select_rows(found[k], own), what)


def pull_stored_rows(kv: DistKVStore, tables: Mapping[Any, Sequence[NDArray]]) -> None:
    """Fetch the rows that are stored into row_sparse arrays."""
    received = pull_rows(kv._kv, kv._number, dict.fromkeys(tables))
    kv._wait_for_pushes(tables)
    for k, found in received().items():
        for a in tables[k]:
            store_rows(a, found, "kvstore.pull")


def refresh(kv: DistKVStore, key: Any, tables: Sequence[NDArray], row_ids: NDArray | None) -> None:
    """See `DistKVStore.refresh`."""
    if row_ids is None or not is_row_sliced(kv._kv.keys[kv._number, key]):
        value = kv._values([key])[key]
        for table in tables:
            table[:] = value
        return
    write_changed(kv, {key: (tables, parse_row_ids(row_ids, tables[0].shape[0], "kvstore.refresh"))})


def write_changed(kv: DistKVStore, changed: Mapping[Any, tuple[Sequence[NDArray], np.ndarray]]) -> None:
    """Fetch rows of keys, by ascending numbers, and write them into copies that have all their rows."""
    received = pull_rows(kv._kv, kv._number, {k: ids for k, (_, ids) in changed.items()})
    kv._wait_for_pushes(changed)
    for k, found in received().items():
        for table in changed[k][0]:
            write_rows(table, *found)


__all__ = [
    "RowIdsAndValues", "parse_row_ids", "pull_rows_into", "pull_stored_rows", "refresh", "rows_of", "store_rows",
    "write_changed",
]  # fmt: skip
