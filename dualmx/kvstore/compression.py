"""Gradient compression: what is lost in one round is added to the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.errors import ArgumentError
from ..ndarray import NDArray


class TwoBit:
    """Sends each element as +t, 0 or -t and keeps the rest (the residual) for the next round.

    Per element: residual += gradient; then +t is sent if residual >= t, -t if residual <= -t, else 0, and what was sent
    is subtracted from the residual.

    Args:
        threshold: t, above 0.

    Example:
        >>> compress = TwoBit(0.5)
        >>> compress("w", mx.nd.array([0.3, 0.6])).asnumpy().tolist()
        [0.0, 0.5]
        >>> compress("w", mx.nd.array([0.3, 0.0])).asnumpy().tolist()
        [0.5, 0.0]
    """

    def __init__(self, threshold: float = 0.5):
        if not threshold > 0:
            raise ArgumentError(f"set_gradient_compression: threshold={threshold}: expected a number above 0")
        self.threshold = float(threshold)
        self._residual: dict[Any, NDArray] = {}

    def __call__(self, slot: Any, gradient: NDArray) -> NDArray:
        """Return what is sent of `gradient`; `slot` tells the residuals of different arrays apart."""
        if gradient.dtype.__name__ != "float32":
            raise ArgumentError(f"gradient compression of {gradient.dtype.__name__}: expected float32 gradients")
        t = self.threshold
        residual = self._residual.get(slot)
        total = gradient if residual is None else residual + gradient
        sent = ((total >= t) - (total <= -t)) * t
        self._residual[slot] = total - sent
        return sent


def make(params: Mapping[str, Any]) -> TwoBit:
    """Return the compression described by `{"type": "2bit", "threshold": 0.5}`."""
    known = dict(params)
    kind = known.pop("type", "2bit")
    if kind != "2bit":
        raise ArgumentError(f"set_gradient_compression: type={kind!r}: expected '2bit'")
    threshold = known.pop("threshold", 0.5)
    if known:
        raise ArgumentError(
            f"set_gradient_compression: unknown setting {next(iter(known))!r}; expected type, threshold"
        )
    return TwoBit(float(threshold))


__all__ = ["TwoBit", "make"]
