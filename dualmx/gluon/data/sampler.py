"""Samplers: the order and grouping of indices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...core.argcheck import integer
from ...core.errors import ArgumentError
from ...io.recordio import check_shard, shard_indices


class Sampler:
    """Base of samplers: an iterable of indices with a length."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError


class SequentialSampler(Sampler):
    """Visits `start`, `start + 1`, …, `start + length - 1`.

    Example:
        >>> list(SequentialSampler(3, start=5))
        [5, 6, 7]
    """

    def __init__(self, length: int, start: int = 0):
        self._length, self._start = length, start

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._start, self._start + self._length))

    def __len__(self) -> int:
        return self._length


class RandomSampler(Sampler):
    """Visits 0 to `length - 1` in a new random order each pass, by NumPy's global generator."""

    def __init__(self, length: int):
        self._length = length

    def __iter__(self) -> Iterator[int]:
        return iter(np.random.permutation(self._length).tolist())

    def __len__(self) -> int:
        return self._length


class FilterSampler(Sampler):
    """Visits the items of `dataset` for which `fn(item)` is true; `fn` is called once per item, at the start."""

    def __init__(self, fn: Callable[[Any], Any], dataset: Any):
        self._kept = [i for i in range(len(dataset)) if fn(dataset[i])]

    def __iter__(self) -> Iterator[int]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)


class IntervalSampler(Sampler):
    """Visits every `interval`-th index; with `rollover`, then those one further, and so on until all are visited.

    Example:
        >>> list(IntervalSampler(7, 3))
        [0, 3, 6, 1, 4, 2, 5]
    """

    def __init__(self, length: int, interval: int, rollover: bool = True):
        if not 1 <= interval <= length:
            raise ArgumentError(f"IntervalSampler: interval={interval}: expected 1 to length={length}")
        self._length, self._interval, self._rollover = length, interval, rollover

    def __iter__(self) -> Iterator[int]:
        for start in range(self._interval if self._rollover else 1):
            yield from range(start, self._length, self._interval)

    def __len__(self) -> int:
        return self._length if self._rollover else -(-self._length // self._interval)


class SplitSampler(Sampler):
    """Visits one worker's share of 0 to `length - 1`; each index belongs to exactly one of the workers.

    Call `set_epoch` before a pass to shuffle by `seed` and the number of the epoch, alike in all workers; then the
    shares differ from epoch to epoch, and are still disjoint and complete.

    Args:
        length: number of items.
        num_parts: workers. part_index: this one's rank.
        shuffle: draw a new order for each epoch; else item i goes to the worker in whose contiguous share it lies.
        seed: of the orders; the same in all workers.
        even: repeat (or, with `"drop"`, drop) items so that all shares have the same length, as synchronous stores
            need it: every worker then makes as many steps. `""` keeps shares that differ by one.

    Raises:
        ArgumentError: `part_index` outside of the parts, or an unknown `even`.

    Example:
        >>> list(SplitSampler(7, 2, 0)), list(SplitSampler(7, 2, 1))
        ([0, 1, 2, 3], [4, 5, 6])
    """

    def __init__(
        self, length: int, num_parts: int = 1, part_index: int = 0, shuffle: bool = False, seed: int = 0, even: str = ""
    ):
        check_shard("SplitSampler", num_parts, part_index)
        if even not in ("", "repeat", "drop"):
            raise ArgumentError(f"SplitSampler: even={even!r}: expected '', 'repeat' or 'drop'")
        self._length, self._parts, self._part = integer("SplitSampler", "length", length), num_parts, part_index
        self._shuffle, self._seed, self._even, self._epoch = shuffle, seed, even, 0
        size, over = divmod(self._length, num_parts)
        self._share = {"drop": size, "repeat": size + bool(over)}.get(even, size + (part_index < over))

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of pass `epoch`; passes without a call count up by themselves."""
        self._epoch = epoch

    def __iter__(self) -> Iterator[int]:
        order = np.arange(self._length)
        if self._shuffle:
            order = np.random.RandomState((self._seed * 1_000_003 + self._epoch) % (1 << 32)).permutation(order)
        self._epoch += 1
        mine = order[list(shard_indices(self._length, self._parts, self._part))]
        if len(mine) < self._share:  # one item of the first worker's, a second time
            mine = np.append(mine, order[: self._share - len(mine)])
        return iter(mine[: self._share].tolist())

    def __len__(self) -> int:
        return self._share


class BatchSampler(Sampler):
    """Groups the indices of `sampler` into lists of `batch_size`.

    Args:
        sampler: where the indices come from.
        batch_size: indices in a list.
        last_batch: what happens to an incomplete list: `"keep"`, `"discard"`, or `"rollover"` into the next pass.

    Example:
        >>> list(BatchSampler(SequentialSampler(5), 2, "discard"))
        [[0, 1], [2, 3]]
    """

    def __init__(self, sampler: Sequence[int] | Sampler, batch_size: int, last_batch: str = "keep"):
        if last_batch not in ("keep", "discard", "rollover"):
            raise ArgumentError(f"last_batch={last_batch!r}: expected 'keep', 'discard' or 'rollover'")
        if integer("BatchSampler", "batch_size", batch_size) < 1:
            raise ArgumentError(f"batch_size={batch_size}: expected 1 or more")
        self._sampler, self._batch_size, self._last_batch = sampler, int(batch_size), last_batch
        self._left: list[int] = []

    def __iter__(self) -> Iterator[list[int]]:
        batch, self._left = self._left, []
        for i in self._sampler:
            batch.append(i)
            if len(batch) == self._batch_size:
                yield batch
                batch = []
        if batch and self._last_batch == "keep":
            yield batch
        elif batch and self._last_batch == "rollover":
            self._left = batch

    def __len__(self) -> int:
        n = len(self._sampler)
        if self._last_batch == "keep":
            return -(-n // self._batch_size)
        return (n + len(self._left)) // self._batch_size


__all__ = [
    "BatchSampler", "FilterSampler", "IntervalSampler", "RandomSampler", "Sampler", "SequentialSampler", "SplitSampler",
]  # fmt: skip
