"""Stores of elastic jobs: the pushes of a round are buffered, then committed or dropped together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ..core.dtypes import as_dtype
from .protocol import ContributionRecord, PutMode, header
from .sparse_rows import INDEX, IndexedSlices
from .store import CompletedRound, Gradient, Key, Record, Shard, Store, _sum, bytes_of
from .van.frame import PayloadReader


class ElasticStore(Store):
    """A synchronous store whose rounds are batches, which are over when a worker says whose pushes count.

    A push is answered when it has arrived. A pull is answered after the batch that it names.

    Attributes:
        batch: the last one that is over.

    Example:
        >>> store = ElasticStore([0, 1], True, print, print)
        >>> store.put("w", 0, np.zeros(2), (2,))
        >>> for rank in (0, 1):
        ...     store._add_contribution(store.shard("w", 0), 1, rank, np.full(2, rank + 1.0))
        >>> store.commit_round(1, [1])
        >>> store.shard("w", 0).value
        array([2., 2.])
    """

    acks_on_arrival = True
    batch = 0

    def put(
        self, key: Key, number: int, value: np.ndarray, shape: tuple[int, ...], mode: PutMode = PutMode.INIT,
        table: bool = False,
    ) -> None:  # fmt: skip
        """See `Store.put`; a new slice is as if it had been there always."""
        super().put(key, number, value, shape, mode, table)
        shard = self.shard(key, number)
        shard.completed_round = max(shard.completed_round, self.batch)

    def _complete_rounds(self, shard: Shard, ready: list[CompletedRound]) -> None:
        """Nothing is over until a worker says so."""

    def _blocking_loss(self, shard: Shard) -> str | None:
        return None

    def commit_round(self, batch: int, used: Iterable[int]) -> None:
        """Batch `batch` is over: apply the pushes of the workers `used`, and forget those of others."""
        if batch <= self.batch:
            return
        self.batch = batch
        counted = set(used)
        ready: list[CompletedRound] = []
        for shard in self.shards.values():
            contributed = {rank: data for rank, data in shard.contributions.pop(batch, {}).items() if rank in counted}
            if contributed:
                ready.append((shard, batch, -1, _sum(contributed, self.alloc)))
            else:
                shard.completed_round = batch
        self.apply_rounds(ready)
        for shard in list(self.shards.values()):
            self._answer_waiters(shard)


def contribution_records(number: int, store: Store) -> Iterator[Record]:
    """What was pushed to store `number` for a batch that is not over."""
    for shard in store.shards.values():
        for turn, contributed in shard.contributions.items():
            for rank, data in contributed.items():
                rows = len(data.ids) if isinstance(data, IndexedSlices) else None
                pieces = [data.ids, data.values] if isinstance(data, IndexedSlices) else [data]
                record = ContributionRecord(number, shard.key, shard.number, turn, rank, data.dtype.name, rows)
                yield header(record), [bytes_of(p) for p in pieces if p.size]


def restore_contribution(store: Store, record: ContributionRecord, data: PayloadReader) -> None:
    """Restore what `contribution_records` wrote."""
    shard, dtype, rows = store.shard(record.key, record.number), as_dtype(record.dtype), record.rows
    ids = np.frombuffer(data.read(rows * INDEX.itemsize), INDEX) if rows is not None else None
    size = shard.value.size if ids is None else len(ids) * shard.width
    found: Gradient = np.frombuffer(data.read(size * dtype.itemsize), dtype)
    if ids is not None:
        found = IndexedSlices(ids, found.reshape(-1, shard.width), shard.value.size)
    shard.contributions.setdefault(record.round, {})[record.rank] = found


__all__ = ["ElasticStore", "contribution_records", "restore_contribution"]
