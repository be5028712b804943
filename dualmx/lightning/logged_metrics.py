"""Logged values: per step, and means over an epoch, summed on the device without waiting."""

from __future__ import annotations

from typing import Any

from .. import autograd, parallel
from ..ndarray import NDArray


class _RunningMean:
    def __init__(self) -> None:
        self.sums: dict[Any, Any] = {}
        self.weight = 0.0

    def add(self, value: Any, weight: float) -> None:
        """Count a value."""
        where = value.context if isinstance(value, NDArray) else None
        amount = (value.reshape((-1,)).astype("float32") if where else float(value)) * weight
        before = self.sums.get(where)
        self.sums[where] = amount if before is None else before + amount
        self.weight += weight

    def state(self) -> list[float]:
        """Sum of values times weights, and sum of weights; waits for the arrays."""
        return [sum(float(s.asscalar()) if isinstance(s, NDArray) else s for s in self.sums.values()), self.weight]


class LoggedMetrics:
    """What was logged since the beginning of an epoch.

    Args:
        training: report numbers of batches by default, instead of means.
    """

    def __init__(self, training: bool):
        self._training = training
        self._steps: dict[str, _RunningMean] = {}
        self._epochs: dict[str, _RunningMean] = {}
        self._both: set[str] = set()
        self.shown: list[str] = []

    def begin_batch(self) -> None:
        """Forget the numbers of the batch before."""
        self._steps.clear()

    def add(
        self, name: str, value: Any, weight: float, shown: bool, on_step: bool | None, on_epoch: bool | None
    ) -> None:
        """Count a number of a batch, or of a device's part of it."""
        on_step = self._training if on_step is None else on_step
        on_epoch = not self._training if on_epoch is None else on_epoch
        with autograd.pause():
            if isinstance(value, NDArray):
                value = value.detach()
            if on_step:
                self._steps.setdefault(name, _RunningMean()).add(value, weight)
            if on_epoch:
                self._epochs.setdefault(name, _RunningMean()).add(value, weight)
        if on_step and on_epoch:
            self._both.add(name)
        if shown and name not in self.shown:
            self.shown.append(name)

    def step_values(self) -> dict[str, float]:
        """Numbers of the last batch, of this process; waits for them."""
        states = {name: mean.state() for name, mean in self._steps.items()}
        return {f"{n}_step" if n in self._both else n: s[0] / s[1] for n, s in states.items() if s[1]}

    def epoch_means(self) -> dict[str, float]:
        """Means over the epoch and all processes; waits for them."""
        totals: dict[str, list[float]] = {}
        for states in parallel.all_gather_object({name: mean.state() for name, mean in self._epochs.items()}):
            for name, (total, weight) in states.items():
                before = totals.get(name, [0.0, 0.0])
                totals[name] = [before[0] + total, before[1] + weight]
        found: dict[str, float] = {}
        for name, (total, weight) in totals.items():
            if weight:
                found[name] = total / weight
                if name in self._both:
                    found[f"{name}_epoch"] = found[name]
        return found
