"""Convolution layers; the module also re-exports pooling."""

from __future__ import annotations

from typing import Any

from .conv_base import ConvBase
from .pooling import (
    AvgPool1D,
    AvgPool2D,
    AvgPool3D,
    GlobalAvgPool1D,
    GlobalAvgPool2D,
    GlobalAvgPool3D,
    GlobalMaxPool1D,
    GlobalMaxPool2D,
    GlobalMaxPool3D,
    MaxPool1D,
    MaxPool2D,
    MaxPool3D,
    ReflectionPad2D,
    _Pooling,
)

# MXNet's names, by which programs tell layers of a kind.
_Conv = ConvBase


class Conv1D(ConvBase):
    """Convolution (cross-correlation) over 1 spatial axis.

    Each spatial axis of length L becomes (L + 2·padding - dilation·(kernel - 1) - 1) // strides + 1.

    Args:
        channels: of the output.
        kernel_size: of the window.
        strides: step between windows.
        padding: zeros on both sides of each spatial axis.
        dilation: step between the elements of a window.
        groups: channels are split into this many independent groups.
        layout: of the data, `"NCW"`.
        activation: name of an activation applied to the result.
        use_bias: add a bias per channel.
        weight_initializer, bias_initializer: initializers.
        in_channels: of the input; found at the first forward pass if 0.

    Shapes: input (N, in_channels, W); weight (channels, in_channels / groups, *kernel_size); bias (channels,).

    Raises:
        ArgumentError: a size with a wrong number of numbers, or an unknown layout.

    Example:
        >>> import dualmx as mx
        >>> layer = mx.gluon.nn.Conv1D(4, kernel_size=3, padding=1)
        >>> layer.initialize()
        >>> layer(mx.nd.ones((2, 3, 8))).shape
        (2, 4, 8)
    """

    _ndim = 1

    def __init__(
        self,
        channels: int,
        kernel_size: int | tuple[int, ...],
        strides: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        layout: str = "NCW",
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_channels: int = 0,
        **kwargs: Any,
    ):
        super().__init__(
            channels, kernel_size, strides, padding, dilation, groups, layout, in_channels, activation, use_bias,
            weight_initializer, bias_initializer, **kwargs,
        )  # fmt: skip


class Conv2D(ConvBase):
    """Convolution (cross-correlation) over 2 spatial axes.

    Each spatial axis of length L becomes (L + 2·padding - dilation·(kernel - 1) - 1) // strides + 1.

    Args:
        channels: of the output.
        kernel_size: of the window.
        strides: step between windows.
        padding: zeros on both sides of each spatial axis.
        dilation: step between the elements of a window.
        groups: channels are split into this many independent groups.
        layout: of the data, `"NCHW"` or channels last.
        activation: name of an activation applied to the result.
        use_bias: add a bias per channel.
        weight_initializer, bias_initializer: initializers.
        in_channels: of the input; found at the first forward pass if 0.

    Shapes: input (N, in_channels, H, W); weight (channels, in_channels / groups, *kernel_size); bias (channels,).

    Raises:
        ArgumentError: a size with a wrong number of numbers, or an unknown layout.

    Example:
        >>> import dualmx as mx
        >>> layer = mx.gluon.nn.Conv2D(4, kernel_size=3, padding=1)
        >>> layer.initialize()
        >>> layer(mx.nd.ones((2, 3, 8, 8))).shape
        (2, 4, 8, 8)
    """

    _ndim = 2

    def __init__(
        self,
        channels: int,
        kernel_size: int | tuple[int, ...],
        strides: int | tuple[int, ...] = (1, 1),
        padding: int | tuple[int, ...] = (0, 0),
        dilation: int | tuple[int, ...] = (1, 1),
        groups: int = 1,
        layout: str = "NCHW",
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_channels: int = 0,
        **kwargs: Any,
    ):
        super().__init__(
            channels, kernel_size, strides, padding, dilation, groups, layout, in_channels, activation, use_bias,
            weight_initializer, bias_initializer, **kwargs,
        )  # fmt: skip


