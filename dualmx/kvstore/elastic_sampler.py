"""Elastic sampler: each sample of an epoch is used once, whoever takes part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import ArgumentError, OrderError

if TYPE_CHECKING:
    from ..ps.elastic_worker import ElasticWorker


def batch_sizes(rows: int, members: int, batch_size: int) -> list[int]:
    """How many of `rows` samples each of `members` gets in the next batch.

    Example:
        >>> batch_sizes(100, 3, 8), batch_sizes(25, 3, 8), batch_sizes(4, 3, 8), batch_sizes(2, 3, 8)
        ([8, 8, 8], [8, 7, 7], [2, 1, 1], [1, 1, 0])
    """
    take = min(rows, members * batch_size)
    left = rows - take
    if 0 < left < members and take - members + left > 0:
        take -= members - left  # so that the last batch has a sample for each
    return [take // members + (i < take % members) for i in range(members)]


class SamplePool:
    """The samples of an epoch that were not used yet.

    Args:
        length: samples of an epoch.
        batch_size: most samples of a worker in a batch.
        shuffle: in another order in each epoch. seed: of the orders.
        epoch: that begins.
    """

    def __init__(self, length: int, batch_size: int, shuffle: bool, seed: int, epoch: int = 0):
        self._length, self._batch_size, self._shuffle, self._seed = length, batch_size, shuffle, seed
        self.epoch = epoch
        self.rows = self._order()

    def _order(self) -> np.ndarray:
        if not self._shuffle:
            return np.arange(self._length)
        return np.random.Generator(np.random.PCG64([self._seed, self.epoch])).permutation(self._length)

    def next_shares(self, members: Sequence[int]) -> dict[int, np.ndarray]:
        """The samples of each member in the next batch."""
        ends = np.cumsum(batch_sizes(len(self.rows), len(members), self._batch_size))
        return {rank: self.rows[a:b] for rank, a, b in zip(members, [0, *ends[:-1]], ends, strict=True)}

    def mark_used(self, members: Sequence[int], used: Sequence[int]) -> None:
        """End a batch of `members`; samples of those that are not in `used` are drawn again."""
        shares = self.next_shares(members)
        left = [self.rows[sum(map(len, shares.values())) :]]
        missed = [rows for rank, rows in shares.items() if rank not in used and len(rows)]
        self.rows = np.concatenate(missed + left) if missed else left[0]
        if not len(self.rows):
            self.epoch += 1
            self.rows = self._order()


class ElasticSampler:
    """Numbers of samples for this worker, batch by batch; iterating goes through the rest of an epoch.

    In an elastic job (`dualmx-launch --on-worker-death elastic`) workers come and go between batches. All that take
    part get parts of the same order. Samples of a worker that died before it had pushed its gradients as a whole are
    given to others, so that each sample of an epoch counts once. A worker that joins begins in the midst of an epoch.
    In other jobs, and in a single process, the same workers take part in all batches.

    Push all gradients of a batch and then pull, once for each batch, as `gluon.Trainer.step` does. A worker for which
    nothing is left in a batch repeats a sample, and pushes zeros.

    Args:
        length: samples of an epoch.
        batch_size: most samples of a worker in a batch.
        kv: the store, which the Trainer uses as well.
        shuffle: in another order in each epoch. seed: of the orders, the same for all workers.

    Attributes:
        epoch: of the batch under way, from 0.
        total: samples of all workers in the batch under way, by which gradients are divided.

    Raises:
        ArgumentError: no samples, or `batch_size` below 1.

    Example:
        >>> import dualmx as mx
        >>> sampler = mx.kv.ElasticSampler(5, 2, mx.kv.create("local"), shuffle=False)
        >>> [(sampler.epoch, rows.tolist(), sampler.total) for rows in sampler]
        [(0, [0, 1], 2), (0, [2, 3], 2), (0, [4], 1)]
        >>> sampler.epoch
        1
    """

    def __init__(self, length: int, batch_size: int, kv: Any, shuffle: bool = True, seed: int = 0):
        if length < 1 or batch_size < 1:
            raise ArgumentError(f"ElasticSampler: length={length}, batch_size={batch_size}: expected 1 or more")
        self._kv = kv
        self._order = length, batch_size, shuffle, seed
        self._name = f"{length} {batch_size} {bool(shuffle)} {seed}"  # by which workers tell newcomers of epochs
        self._pool = SamplePool(*self._order)
        self._batches: ElasticWorker | None = getattr(kv, "_elastic", None)
        self._seen = 0  # batches that are over
        self._under_way = 0  # the batch whose samples were given out
        self.total = 0
        if self._batches is not None:
            self._batches.begin()
            if self._name not in self._batches.marks:
                self._batches.mark(self._name, 0, self._batches.number)
            self._catch_up()

    def _catch_up(self) -> None:
        """Follow what the job has done since the last look."""
        assert self._batches is not None
        epoch, first = self._batches.marks[self._name]
        if first > self._seen + 1:  # what was before is of former epochs
            self._pool, self._seen = SamplePool(*self._order, epoch), first - 1
        for one in self._batches.after(self._seen):
            self._pool.mark_used(one.members, one.counted)
            self._seen = one.number
            if self._pool.epoch > epoch:
                epoch = self._pool.epoch
                self._batches.mark(self._name, epoch, one.number + 1)

    def _end(self) -> None:
        """End the current batch."""
        if self._batches is None:
            members = self._members
            self._pool.mark_used(members, members)
            return
        if self._batches.number == self._under_way:  # nothing was pulled
            self._batches.finish_round()
        if self._batches.number != self._under_way + 1:
            raise OrderError(
                f"ElasticSampler: {self._batches.number - self._under_way} times was something pulled after a push in "
                "one batch; push the gradients of all keys, then pull"
            )
        self._catch_up()

    @property
    def _members(self) -> list[int]:
        return list(range(self._kv.num_workers)) if self._batches is None else self._batches.members

    @property
    def epoch(self) -> int:
        """Epoch of the current batch, from 0."""
        return self._pool.epoch

    def __iter__(self) -> Iterator[np.ndarray]:
        """Batches of sample numbers (n,) until the epoch is over."""
        if self._batches is not None:
            self._catch_up()
        epoch = self.epoch
        while self.epoch == epoch:
            members = self._members
            shares = self._pool.next_shares(members)
            rows, self.total = shares[members[self._kv.rank]], sum(map(len, shares.values()))
            self._kv._contributes_zero = not len(rows)
            self._under_way = 0 if self._batches is None else self._batches.number
            yield rows if len(rows) else self._pool.rows[:1]
            self._end()
        self._kv._contributes_zero = False

    def __len__(self) -> int:
        """Batches left in the epoch if the membership stays."""
        left, count, members = len(self._pool.rows), 0, len(self._members)
        while left:
            left -= sum(batch_sizes(left, members, self._pool._batch_size))
            count += 1
        return count


__all__ = ["ElasticSampler"]
