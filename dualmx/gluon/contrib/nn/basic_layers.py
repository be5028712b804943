"""Concurrent containers, `SyncBatchNorm` and pixel shuffling."""

from __future__ import annotations

from typing import Any

from .... import parallel
from ...hybrid import HybridBlock
from ...nn.containers import Concatenate, HybridConcatenate, Identity
from ...nn.normalization import BatchNorm
from ...nn.pooling import as_tuple


class Concurrent(Concatenate):
    """Call all children on the same input and concatenate their outputs along `axis`."""


class HybridConcurrent(HybridConcatenate):
    """`Concurrent` of `HybridBlock`s, which can be hybridized."""


class SyncBatchNorm(BatchNorm):
    """`BatchNorm` by the statistics of the batches of several devices, and processes, together; channels on axis 1.

    The devices run one program that exchanges the sums, so while training each of them must be given its part of the
    batch before a result of any is read: compute all losses, then run backward on all. Their parts have the same shape.
    Processes that have joined (`parallel.init`) make the same layers in the same order, and train them by the same
    steps; their batches may differ in size.

    Args:
        in_channels: number of channels; found at the first forward pass if 0.
        num_devices: how many devices share the statistics: as many as there are contexts of the parameters, or these
            times the number of processes. If `None`, all of all processes.
        momentum, epsilon, center, scale, use_global_stats: see `gluon.nn.BatchNorm`.
        beta_initializer, gamma_initializer, running_mean_initializer, running_variance_initializer: initializers.

    Raises:
        MXNetError: when a result is read while fewer devices than `num_devices` have computed the same.

    Reference: Zhang et al. 2018, Context Encoding for Semantic Segmentation.

    Example:
        >>> import dualmx as mx
        >>> layer = mx.gluon.contrib.nn.SyncBatchNorm(in_channels=3)
        >>> layer.initialize()
        >>> layer(mx.nd.ones((2, 3, 4, 4))).shape
        (2, 3, 4, 4)
    """

    _operator = "_contrib_SyncBatchNorm"

    def __init__(
        self,
        in_channels: int = 0,
        num_devices: int | None = None,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        use_global_stats: bool = False,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        running_mean_initializer: Any = "zeros",
        running_variance_initializer: Any = "ones",
        **kwargs: Any,
    ):
        self._num_devices = num_devices
        super().__init__(
            1, momentum, epsilon, center, scale, use_global_stats, beta_initializer, gamma_initializer,
            running_mean_initializer, running_variance_initializer, in_channels, **kwargs,
        )  # fmt: skip

    def _prepare(self, op: str, operands: tuple[Any, ...] = (), **params: Any) -> None:
        del params["axis"]
        super()._prepare(op, operands, **params, ndev=self._num_devices or 1, key=self.prefix)

    def _count_devices(self) -> None:
        if not self.gamma.is_initialized and not self.gamma.is_deferred:
            return
        here, processes = len(self.gamma.list_ctx()), parallel.size() if parallel.is_initialized() else 1
        if self._num_devices is not None and self._num_devices != here * processes:
            here, processes = self._num_devices, 1
        if self._kwargs["ndev"] != here:
            self._kwargs["ndev"] = here
        if self._kwargs.get("processes", 1) != processes:
            self._kwargs["exchange"] = self.prefix
            self._kwargs["processes"] = processes

    def _fast_forward(self, x: Any) -> Any:
        self._count_devices()
        return super()._fast_forward(x)

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any) -> Any:
        """Normalize."""
        self._count_devices()
        return F.contrib.SyncBatchNorm(x, gamma, beta, running_mean, running_var, name="fwd", **self._kwargs)


class _PixelShuffle(HybridBlock):
    """Moves blocks of channels into space; `_ndim` is the number of spatial axes."""

    _ndim: int

    def __init__(self, factor: int | tuple[int, ...]):
        super().__init__()
        self._factors = as_tuple(type(self).__name__, "factor", factor, self._ndim)

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
    "SyncBatchNorm",
]