class Conv3D(ConvBase):
    """Convolution (cross-correlation) over 3 spatial axes.

    Each spatial axis of length L becomes (L + 2·padding - dilation·(kernel - 1) - 1) // strides + 1.

    Args:
        channels: of the output.
        kernel_size: of the window.
        strides: step between windows.
        padding: zeros on both sides of each spatial axis.
        dilation: step between the elements of a window.
        groups: channels are split into this many independent groups.
        layout: of the data, `"NCDHW"` or channels last.
        activation: name of an activation applied to the result.
        use_bias: add a bias per channel.
        weight_initializer, bias_initializer: initializers.
        in_channels: of the input; found at the first forward pass if 0.

    Shapes: input (N, in_channels, D, H, W); weight (channels, in_channels / groups, *kernel_size); bias (channels,).

    Raises:
        ArgumentError: a size with a wrong number of numbers, or an unknown layout.

    Example:
        >>> import dualmx as mx
        >>> layer = mx.gluon.nn.Conv3D(4, kernel_size=3, padding=1)
        >>> layer.initialize()
        >>> layer(mx.nd.ones((2, 3, 8, 8, 8))).shape
        (2, 4, 8, 8, 8)
    """

    _ndim = 3

    def __init__(
        self,
        channels: int,
        kernel_size: int | tuple[int, ...],
        strides: int | tuple[int, ...] = (1, 1, 1),
        padding: int | tuple[int, ...] = (0, 0, 0),
        dilation: int | tuple[int, ...] = (1, 1, 1),
        groups: int = 1,
        layout: str = "NCDHW",
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_channels: int = 0,
        **kwargs: Any,
    ):
        super().__init__(
            channels, kernel_size, strides, padding, dilation, groups, layout, in_channels, activation, use_bias,
            weight_initializer, bias_initializer, **kwargs,
        )  # fmt: skip


class Conv1DTranspose(ConvBase):
    """Transposed convolution, the gradient of `Conv1D` with respect to its input.

    Each spatial axis of length L becomes strides·(L - 1) + dilation·(kernel - 1) + 1 - 2·padding + output_padding.

    Args:
        channels: of the output.
        kernel_size: of the window.
        strides: step between windows.
        padding: zeros on both sides of each spatial axis.
        output_padding: added to one side of the output.
        dilation: step between the elements of a window.
        groups: channels are split into this many independent groups.
        layout: of the data, `"NCW"`.
        activation: name of an activation applied to the result.
        use_bias: add a bias per channel.
        weight_initializer, bias_initializer: initializers.
        in_channels: of the input; found at the first forward pass if 0.

    Shapes: input (N, in_channels, W); weight (in_channels, channels / groups, *kernel_size); bias (channels,).

    Raises:
        ArgumentError: a size with a wrong number of numbers, or an unknown layout.

    Example:
        >>> import dualmx as mx
        >>> layer = mx.gluon.nn.Conv1DTranspose(4, kernel_size=3, strides=2)
        >>> layer.initialize()
        >>> layer(mx.nd.ones((2, 3, 8))).shape
        (2, 4, 17)
    """

    _ndim = 1
    _transposed = True

    def __init__(
        self,
        channels: int,
        kernel_size: int | tuple[int, ...],
        strides: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        output_padding: int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        layout: str = "NCW",
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_channels: int = 0,
        **kwargs: Any,
    ):
        super().__init__(
            channels, kernel_size, strides, padding, dilation, groups, layout, in_channels, activation, use_bias,
            weight_initializer, bias_initializer, output_padding, **kwargs,
        )  # fmt: skip


