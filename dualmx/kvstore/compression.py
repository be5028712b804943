"""Gradient compression; the residual of one round is added to the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError
from ..ndarray import NDArray, array
from ..ps.codecs import CODECS, Codec
from .residuals import Residuals


class Compression:
    """Sends each element as one of few values, or rounded, and keeps the rest (the residual) for the next round.

    Per element: residual += gradient; what is sent of it is subtracted.

    * `"2bit"`: +t is sent if residual >= t, -t if residual <= -t, else 0.
    * `"1bit"`: +1 is sent if residual > t, else -1.
    * `"fp16"`: the residual as a 16-bit float is sent.

    Args:
        kind: which of these.
        threshold: t; above 0 for `"2bit"`.

    Attributes:
        residuals: where a worker that may die writes down what it keeps back; None for nowhere.

    Example:
        >>> compress = Compression("2bit", 0.5)
        >>> compress("w", mx.nd.array([0.3, 0.6])).asnumpy().tolist()
        [0.0, 0.5]
        >>> compress("w", mx.nd.array([0.3, 0.0])).asnumpy().tolist()
        [0.5, 0.0]
    """

    def __init__(self, kind: str, threshold: float):
        if kind == "2bit" and not threshold > 0:
            raise ArgumentError(f"set_gradient_compression: threshold={threshold}: expected a number above 0")
        self.code = Codec(kind, float(threshold))
        self.residuals: Residuals | None = None
        self._residual: dict[Any, NDArray] = {}

    def __call__(self, slot: Any, gradient: NDArray, turn: int = 0) -> NDArray:
        """Return the compressed `gradient`; `slot` identifies the residual of an array.

        With `residuals`, a push that the worker before this one has begun, by its number `turn`, is made as it was.

        Raises:
            ArgumentError: a gradient that is not dense, or not float32.
        """
        if gradient.is_sparse or np.dtype(gradient.dtype).name != "float32":
            kind = gradient.stype if gradient.is_sparse else np.dtype(gradient.dtype).name
            raise ArgumentError(f"gradient compression of {kind} arrays ({slot!r}): expected dense float32 gradients")
        residual = self._residual.get(slot)
        if self.residuals is None:
            total = gradient if residual is None else residual + gradient
        else:
            total = self._written(self.residuals, slot, gradient, turn)
        sent = self._sent(total)
        self._residual[slot] = total - sent
        return sent

    def _written(self, residuals: Residuals, slot: Any, gradient: NDArray, turn: int) -> NDArray:
        """The total of a push, which is written down."""
        so_far = residuals.total(slot, turn)
        if so_far is not None:
            return array(so_far, ctx=gradient.context)
        residual, before = self._residual.get(slot), residuals.total(slot, turn - 1)
        if residual is None and before is not None:
            total = array(before, ctx=gradient.context)
            residual = total - self._sent(total)
        total = gradient if residual is None else residual + gradient
        residuals.write(slot, turn, total.asnumpy())
        return total

    def _sent(self, total: NDArray) -> NDArray:
        t = self.code.threshold
        if self.code.kind == "fp16":
            return total.astype("float16").astype("float32")
        if self.code.kind == "1bit":
            return (total > t).astype(total.dtype) * 2 - 1
        return ((total >= t).astype(total.dtype) - (total <= -t).astype(total.dtype)) * t


def make(params: Mapping[str, Any]) -> Compression:
    """Return the compression described by `{"type": "2bit", "threshold": 0.5}`.

    Raises:
        ArgumentTypeError: no dict. ArgumentError: an unknown type or setting, or no type.
    """
    if not isinstance(params, Mapping):
        raise ArgumentTypeError(f"set_gradient_compression: {params!r}: expected a dict like {{'type': '2bit'}}")
    known = dict(params)
    kind = known.pop("type", None)
    if kind not in CODECS:
        raise ArgumentError(f"set_gradient_compression: type={kind!r}: expected one of {', '.join(CODECS)}")
    threshold = known.pop("threshold", 0.5 if kind == "2bit" else 0.0)
    if known:
        raise ArgumentError(
            f"set_gradient_compression: unknown setting {next(iter(known))!r}; expected type, threshold"
        )
    try:
        threshold = float(threshold)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"set_gradient_compression: threshold={threshold!r}: expected a number") from None
    return Compression(kind, threshold)


__all__ = ["Compression", "make"]
