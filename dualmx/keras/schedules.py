"""Learning-rate schedules."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

from .. import lr_scheduler
from ..core.errors import ArgumentError


class LearningRateSchedule(lr_scheduler.LRScheduler):
    """Base of schedules; subclasses define `__call__(step)`."""


class ExponentialDecay(LearningRateSchedule):
    """initial_learning_rate · decay_rate ^ (step / decay_steps).

    Args:
        initial_learning_rate, decay_steps, decay_rate: see the formula.
        staircase: take whole numbers of `step / decay_steps`.

    Example:
        >>> ExponentialDecay(0.1, decay_steps=10, decay_rate=0.5)(20)
        0.025
    """

    def __init__(self, initial_learning_rate: float, decay_steps: int, decay_rate: float, staircase: bool = False):
        super().__init__(initial_learning_rate)
        self._first, self._steps, self._by, self._stairs = initial_learning_rate, decay_steps, decay_rate, staircase

    def __call__(self, num_update: int) -> float:
        """Return the rate of a step."""
        times = num_update // self._steps if self._stairs else num_update / self._steps
        return self._first * self._by**times


class PiecewiseConstantDecay(LearningRateSchedule):
    """values[i] until step boundaries[i], the last value after that.

    Example:
        >>> schedule = PiecewiseConstantDecay([10, 20], [0.1, 0.01, 0.001])
        >>> schedule(10), schedule(11), schedule(30)
        (0.1, 0.01, 0.001)
    """

    def __init__(self, boundaries: Sequence[int], values: Sequence[float]):
        if len(values) != len(boundaries) + 1:
            raise ArgumentError(f"PiecewiseConstantDecay: {len(values)} values: expected {len(boundaries) + 1}")
        super().__init__(values[0])
        self._ends, self._values = list(boundaries), list(values)

    def __call__(self, num_update: int) -> float:
        """Return the rate of a step."""
        return self._values[bisect.bisect_left(self._ends, num_update)]


class CosineDecay(LearningRateSchedule):
    """initial_learning_rate · ((1 - alpha)·(1 + cos(π·step / decay_steps)) / 2 + alpha), constant at the end.

    Example:
        >>> CosineDecay(0.2, decay_steps=10)(10)
        0.0
    """

    def __init__(self, initial_learning_rate: float, decay_steps: int, alpha: float = 0.0):
        super().__init__(initial_learning_rate)
        self._first, self._steps, self._least = initial_learning_rate, decay_steps, alpha

    def __call__(self, num_update: int) -> float:
        """Return the rate of a step."""
        share = (1 + math.cos(math.pi * min(num_update, self._steps) / self._steps)) / 2
        return self._first * ((1 - self._least) * share + self._least)