class Conv2DTranspose(ConvBase):
    """Transposed convolution, the gradient of `Conv2D` with respect to its input.

    Each spatial axis of length L becomes strides·(L - 1) + dilation·(kernel - 1) + 1 - 2·padding + output_padding.

    Args:
        channels: of the output.
        kernel_size: of the window.
        strides: step between windows.
        padding: zeros on both sides of each spatial axis.
        output_padding: added to one side of the output.
        dilation: step between the elements of a window.
        groups: channels are split into this many independent groups.
        layout: of the data, `"NCHW"` or channels last.
        activation: name of an activation applied to the result.
        use_bias: add a bias per channel.
        weight_initializer, bias_initializer: initializers.
        in_channels: of the input; found at the first forward pass if 0.

    Shapes: input (N, in_channels, H, W); weight (in_channels, channels / groups, *kernel_size); bias (channels,).

    Raises:
        ArgumentError: a size with a wrong number of numbers, or an unknown layout.

    Example:
        >>> import dualmx as mx
        >>> layer = mx.gluon.nn.Conv2DTranspose(4, kernel_size=3, strides=2)
        >>> layer.initialize()
        >>> layer(mx.nd.ones((2, 3, 8, 8))).shape
        (2, 4, 17, 17)
    """

    _ndim = 2
    _transposed = True

    def __init__(
        self,
        channels: int,
        kernel_size: int | tuple[int, ...],
        strides: int | tuple[int, ...] = (1, 1),
        padding: int | tuple[int, ...] = (0, 0),
        output_padding: int | tuple[int, ...] = (0, 0),
        dilation: int | tuple[int, ...] = (1, 1),
        groups: int = 1,
        layout: str = "NCHW",
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_channels: int = 0,
        **kwargs: Any,
    ):
        super().__init__(
            channels, kernel_size, strides, padding, dilation, groups, layout, in_channels, activation, use_bias,
            weight_initializer, bias_initializer, output_padding, **kwargs,
        )  # fmt: skip


class Conv3DTranspose(ConvBase):
    """Transposed convolution, the gradient of `Conv3D` with respect to its input.

    Each spatial axis of length L becomes strides·(L - 1) + dilation·(kernel - 1) + 1 - 2·padding + output_padding.

    Args:
        channels: of the output.
        kernel_size: of the window.
        strides: step between windows.
        padding: zeros on both sides of each spatial axis.
        output_padding: added to one side of the output.
        dilation: step between the elements of a window.
        groups: channels are split into this many independent groups.
        layout: of the data, `"NCDHW"` or channels last.
        activation: name of an activation applied to the result.
        use_bias: add a bias per channel.
        weight_initializer, bias_initializer: initializers.
        in_channels: of the input; found at the first forward pass if 0.

    Shapes: input (N, in_channels, D, H, W); weight (in_channels, channels / groups, *kernel_size); bias (channels,).

    Raises:
        ArgumentError: a size with a wrong number of numbers, or an unknown layout.

    Example:
        >>> import dualmx as mx
        >>> layer = mx.gluon.nn.Conv3DTranspose(4, kernel_size=3, strides=2)
        >>> layer.initialize()
        >>> layer(mx.nd.ones((2, 3, 8, 8, 8))).shape
        (2, 4, 17, 17, 17)
    """

    _ndim = 3
    _transposed = True

    def __init__(
        self,
        channels: int,
        kernel_size: int | tuple[int, ...],
        strides: int | tuple[int, ...] = (1, 1, 1),
        padding: int | tuple[int, ...] = (0, 0, 0),
        output_padding: int | tuple[int, ...] = (0, 0, 0),
        dilation: int | tuple[int, ...] = (1, 1, 1),
        groups: int = 1,
        layout: str = "NCDHW",
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_channels: int = 0,
        **kwargs: Any,
    ):
        super().__init__(
            channels, kernel_size, strides, padding, dilation, groups, layout, in_channels, activation, use_bias,
            weight_initializer, bias_initializer, output_padding, **kwargs,
        )  # fmt: skip


__all__ = [
    "AvgPool1D",
    "AvgPool2D",
    "AvgPool3D",
    "Conv1D",
    "Conv1DTranspose",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Conv3DTranspose",
    "GlobalAvgPool1D",
    "GlobalAvgPool2D",
    "GlobalAvgPool3D",
    "GlobalMaxPool1D",
    "GlobalMaxPool2D",
    "GlobalMaxPool3D",
    "MaxPool1D",
    "MaxPool2D",
    "MaxPool3D",
    "ReflectionPad2D",
    "_Conv",
    "_Pooling",
]
