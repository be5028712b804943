"""Side-by-side containers and pixel shuffling."""

from __future__ import annotations

from typing import Any

from ...hybrid import HybridBlock
from ...nn.containers import Concatenate, HybridConcatenate, Identity
from ...nn.pooling import spread


class Concurrent(Concatenate):
    """Call all children on the same input and concatenate their outputs along `axis`."""


class HybridConcurrent(HybridConcatenate):
    """`Concurrent` of `HybridBlock`s, which can be hybridized."""


class _PixelShuffle(HybridBlock):
    """Moves blocks of channels into space; `_ndim` is the number of spatial axes."""

    _ndim: int

    def __init__(self, factor: int | tuple[int, ...]):
        super().__init__()
        self._factors = spread(type(self).__name__, "factor", factor, self._ndim)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Rearrange: (N, C·Πf, *S) -> (N, C, f₁, ..., fₙ, *S) -> (N, C, S₁, f₁, ...) -> (N, C, S₁·f₁, ...)."""
        n = self._ndim
        for f in reversed(self._factors):
            # (N, C·f, ...) -> (N, C, f, ...): the last factor varies fastest among the channels.
            x = F.reshape(x, shape=(0, -4, -1, f, -2))
        space = [axis for k in range(n) for axis in (2 + n + k, 2 + k)]
        x = F.transpose(x, axes=(0, 1, *space))
        return F.reshape(x, shape=(0, 0, *(-3,) * n))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._factors if self._ndim > 1 else self._factors[0]})"


class PixelShuffle1D(_PixelShuffle):
    """Rearrange (N, f·C, W) into (N, C, f·W).

    Args:
        factor: f.
    """

    _ndim = 1


class PixelShuffle2D(_PixelShuffle):
    """Rearrange (N, f₁·f₂·C, H, W) into (N, C, f₁·H, f₂·W).

    Args:
        factor: f₁ and f₂, or one number for both.

    Reference: Shi et al. 2016, Real-Time Single Image and Video Super-Resolution.

    Example:
        >>> import dualmx as mx
        >>> mx.gluon.contrib.nn.PixelShuffle2D((2, 3))(mx.nd.ones((1, 12, 3, 5))).shape
        (1, 2, 6, 15)
    """

    _ndim = 2


class PixelShuffle3D(_PixelShuffle):
    """Rearrange (N, f₁·f₂·f₃·C, D, H, W) into (N, C, f₁·D, f₂·H, f₃·W).

    Args:
        factor: f₁, f₂ and f₃, or one number for all.
    """

    _ndim = 3


__all__ = [
    "Concurrent",
    "HybridConcurrent",
    "Identity",
    "PixelShuffle1D",
    "PixelShuffle2D",
    "PixelShuffle3D",
]
