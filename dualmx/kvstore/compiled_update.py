"""Compiled optimizer updates: recorded once per group of shards, replayed with new gradients and scalars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from ..core.context import Context
from ..ndarray import NDArray
from ..ndarray.interop import array_from_numpy
from ..ndarray.replay import ReplayableProgram
from ..op.registry import Call
from ..optimizer import Optimizer
from ..optimizer.optimizer import count_updates, update_counts
from ..optimizer.rule_optimizer import RuleOptimizer
from ..optimizer.updater import Updater, in_one_call

_CPU = Context("cpu", 0)
_buffer_of = attrgetter("buffer")


def can_compile(optimizer: Optimizer) -> bool:
    """Whether its updates apply the same formulas until its settings change, and their numbers are known beforehand."""
    return (
        isinstance(optimizer, RuleOptimizer)
        and not optimizer.draws_random
        and in_one_call(optimizer)
        and (optimizer.has_constant_rates or not optimizer.multi_precision)
    )


class CompiledUpdate:
    """An update of some slices that is about to be recorded.

    Args:
        updater: applies the optimizer, and has the states.
        indices: under which the optimizer knows the slices.
        weights: arrays that are updated.
        terms: terms of each gradient.
    """

    def __init__(
        self, updater: Updater, indices: list[str], weights: list[NDArray], terms: Sequence[Sequence[NDArray]]
    ):
        self._updater, self._indices, self._weights = updater, indices, weights
        self._formulas, self._scalars = (
            ([], None) if self._optimizer.has_constant_rates else self._next_formulas(counts=False)
        )
        states = [updater.states[i] for i in indices]
        self._counts = [len(ts) for ts in terms]
        self._arrays = [*weights, *(a for state in states for a in _arrays(state))]
        self._inputs = [h.buffer for h in self._arrays] + [t.buffer for ts in terms for t in ts]
        self._program: ReplayableProgram | None = None
        self._outs: list[NDArray] = []

    @property
    def _optimizer(self) -> RuleOptimizer:
        assert isinstance(self._updater.optimizer, RuleOptimizer)
        return self._updater.optimizer

    def compile(self) -> bool:
        """Execute what was recorded for this update, and remember the program; False if it cannot be repeated."""
        entered, self._inputs = self._inputs, []
        if any(data is None for data in entered):
            return False
        self._outs = [h for h in self._arrays if h.buffer is None]
        try:
            self._program = step = ReplayableProgram(entered, self._outs)
        except (ValueError, IndexError):
            return False
        # Each number is where it was said to be.
        return self._scalars is None or (
            step.runtime_scalars is not None and np.array_equal(step.runtime_scalars, self._scalars)
        )

    def matches(self, weights: Sequence[NDArray], terms: Sequence[Sequence[np.ndarray]]) -> bool:
        """Whether `run` computes this update."""
        for weight, known, count, some in zip(weights, self._weights, self._counts, terms, strict=True):
            if weight is not known or count != len(some):
                return False
        return all(array.is_plain for array in self._arrays)

    def _next_formulas(self, counts: bool) -> tuple[list[Call], np.ndarray]:
        """The formulas of the next update and their numbers; with `counts` it counts as done if they are as before."""
        optimizer = self._optimizer
        table = update_counts(optimizer)
        before, counted = dict(optimizer.__dict__), {i: table[i] for i in self._indices if i in table}
        states = [self._updater.states[i] for i in self._indices]
        updates = optimizer.next_updates(self._indices, self._weights, self._weights, states)
        formulas = [one.call for one in updates]
        if not counts or formulas != self._formulas:
            optimizer.__dict__.update(before)
            for i in self._indices:
                del table[i]
            table.update(counted)
        return formulas, np.array([n for one in updates for n in one.scalars], np.float32)

    def run(self, terms: Sequence[Sequence[np.ndarray]]) -> bool:
        """Update the same arrays by other gradients; False, and nothing is done, if that is another program."""
        assert self._program is not None
        if self._scalars is None:
            count_updates(self._optimizer, self._indices)
        else:
            formulas, numbers = self._next_formulas(counts=True)
            if formulas != self._formulas:
                return False
            self._program.runtime_scalars = numbers
        entered = list(map(_buffer_of, self._arrays))
        for weight, some in zip(self._weights, terms, strict=True):
            shape = weight.shape
            for t in some:
                laid = t if t.shape == shape else t.reshape(shape)
                entered.append(laid if t.itemsize < 8 else array_from_numpy(laid, _CPU, copy=False).buffer)
        for array, data in zip(self._outs, self._program(entered), strict=True):
            array.buffer = data
        return True


def _arrays(state: Any) -> Iterator[NDArray]:
    if isinstance(state, NDArray):
        yield state
    elif isinstance(state, (tuple, list)):
        for part in state:
            yield from _arrays(part)


__all__ = ["CompiledUpdate", "can_compile"]
