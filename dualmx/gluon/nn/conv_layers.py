"""Convolution and transposed convolution layers; also re-exports pooling, as MXNet's module does."""

from __future__ import annotations

from typing import Any

from ...core.errors import ArgumentError
from ..spatial import SpatialFamily
from . import pooling
from .activations import Activation
from .op_layer import OpLayer
from .pooling import *  # noqa: F403
from .pooling import _Pooling, as_tuple

_LAYOUTS = {1: ("NCW",), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


class ConvBase(OpLayer):
    """What all convolution layers share; `_ndim` is the number of spatial axes."""

    _ndim: int
    _transposed = False

    def __init__(
        self,
        channels: int,
        kernel_size: Any,
        strides: Any,
        padding: Any,
        dilation: Any,
        groups: int,
        layout: str,
        in_channels: int,
        activation: str | None,
        use_bias: bool,
        weight_initializer: Any,
        bias_initializer: Any,
        output_padding: Any = None,
        prefix: str | None = None,
        params: Any = None,
    ):
        super().__init__(prefix=prefix, params=params)
        who, n = type(self).__name__, self._ndim
        if layout not in _LAYOUTS[n]:
            raise ArgumentError(f"{who}: layout={layout!r}: expected {' or '.join(_LAYOUTS[n])}")
        kernel = as_tuple(who, "kernel_size", kernel_size, n)
        self._channels, self._in_channels = channels, in_channels
        settings = {
            "kernel": kernel,
            "stride": as_tuple(who, "strides", strides, n),
            "dilate": as_tuple(who, "dilation", dilation, n),
            "pad": as_tuple(who, "padding", padding, n),
            "num_filter": channels,
            "num_group": groups,
            "no_bias": not use_bias,
            "layout": layout,
        }
        if self._transposed:
            settings["adj"] = self.outpad = as_tuple(who, "output_padding", output_padding, n)
            first, second = in_channels, channels // groups
        else:
            first, second = channels, in_channels // groups
        shape = (first, second, *kernel) if layout.startswith("NC") else (first, *kernel, second)
        with self.name_scope():
            self.weight = self.params.get("weight", shape=shape, init=weight_initializer, allow_deferred_init=True)
            self.bias = (
                self.params.get("bias", shape=(channels,), init=bias_initializer, allow_deferred_init=True)
                if use_bias
                else None
            )
            self.act = Activation(activation, prefix=activation + "_") if activation is not None else None
        self._prepare("Deconvolution" if self._transposed else "Convolution", (self.weight, self.bias), **settings)

    @property
    def _op_name(self) -> str:
        return self._op

    def _alias(self) -> str:
        return "conv"

    def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        """Convolve, add the bias, activate."""
        operands = (x, weight) if bias is None else (x, weight, bias)
        out = getattr(F, self._op)(*operands, name="fwd", **self._kwargs)
        return out if self.act is None else self.act(out)

    def __repr__(self) -> str:
        v, n = self._kwargs, self._ndim
        shape = self.weight.shape or (0,) * (n + 2)
        second = 1 if v["layout"].startswith("NC") else n + 1
        text = f"{type(self).__name__}({shape[second] or None} -> {shape[0]}, kernel_size={v['kernel']}"
        text += f", stride={v['stride']}"
        text += f", padding={v['pad']}" if any(v["pad"]) else ""
        text += f", dilation={v['dilate']}" if v["dilate"] != (1,) * n else ""
        text += f", output_padding={v['adj']}" if any(v.get("adj", ())) else ""
        text += f", groups={v['num_group']}" if v["num_group"] != 1 else ""
        text += ", bias=False" if self.bias is None else ""
        text += f", {self.act}" if self.act is not None else ""
        return text + ")"


# MXNet's names, by which programs tell layers of a kind.
_Conv = ConvBase


def _details(length: str, weight: str, argument: str, result: str, more: str = "") -> str:
    return f"""
    Each spatial axis of length L becomes {length}.

    Args:
        channels: of the output.
        kernel_size: of the window.
        strides: step between windows.
        padding: zeros on both sides of each spatial axis.
{more}        dilation: step between the elements of a window.
        groups: channels are split into this many independent groups.
        layout: of the data, `"{{layout}}"`{{channels_last}}.
        activation: name of an activation applied to the result.
        use_bias: add a bias per channel.
        weight_initializer, bias_initializer: initializers.
        in_channels: of the input; found at the first forward pass if 0.

    Shapes: input (N, in_channels, {{data}}); weight ({weight}, *kernel_size); bias (channels,).

    Raises:
        ArgumentError: a size with a wrong number of numbers, or an unknown layout.

    Example:
        >>> import dualmx as mx
        >>> layer = mx.gluon.nn.{{name}}(4, kernel_size=3, {argument})
        >>> layer.initialize()
        >>> layer(mx.nd.ones((2, 3, {{eights}}))).shape
        (2, 4, {{{result}}})
    """


class ConvLayer(ConvBase, SpatialFamily):
    """Family of the convolutions."""

    _sizes = ("strides", "padding", "dilation")
    _details = _details(
        "(L + 2·padding - dilation·(kernel - 1) - 1) // strides + 1", "channels, in_channels / groups", "padding=1",
        "eights",
    )  # fmt: skip

    def __init__(
        self,
        channels: int,
        kernel_size: int | tuple[int, ...],
        strides: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        layout: str = "",
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


class Conv1D(ConvLayer, ndim=1):
    """Convolution (cross-correlation) over 1 spatial axis."""


class Conv2D(ConvLayer, ndim=2):
    """Convolution (cross-correlation) over 2 spatial axes."""


class Conv3D(ConvLayer, ndim=3):
    """Convolution (cross-correlation) over 3 spatial axes."""


class ConvTransposeLayer(ConvBase, SpatialFamily):
    """Family of the transposed convolutions."""

    _transposed = True
    _sizes = ("strides", "padding", "output_padding", "dilation")
    _details = _details(
        "strides·(L - 1) + dilation·(kernel - 1) + 1 - 2·padding + output_padding", "in_channels, channels / groups",
        "strides=2", "seventeens", "        output_padding: added to one side of the output.\n",
    )  # fmt: skip

    def __init__(
        self,
        channels: int,
        kernel_size: int | tuple[int, ...],
        strides: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        output_padding: int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        layout: str = "",
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


class Conv1DTranspose(ConvTransposeLayer, ndim=1):
    """Transposed convolution, the gradient of `Conv1D` with respect to its input."""


class Conv2DTranspose(ConvTransposeLayer, ndim=2):
    """Transposed convolution, the gradient of `Conv2D` with respect to its input."""


class Conv3DTranspose(ConvTransposeLayer, ndim=3):
    """Transposed convolution, the gradient of `Conv3D` with respect to its input."""


__all__ = [
    "Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose", "_Conv", "_Pooling",
]  # fmt: skip
__all__ += pooling.__all__
