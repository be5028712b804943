"""`LossScaler`: the factor that keeps small gradients representable in float16."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...namespace import nd

DOUBLE_AFTER_STEPS = 2000  # steps without overflow after which the scale doubles
MAX_SCALE = 2.0**24


class LossScaler:
    """Doubles its scale after 2000 steps without overflow, halves it at each overflow, and has that step skipped.

    Attributes:
        loss_scale: the present factor, from 1 to 2**24.

    Example:
        >>> LossScaler().loss_scale
        65536.0
    """

    def __init__(self, init_scale: float = 2.0**16):
        self._loss_scale = float(init_scale)
        self._unskipped = 0

    @property
    def loss_scale(self) -> float:
        """The factor by which losses are multiplied."""
        return self._loss_scale

    def has_overflow(self, params: Sequence[Any]) -> bool:
        """Return whether a gradient of `params` (Gluon parameters) is not finite, and adapt the scale."""
        grads = [g for p in params if p.grad_req != "null" for g in p.list_grad()]
        by_device: dict[Any, list[Any]] = {}
        for g in grads:
            by_device.setdefault((g.context, g.dtype), []).append(g)
        finite = [nd.multi_all_finite(*some, num_arrays=len(some)) for some in by_device.values()]
        overflow = not all(bool(f.asscalar()) for f in finite)
        if overflow:
            self._loss_scale, self._unskipped = max(self._loss_scale / 2, 1.0), 0
        else:
            self._unskipped += 1
            if self._unskipped == DOUBLE_AFTER_STEPS:
                self._loss_scale, self._unskipped = min(self._loss_scale * 2, MAX_SCALE), 0
        return overflow


__all__ = ["LossScaler"]
