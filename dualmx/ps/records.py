"""What a server's journal says of slices and of rounds that are over, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.dtypes import as_dtype
from .frame import Message
from .rows import INDEX, IndexedSlices, dense
from .store import CompletedRound, Shard, Store

Record = tuple[dict[str, Any], list[Any]]


def bytes_of(value: np.ndarray) -> Any:
    """The bytes of an array, where they lie."""
    return value.view(np.uint8).data


def rounds_record(number: int, closed: list[CompletedRound]) -> Record:
    """Rounds of store `number` that are over, with their sums."""
    parts: list[list[Any]] = []
    payload: list[Any] = []
    for held, turn, rank, total in closed:
        pieces = [total.ids, total.values] if isinstance(total, IndexedSlices) else [total]
        count = [len(total.ids)] if isinstance(total, IndexedSlices) else []
        parts.append([held.key, held.number, turn, rank, total.dtype.name, *count])
        payload += [bytes_of(p) for p in pieces if p.size]
    return {"op": "closed", "store": number, "parts": parts}, payload


def shard_record(number: int, held: Shard) -> Record:
    """A slice of store `number`."""
    values = [dense(v) for v in (held.value, held.previous_value) if v is not None]
    meta = {
        "op": "slice", "store": number, "key": held.key, "number": held.number, "dtype": held.value.dtype.name,
        "shape": list(held.shape), "two": len(values) == 2, "closed": held.completed_round,
        "seen": [[r, t] for r, t in held.last_push_of.items()], "table": held.is_row_sparse,
    }  # fmt: skip
    return meta, [v.view(np.uint8) for v in values if v.size]


def restore_shard(store: Store, record: Message) -> None:
    """Put back what `shard_record` told of."""
    dtype = as_dtype(record.field("dtype", str))
    values = np.frombuffer(record.data(), dtype).copy() if record.payload else np.empty(0, dtype)
    size = values.size
    shape = tuple(record.field("shape", list))
    key, number = record.field("key", (str, int)), record.field("number", int)
    two = record.meta.get("two") is True
    held = Shard(key, number, values[: size // 2] if two else values, shape)
    held.previous_value = values[size // 2 :] if two else None
    held.completed_round = record.field("closed", int)
    held.last_push_of = dict(record.field("seen", list))
    held.is_row_sparse = record.meta.get("table") is True
    store.shards[key, number] = held


def restore_rounds(store: Store, record: Message) -> None:
    """Close again what `rounds_record` told of."""
    data = record.pieces()
    closed: list[CompletedRound] = []
    for key, number, turn, rank, name, *count in record.field("parts", list):
        held, dtype = store.shard(key, number), as_dtype(name)
        ids = np.frombuffer(data.read(count[0] * INDEX.itemsize), INDEX) if count else None
        size = held.value.size if ids is None else len(ids) * held.width
        total = np.frombuffer(data.read(size * dtype.itemsize), dtype)
        if ids is not None:
            total = IndexedSlices(ids, total.reshape(-1, held.width), held.value.size)
        closed.append((held, turn, rank, total))
    store.apply_rounds(closed)


__all__ = ["Record", "bytes_of", "restore_rounds", "restore_shard", "rounds_record", "shard_record"]
