"""`ConvBase`: what convolutions and transposed convolutions share."""

from __future__ import annotations

from typing import Any

from ...core.errors import ArgumentError
from .activations import Activation
from .one_call import OpLayer
from .pooling import as_tuple

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
