"""Learning-rate schedules: from the number of updates done, starting at 1, to a rate.

An optimizer reads its schedule after counting the update, so the first update uses `schedule(1)`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from math import cos, pi

from .core.errors import ArgumentError

_log = logging.getLogger(__name__)


class LRScheduler:
    """Base of schedules; subclasses define `__call__(num_update) -> float`.

    Args:
        base_lr: rate after the warm-up; an optimizer created with a `learning_rate` overwrites it.
        warmup_steps: updates during which the rate rises from `warmup_begin_lr` to `base_lr`.
        warmup_begin_lr: rate at the start of the warm-up.
        warmup_mode: `"linear"`, or `"constant"` (stay at `warmup_begin_lr` until the warm-up ends).

    Raises:
        ArgumentError: negative `warmup_steps`, unknown mode, or `warmup_begin_lr` above `base_lr`.

    Example:
        >>> class Halving(LRScheduler):
        ...     def __call__(self, num_update):
        ...         return self.base_lr * 0.5**num_update
        >>> Halving(base_lr=1.0)(2)
        0.25
    """

    def __init__(
        self,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ):
        kind = type(self).__name__
        if not isinstance(warmup_steps, int) or warmup_steps < 0:
            raise ArgumentError(f"{kind}: warmup_steps={warmup_steps!r}: expected an integer, 0 or more")
        if warmup_begin_lr > base_lr:
            raise ArgumentError(f"{kind}: warmup_begin_lr={warmup_begin_lr} exceeds base_lr={base_lr}")
        if warmup_mode not in ("linear", "constant"):
            raise ArgumentError(f"{kind}: warmup_mode={warmup_mode!r}: expected 'linear' or 'constant'")
        self.base_lr = base_lr
        self.warmup_steps = warmup_steps
        self.warmup_final_lr = base_lr
        self.warmup_begin_lr = warmup_begin_lr
        self.warmup_mode = warmup_mode

    def get_warmup_lr(self, num_update: int) -> float:
        """Rate during the warm-up: `begin + (final - begin) * num_update / warmup_steps`.

        Raises:
            ArgumentError: the warm-up is over at `num_update`.
        """
        if num_update >= self.warmup_steps:
            kind = type(self).__name__
            raise ArgumentError(f"{kind}: num_update={num_update}: the warm-up has {self.warmup_steps} steps")
        if self.warmup_mode == "constant":
            return self.warmup_begin_lr
        return self.warmup_begin_lr + (self.warmup_final_lr - self.warmup_begin_lr) * num_update / self.warmup_steps

    def __call__(self, num_update: int) -> float:
        """Return the rate of update number `num_update`."""
        raise NotImplementedError(f"{type(self).__name__} must define __call__(num_update)")


def _check_factor(kind: str, factor: float) -> None:
    if factor > 1.0:
        raise ArgumentError(f"{kind}: factor={factor}: expected at most 1, so that the rate falls")


class FactorScheduler(LRScheduler):
    """Multiply the rate by `factor` after every `step` updates, never below `stop_factor_lr`.

    Args:
        step: number of updates between changes.
        factor: at most 1.
        stop_factor_lr: lower bound of the rate.
        base_lr, warmup_steps, warmup_begin_lr, warmup_mode: see `LRScheduler`; changes are not shifted by the warm-up.

    Example:
        >>> rate = FactorScheduler(step=3, factor=0.5, base_lr=1.0)
        >>> [rate(n) for n in range(1, 8)]
        [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25]
    """

    def __init__(
        self,
        step: int,
        factor: float = 1,
        stop_factor_lr: float = 1e-8,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ):
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if step < 1:
            raise ArgumentError(f"FactorScheduler: step={step}: expected at least 1")
        _check_factor("FactorScheduler", factor)
        self.step = step
        self.factor = factor
        self.stop_factor_lr = stop_factor_lr
        self.count = 0

    def __call__(self, num_update: int) -> float:
        """Return the rate; calls with falling `num_update` do not raise it again."""
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        while num_update > self.count + self.step:
            self.count += self.step
            self.base_lr *= self.factor
            if self.base_lr < self.stop_factor_lr:
                self.base_lr = self.stop_factor_lr
                _log.info(
                    "Update[%d]: now learning rate arrived at %0.5e, will not change in the future",
                    num_update,
                    self.base_lr,
                )
            else:
                _log.info("Update[%d]: Change learning rate to %0.5e", num_update, self.base_lr)
        return self.base_lr


class MultiFactorScheduler(LRScheduler):
    """Multiply the rate by `factor` after each of the update numbers in `step`.

    Args:
        step: increasing update numbers, the first at least 1.
        factor: at most 1.
        base_lr, warmup_steps, warmup_begin_lr, warmup_mode: see `LRScheduler`; `step` is not shifted by the warm-up.

    Example:
        >>> rate = MultiFactorScheduler(step=[2, 4], factor=0.1, base_lr=1.0)
        >>> [round(rate(n), 3) for n in range(1, 7)]
        [1.0, 1.0, 0.1, 0.1, 0.01, 0.01]
    """

    def __init__(
        self,
        step: Sequence[int],
        factor: float = 1,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ):
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if not isinstance(step, (list, tuple)) or not step:
            raise ArgumentError(f"MultiFactorScheduler: step={step!r}: expected a list of update numbers")
        if step[0] < 1 or any(b <= a for a, b in zip(step, step[1:], strict=False)):
            raise ArgumentError(f"MultiFactorScheduler: step={step!r}: expected increasing numbers from 1")
        _check_factor("MultiFactorScheduler", factor)
        self.step = step
        self.cur_step_ind = 0
        self.factor = factor
        self.count = 0

    def __call__(self, num_update: int) -> float:
        """Return the rate; calls with falling `num_update` do not raise it again."""
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        while self.cur_step_ind < len(self.step) and num_update > self.step[self.cur_step_ind]:
            self.count = self.step[self.cur_step_ind]
            self.cur_step_ind += 1
            self.base_lr *= self.factor
            _log.info("Update[%d]: Change learning rate to %0.5e", num_update, self.base_lr)
        return self.base_lr


class _DecayScheduler(LRScheduler):
    """A decay from `base_lr` to `final_lr` that is a function of the fraction of updates done after the warm-up."""

    def __init__(
        self,
        max_update: int,
        base_lr: float,
        final_lr: float,
        warmup_steps: int,
        warmup_begin_lr: float,
        warmup_mode: str,
    ):
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if not isinstance(max_update, int) or max_update < 1:
            raise ArgumentError(f"{type(self).__name__}: max_update={max_update!r}: expected an integer, 1 or more")
        self.base_lr_orig = self.base_lr
        self.max_update = max_update
        self.final_lr = final_lr
        self.max_steps = self.max_update - self.warmup_steps

    def _left(self, done: float) -> float:
        raise NotImplementedError

    def __call__(self, num_update: int) -> float:
        """Return the rate: `final_lr` at `max_update`; later updates keep the rate of the call before."""
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        if num_update <= self.max_update:
            done = (num_update - self.warmup_steps) / self.max_steps if self.max_steps else 1.0
            self.base_lr = self.final_lr + (self.base_lr_orig - self.final_lr) * self._left(done)
        return self.base_lr


class PolyScheduler(_DecayScheduler):
    """Polynomial decay: `final_lr + (base_lr - final_lr) * (1 - n / N) ** pwr` over the N updates after the warm-up.

    Args:
        max_update: update number at which `final_lr` is reached.
        base_lr, warmup_steps, warmup_begin_lr, warmup_mode: see `LRScheduler`.
        pwr: exponent.
        final_lr: rate at the end.

    Example:
        >>> rate = PolyScheduler(max_update=10, base_lr=1.0)
        >>> rate(5), rate(10), rate(99)
        (0.25, 0.0, 0.0)
    """

    def __init__(
        self,
        max_update: int,
        base_lr: float = 0.01,
        pwr: float = 2,
        final_lr: float = 0,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ):
        super().__init__(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        self.power = pwr

    def _left(self, done: float) -> float:
        return (1 - done) ** self.power


class CosineScheduler(_DecayScheduler):
    """Cosine decay: `final_lr + (base_lr - final_lr) * (1 + cos(pi * n / N)) / 2` over the N updates after the warm-up.

    Args:
        max_update: update number at which `final_lr` is reached.
        base_lr, warmup_steps, warmup_begin_lr, warmup_mode: see `LRScheduler`.
        final_lr: rate at the end.

    Example:
        >>> rate = CosineScheduler(max_update=10, base_lr=1.0)
        >>> round(rate(5), 6), rate(10)
        (0.5, 0.0)
    """

    def __init__(
        self,
        max_update: int,
        base_lr: float = 0.01,
        final_lr: float = 0,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ):
        super().__init__(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)

    def _left(self, done: float) -> float:
        return (1 + cos(pi * done)) / 2
