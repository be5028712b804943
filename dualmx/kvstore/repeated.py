"""Updates that a server makes again and again: the same slices, the same formulas, other gradients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..core.context import Context
from ..ndarray import NDArray
from ..ndarray.again import Again
from ..optimizer import Optimizer
from ..parallel.borrow import lent

_CPU = Context("cpu", 0)


def can_repeat(optimizer: Optimizer) -> bool:
    """Whether the numbers in its formulas stay as they are until its settings change."""
    return optimizer._steady and optimizer.lr_scheduler is None


class Update:
    """An update of some slices that is about to be recorded.

    Args:
        indices: under which the optimizer knows the slices.
        weights: arrays that are updated.
        states: state of each, as its optimizer keeps it.
        terms: terms of each gradient.
    """

    def __init__(
        self, indices: list[str], weights: list[NDArray], states: list[Any], terms: Sequence[Sequence[NDArray]]
    ):
        self.indices, self._weights = indices, weights
        self._counts = [len(ts) for ts in terms]
        self._held = [*weights, *(a for state in states for a in _arrays(state))]
        self._entered = [h._data for h in self._held] + [t._data for ts in terms for t in ts]
        self._step: Again | None = None
        self._outs: list[NDArray] = []

    def learn(self) -> bool:
        """Execute what was recorded for this update, and remember the program; False if it cannot be repeated."""
        entered, self._entered = self._entered, []
        if any(data is None for data in entered):
            return False
        self._outs = [h for h in self._held if h._data is None]
        try:
            self._step = Again(entered, self._outs)
        except (ValueError, IndexError):
            return False
        return True

    def fits(self, weights: Sequence[NDArray], terms: Sequence[Sequence[np.ndarray]]) -> bool:
        """Whether `repeat` does what is asked for."""
        for weight, known, count, some in zip(weights, self._weights, self._counts, terms, strict=True):
            if weight is not known or count != len(some):
                return False
        return all([h._data is not None and h._tr is None and h._x is None for h in self._held])

    def repeat(self, terms: Sequence[Sequence[np.ndarray]]) -> None:
        """Update the same arrays by other gradients."""
        assert self._step is not None
        entered = [h._data for h in self._held]
        for weight, some in zip(self._weights, terms, strict=True):
            shape = weight.shape
            entered += [t.reshape(shape) if t.itemsize < 8 else lent(t.reshape(shape), _CPU)._data for t in some]
        for array, data in zip(self._outs, self._step(entered), strict=True):
            array._data = data


def _arrays(state: Any) -> Iterator[NDArray]:
    if isinstance(state, NDArray):
        yield state
    elif isinstance(state, (tuple, list)):
        for part in state:
            yield from _arrays(part)


__all__ = ["Update", "can_repeat"]
