"""Samplers: in which order, and in which groups, the items of a dataset are visited."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...core.checks import whole
from ...core.errors import ArgumentError


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
    """Visits 0 to `length - 1` in an order drawn anew for each pass, with NumPy's global generator."""

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
        if whole("BatchSampler", "batch_size", batch_size) < 1:
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
