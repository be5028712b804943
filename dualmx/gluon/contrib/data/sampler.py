"""`IntervalSampler`: goes through the data in strides."""

from __future__ import annotations

from collections.abc import Iterator

from ....core.errors import ArgumentError
from ...data import Sampler


class IntervalSampler(Sampler):
    """Numbers 0, interval, 2·interval, … below `length`, then 1, interval + 1, …, unless `rollover` is false.

    Args:
        length: how many numbers there are.
        interval: distance of two consecutive numbers.
        rollover: whether to go on from 1, 2, … until every number was given.

    Raises:
        ArgumentError: the interval is longer than the data.

    Example:
        >>> list(IntervalSampler(7, 3)), list(IntervalSampler(7, 3, rollover=False))
        ([0, 3, 6, 1, 4, 2, 5], [0, 3, 6])
    """

    def __init__(self, length: int, interval: int, rollover: bool = True):
        if not 0 < interval <= length:
            raise ArgumentError(f"Interval {interval} must be smaller than or equal to length {length}")
        self._length, self._interval, self._rollover = length, interval, rollover

    def __iter__(self) -> Iterator[int]:
        for start in range(self._interval if self._rollover else 1):
            yield from range(start, self._length, self._interval)

    def __len__(self) -> int:
        return self._length
