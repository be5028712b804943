"""Compression of tensors before they are sent."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..ndarray import NDArray

_WIDE = ("float32", "float64")


class Compressor:
    """Base of compressions: `compress` before the exchange, `decompress` after it."""

    @staticmethod
    def compress(tensor: NDArray) -> tuple[NDArray, Any]:
        """Return what is sent, and what `decompress` must know."""
        return tensor, None

    @staticmethod
    def decompress(tensor: NDArray, ctx: Any) -> NDArray:
        """Return what was received with the dtype from before."""
        return tensor


class NoneCompressor(Compressor):
    """Arrays are sent as they are."""


class FP16Compressor(Compressor):
    """Floats of 32 and 64 bits are sent as float16.

    Example:
        >>> import dualmx as mx
        >>> small, ctx = FP16Compressor.compress(mx.nd.ones((2,)))
        >>> small.dtype.__name__, FP16Compressor.decompress(small, ctx).dtype.__name__
        ('float16', 'float32')
    """

    @staticmethod
    def compress(tensor: NDArray) -> tuple[NDArray, Any]:
        """Return the array in float16, and its dtype."""
        wide = tensor.stype == "default" and np.dtype(tensor.dtype).name in _WIDE
        return (tensor.astype("float16"), tensor.dtype) if wide else (tensor, None)

    @staticmethod
    def decompress(tensor: NDArray, ctx: Any) -> NDArray:
        """Return the array in the dtype from before."""
        return tensor if ctx is None else tensor.astype(ctx)


class Compression:
    """The compressions by name."""

    none: ClassVar[type[Compressor]] = NoneCompressor
    fp16: ClassVar[type[Compressor]] = FP16Compressor
