"""Row-sparse pushes and pulls: wire format and both sides."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import FormatError, MXNetError
from .protocol import PullRows, PushRows
from .sparse_rows import INDEX, IndexedSlices, RowRequest, checked_ids
from .store import Key, PendingRequest, Shard, Store
from .van.frame import PayloadReader

if TYPE_CHECKING:
    from .customer import Request
    from .worker import KeyInfo, KVWorker, PushFuture

ALL = -1  # in the place of a number of rows: all that are stored
RowIdsAndValues = tuple[np.ndarray, np.ndarray]  # ids (k,) and rows (k, width)


# -- the worker's side


def is_row_sliced(known: KeyInfo) -> bool:
    """Whether the slices of a key consist of complete rows."""
    width = math.prod(known.shape[1:])
    return width > 0 and all(s.start % width == 0 for s in known.slices)


def _split_ids(known: KeyInfo, ids: np.ndarray) -> list[tuple[int, int, int]]:
    """Return for each slice its first row and the range of the ascending `ids` in it."""
    width = math.prod(known.shape[1:])
    firsts = [s.start // width for s in known.slices]
    edges = [*np.searchsorted(ids, firsts).tolist(), len(ids)]
    return [(first, a, b) for first, a, b in zip(firsts, edges, edges[1:], strict=False)]


def push_rows(worker: KVWorker, store: int, gradients: Mapping[Key, RowIdsAndValues]) -> PushFuture:
    """Push rows (k, width), of ascending ids, for the next round of their keys; the other rows are zero."""
    with worker._lock:
        worker.flush()
        sent = worker.MessageBatcher(worker, "push", PushRows(store, []))
        for key, (ids, rows) in gradients.items():
            known, turn = worker.keys[store, key], worker.next_round(store, key)
            flat = np.ascontiguousarray(rows, known.dtype).reshape(len(ids), math.prod(known.shape[1:]))
            for s, (first, a, b) in zip(known.slices, _split_ids(known, ids), strict=True):
                own = np.ascontiguousarray(ids[a:b] - first, INDEX).view(np.uint8)
                data = np.concatenate([own, flat[a:b].reshape(-1).view(np.uint8)])
                sent.add(s.server, [key, s.number, turn, b - a], data)
        sent.queued.requests = sent.send()
        return sent.queued


def pull_rows(
    worker: KVWorker, store: int, wanted: Mapping[Key, RowRequest]
) -> Callable[[], dict[Key, RowIdsAndValues]]:
    """Request rows of keys, by ascending ids or all stored ones; returns a function that waits for them.

    They are those after the rounds that this worker has pushed.
    """
    sent = worker.MessageBatcher(worker, "row_sparse_pull", PullRows(store, []))
    asked: dict[int, list[tuple[Key, int, np.ndarray | None]]] = {}
    for key, ids in wanted.items():
        known, turn = worker.keys[store, key], worker.last_round(store, key)
        cuts = _split_ids(known, np.empty(0, INDEX) if ids is None else ids)
        for s, (first, a, b) in zip(known.slices, cuts, strict=True):
            if ids is not None and a == b:
                continue
            own = None if ids is None else np.ascontiguousarray(ids[a:b] - first, INDEX)
            part = [key, s.number, turn, ALL if own is None else b - a]
            at = sent.add(s.server, part, None if own is None else own.view(np.uint8))
            asked.setdefault(at, []).append((key, first, own))
    tickets = sent.send()
    return lambda: _received(worker, store, wanted, tickets, asked)


def _received(
    worker: KVWorker,
    store: int,
    wanted: Mapping[Key, RowRequest],
    tickets: list[Request],
    asked: dict[int, list[tuple[Key, int, np.ndarray | None]]],
) -> dict[Key, RowIdsAndValues]:
    found: dict[Key, list[RowIdsAndValues]] = {key: [] for key in wanted}
    for i, reply in enumerate(worker.wait(tickets)):
        data, counts = reply.pieces(), iter(reply.meta.get("counts", ()))
        for key, first, own in asked[i]:
            known = worker.keys[store, key]
            width = math.prod(known.shape[1:])
            count = next(counts, 0) if own is None else len(own)
            if own is None:
                own = np.frombuffer(data.read(count * INDEX.itemsize), INDEX)
            piece = data.read(count * width * known.dtype.itemsize)
            if len(own) != count or piece.nbytes != count * width * known.dtype.itemsize:
                raise MXNetError(f"kvstore.row_sparse_pull of key {key!r}: too few numbers")
            found[key].append((own + first, np.frombuffer(piece, known.dtype).reshape(count, width)))
    return {key: _concat_slices(worker.keys[store, key], pieces) for key, pieces in found.items()}


def _concat_slices(known: KeyInfo, pieces: list[RowIdsAndValues]) -> RowIdsAndValues:
    if not pieces:
        return np.empty(0, INDEX), np.empty((0, *known.shape[1:]), known.dtype)
    ids, rows = np.concatenate([p[0] for p in pieces]), np.concatenate([p[1] for p in pieces])
    order = np.argsort(ids, kind="stable")  # answers come server by server
    return ids[order], rows[order].reshape(-1, *known.shape[1:])


# -- the server's side


def _n_rows(shard: Shard, what: str) -> int:
    """Rows of a slice."""
    size = shard.value.size
    if shard.width < 1 or size % shard.width:
        raise FormatError(f"{what} of key {shard.key!r}: slice {shard.number} does not consist of whole rows")
    return size // shard.width


def parse_row_push(store: Store, push: PushRows, data: PayloadReader) -> list[tuple[Key, int, int, IndexedSlices]]:
    """The rows of a push, `(key, slice, round, rows)`."""
    found = []
    for key, number, turn, count in push.parts:
        shard = store.shard(key, number)
        rows, what = _n_rows(shard, "push"), f"push of key {key!r}"
        if not 0 <= count <= rows:
            raise FormatError(f"{what}: {count} rows of {rows}")
        ids = checked_ids(data.read(count * INDEX.itemsize), count, rows, what)
        piece = data.read(count * shard.width * shard.value.dtype.itemsize)
        if piece.nbytes != count * shard.width * shard.value.dtype.itemsize:
            raise FormatError(f"{what}: the numbers of its rows are missing")
        values = np.frombuffer(piece, shard.value.dtype).reshape(count, shard.width)
        found.append((key, number, turn, IndexedSlices(ids, values, shard.value.size)))
    return found


def parse_row_pull(
    store: Store, pull: PullRows, data: PayloadReader
) -> tuple[list[tuple[Key, int, int]], list[RowRequest]]:
    """Parse the slices and rows of a pull."""
    rows: list[RowRequest] = []
    for key, number, _, count in pull.parts:
        total, what = _n_rows(store.shard(key, number), "pull"), f"pull of key {key!r}"
        if count != ALL and not 0 <= count <= total:
            raise FormatError(f"{what}: {count} rows of {total}")
        rows.append(None if count == ALL else checked_ids(data.read(count * INDEX.itemsize), count, total, what))
    return [(key, number, turn) for key, number, turn, _ in pull.parts], rows


def row_reply(who: PendingRequest) -> tuple[dict[str, Any], list[np.ndarray]]:
    """The reply to a request for rows."""
    assert who.rows is not None
    counts = [len(found[0]) for found, rows in zip(who.values, who.rows, strict=True) if rows is None]
    return {"counts": counts}, [array for found in who.values for array in found]


__all__ = ["is_row_sliced", "parse_row_pull", "parse_row_push", "pull_rows", "push_rows", "row_reply"]
