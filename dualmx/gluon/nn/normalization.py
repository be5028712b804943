"""Normalization layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import as_dtype
from ..parameter import Parameter
from .op_layer import OpLayer


class _Affine(OpLayer):
    """A normalization followed by a learned scale `gamma` and shift `beta`."""

    gamma: Parameter
    beta: Parameter

    def _make_affine(
        self, size: int, center: bool, scale: bool, beta_initializer: Any, gamma_initializer: Any, differentiable: bool
    ) -> None:
        """`differentiable`: whether a switched-off parameter refuses a gradient later."""
        for name, wanted, init in (("gamma", scale, gamma_initializer), ("beta", center, beta_initializer)):
            param = self.params.get(
                name,
                grad_req="write" if wanted else "null",
                shape=(size,),
                init=init,
                allow_deferred_init=True,
                differentiable=wanted or not differentiable,
            )
            setattr(self, name, param)


class BatchNorm(_Affine):
    """Normalize each channel over the batch: gamma · (x - mean) / sqrt(var + epsilon) + beta.

    While training, mean and (biased) variance are those of the batch, and the running statistics move:
    running ← momentum · running + (1 - momentum) · batch. Otherwise the running statistics are used.

    Args:
        axis: of the channels.
        momentum: share of the old running statistics.
        epsilon: added to the variance.
        center, scale: learn `beta`, learn `gamma` (otherwise fixed to 1).
        use_global_stats: use the running statistics while training too.
        beta_initializer, gamma_initializer, running_mean_initializer, running_variance_initializer: initializers.
        in_channels: number of channels; found at the first forward pass if 0.

    Shapes: input and output are equal; parameters (in_channels,).

    Reference: Ioffe and Szegedy 2015, Batch Normalization.

    Example:
        >>> import dualmx as mx
        >>> layer = mx.gluon.nn.BatchNorm()
        >>> layer.initialize()
        >>> layer(mx.nd.ones((2, 3, 4, 4))).shape
        (2, 3, 4, 4)
    """

    _operator = "BatchNorm"
    running_mean: Parameter
    running_var: Parameter

    def __init__(
        self,
        axis: int = 1,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        use_global_stats: bool = False,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        running_mean_initializer: Any = "zeros",
        running_variance_initializer: Any = "ones",
        in_channels: int = 0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.in_channels = in_channels
        self._make_affine(in_channels, center, scale, beta_initializer, gamma_initializer, differentiable=True)
        for name, init in (
            ("running_mean", running_mean_initializer),
            ("running_var", running_variance_initializer),
        ):
            param = self.params.get(
                name,
                grad_req="null",
                shape=(in_channels,),
                init=init,
                allow_deferred_init=True,
                differentiable=False,
            )
            setattr(self, name, param)
        self._prepare(
            self._operator,
            (self.gamma, self.beta, self.running_mean, self.running_var),
            axis=axis,
            eps=epsilon,
            momentum=momentum,
            fix_gamma=not scale,
            use_global_stats=use_global_stats,
        )

    def cast(self, dtype: Any) -> None:
        """Convert the parameters; for float16 they become float32, because statistics need the precision."""
        super().cast("float32" if as_dtype(dtype) == np.float16 else dtype)

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any) -> Any:
        """Normalize."""
        return F.BatchNorm(x, gamma, beta, running_mean, running_var, name="fwd", **self._kwargs)

    def __repr__(self) -> str:
        shown = ", ".join(f"{k}={v!r}" for k, v in self._kwargs.items())
        return f"{type(self).__name__}({shown}, in_channels={(self.gamma.shape or (0,))[0] or None})"


class BatchNormReLU(BatchNorm):
    """`BatchNorm` followed by max(x, 0), as one operator; see `BatchNorm` for the arguments."""

    _operator = "_contrib_BatchNormWithReLU"

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any) -> Any:
        """Normalize and rectify."""
        return F.contrib.BatchNormWithReLU(x, gamma, beta, running_mean, running_var, name="fwd", **self._kwargs)

    _fast_forward = BatchNorm._fast_forward


class LayerNorm(_Affine):
    """Normalize each sample along one axis: gamma · (x - mean) / sqrt(var + epsilon) + beta.

    Args:
        axis: that is normalized.
        epsilon: added to the variance.
        center, scale: learn `beta`, learn `gamma`.
        beta_initializer, gamma_initializer: initializers.
        in_channels: size of the axis; found at the first forward pass if 0.

    Shapes: input and output are equal.

    Reference: Ba et al. 2016, Layer Normalization.
    """

    _named = {"_axis": "axis", "_epsilon": "eps"}

    def __init__(
        self,
        axis: int = -1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        in_channels: int = 0,
        prefix: str | None = None,
        params: Any = None,
    ):
        super().__init__(prefix=prefix, params=params)
        self._axis, self._epsilon, self._center, self._scale = axis, epsilon, center, scale
        self._make_affine(in_channels, center, scale, beta_initializer, gamma_initializer, differentiable=False)
        self._prepare("LayerNorm", (self.gamma, self.beta), eps=epsilon, axis=axis)

    def hybrid_forward(self, F: Any, data: Any, gamma: Any, beta: Any) -> Any:
        """Normalize."""
        return F.LayerNorm(data, gamma, beta, **self._kwargs)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(eps={self._epsilon}, axis={self._axis}, center={self._center}, "
            f"scale={self._scale}, in_channels={(self.gamma.shape or (0,))[0]})"
        )


class InstanceNorm(_Affine):
    """Normalize each channel of each sample over its spatial axes.

    Args:
        axis: of the channels.
        epsilon: added to the variance.
        center, scale: learn `beta`, learn `gamma`.
        beta_initializer, gamma_initializer: initializers.
        in_channels: number of channels; found at the first forward pass if 0.

    Shapes: input (N, C, *) for `axis=1`; output equal.

    Reference: Ulyanov et al. 2016, Instance Normalization.
    """

    _named = {"_epsilon": "eps"}

    def __init__(
        self,
        axis: int = 1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = False,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        in_channels: int = 0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self._axis, self._epsilon, self._center, self._scale = axis, epsilon, center, scale
        self._make_affine(in_channels, center, scale, beta_initializer, gamma_initializer, differentiable=False)
        self._prepare("InstanceNorm", (self.gamma, self.beta), eps=epsilon)

    def _fast_forward(self, x: Any) -> Any:
        return super()._fast_forward(x) if self._axis == 1 else self._forward_eager(x.context, x)

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any) -> Any:
        """Normalize."""
        if self._axis == 1:
            return F.InstanceNorm(x, gamma, beta, name="fwd", eps=self._epsilon)
        x = F.swapaxes(x, dim1=1, dim2=self._axis)
        return F.swapaxes(F.InstanceNorm(x, gamma, beta, name="fwd", eps=self._epsilon), dim1=1, dim2=self._axis)

    __repr__ = LayerNorm.__repr__


class GroupNorm(_Affine):
    """Normalize each sample over groups of channels (axis 1); one scale and shift per group.

    Args:
        num_groups: must divide the number of channels.
        epsilon: added to the variance.
        center, scale: learn `beta`, learn `gamma`.
        beta_initializer, gamma_initializer: initializers.

    Shapes: input (N, C, *); output equal; parameters (num_groups,).

    Reference: Wu and He 2018, Group Normalization.
    """

    _named = {"_num_groups": "num_groups", "_epsilon": "eps"}

    def __init__(
        self,
        num_groups: int = 1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        prefix: str | None = None,
        params: Any = None,
    ):
        super().__init__(prefix=prefix, params=params)
        self._num_groups, self._epsilon, self._center, self._scale = num_groups, epsilon, center, scale
        self._make_affine(num_groups, center, scale, beta_initializer, gamma_initializer, differentiable=False)
        self._prepare("GroupNorm", (self.gamma, self.beta), eps=epsilon, num_groups=num_groups)

    def hybrid_forward(self, F: Any, data: Any, gamma: Any, beta: Any) -> Any:
        """Normalize."""
        return F.GroupNorm(data, gamma, beta, **self._kwargs)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(eps={self._epsilon}, num_groups={self._num_groups}, center={self._center}, "
            f"scale={self._scale})"
        )


__all__ = ["BatchNorm", "BatchNormReLU", "GroupNorm", "InstanceNorm", "LayerNorm"]
