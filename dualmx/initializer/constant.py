"""Constant and other deterministic initializers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError
from ..ndarray import NDArray, array
from .base import Initializer, alias, register


@alias("zeros")
class Zero(Initializer):
    """Fill weights with 0."""

    def _init_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = 0.0


@alias("ones")
class One(Initializer):
    """Fill weights with 1."""

    def _init_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = 1.0


@register
class Constant(Initializer):
    """Fill weights with a value.

    Args:
        value: a number, or an array that broadcasts to the weight's shape.
    """

    def __init__(self, value: Any):
        if isinstance(value, (str, bytes, dict, type(None))):
            raise ArgumentTypeError(f"Constant: value={value!r}: expected a number or an array")
        super().__init__(value=value)
        self.value = value

    def _init_weight(self, name: str, arr: NDArray) -> None:
        value = self.value
        if isinstance(value, (int, float)):
            arr[:] = value
        else:
            host = value.asnumpy() if isinstance(value, NDArray) else np.asarray(value)
            try:
                full = np.broadcast_to(host, arr.shape)
            except ValueError as e:
                raise ArgumentError(
                    f"Constant: a value of shape {host.shape} does not broadcast to {arr.shape}, that of {str(name)!r}"
                ) from e
            arr[:] = array(full, ctx=arr.context, dtype=arr.dtype)


@register
class Bilinear(Initializer):
    """Bilinear interpolation as the kernel of a Deconvolution that upsamples; shape (*, *, height, width)."""

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, name: str, arr: NDArray) -> None:
        if len(arr.shape) != 4:
            raise ArgumentError(f"Bilinear: {str(name)!r} has shape {arr.shape}: expected 4 axes")
        height, width = arr.shape[2:]
        half = np.ceil(width / 2.0)
        center = (2 * half - 1 - half % 2) / (2.0 * half)
        rows, cols = (1 - np.abs(np.arange(n) / half - center) for n in (height, width))
        kernel = np.broadcast_to(np.outer(rows, cols), arr.shape).astype("float32")
        arr[:] = array(kernel, ctx=arr.context, dtype=arr.dtype)


@register
class LSTMBias(Initializer):
    """Biases of an LSTM cell: 0, but `forget_bias` for the forget gate, the second quarter.

    Args:
        forget_bias: the forget gate's bias.
    """

    def __init__(self, forget_bias: float = 1.0):
        super().__init__(forget_bias=forget_bias)
        self.forget_bias = forget_bias

    def _init_weight(self, name: str, arr: NDArray) -> None:
        hidden = arr.shape[0] // 4
        values = np.zeros(arr.shape, "float32")
        values[hidden : 2 * hidden] = self.forget_bias
        arr[:] = array(values, ctx=arr.context, dtype=arr.dtype)


__all__ = ["Bilinear", "Constant", "LSTMBias", "One", "Zero"]
