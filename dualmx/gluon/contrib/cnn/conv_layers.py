"""Deformable convolution layers (Dai et al. 2017, "Deformable convolutional networks", and version 2)."""

from __future__ import annotations

from typing import Any

from ....core.errors import ArgumentError
from ....core.module_alias import lazy_reexport
from ... import nn
from ...hybrid import HybridBlock
from ...parameter import Parameter

Pair = tuple[int, int]


def _pair(what: str, value: Any) -> Pair:
    pair = (value, value) if isinstance(value, int) else tuple(value)
    if len(pair) != 2:
        raise ArgumentError(f"deformable convolution: {what}={value!r}: expected two numbers")
    return pair  # pyright: ignore[reportReturnType]


class _DeformableBase(HybridBlock):
    """What both versions share: a convolution that predicts offsets, and the deformable one.

    Args:
        channels: of the output.
        kernel_size, strides, padding, dilation: two numbers each, or one for both.
        groups: of channels that do not mix.
        num_deformable_group: groups of input channels with offsets of their own.
        layout: `"NCHW"`.
        use_bias: add a bias to the result.
        in_channels: of the input, 0 if it shall follow from it.
        activation: name of an activation of the result.
        weight_initializer, bias_initializer: of the deformable convolution.
        offset_weight_initializer, offset_bias_initializer, offset_use_bias: of the predicting convolution.
        op_name, adj: accepted.

    Raises:
        ArgumentError: not two numbers, or another layout.
    """

    _op_name = ""
    _per_point = 2  # predicted numbers per sampling point
    _offset_first = True

    def __init__(
        self, channels: int, kernel_size: Any = (1, 1), strides: Any = (1, 1), padding: Any = (0, 0),
        dilation: Any = (1, 1), groups: int = 1, num_deformable_group: int = 1, layout: str = "NCHW",
        use_bias: bool = True, in_channels: int = 0, activation: str | None = None, weight_initializer: Any = None,
        bias_initializer: Any = "zeros", offset_weight_initializer: Any = "zeros",
        offset_bias_initializer: Any = "zeros", offset_use_bias: bool = True, op_name: str | None = None,
        adj: Any = None, prefix: str | None = None, params: Any = None,
    ):  # fmt: skip
        super().__init__(prefix=prefix, params=params)
        if layout != "NCHW":
            raise ArgumentError(f"{type(self).__name__}: layout={layout!r}: expected 'NCHW'")
        kernel = _pair("kernel_size", kernel_size)
        shared = {
            "kernel": kernel, "stride": _pair("strides", strides), "dilate": _pair("dilation", dilation),
            "pad": _pair("padding", padding),
        }  # fmt: skip
        self._channels, self._in_channels, self._points = channels, in_channels, kernel[0] * kernel[1]
        offsets = self._per_point * self._points * num_deformable_group
        self._offsets_kept = 2 * self._points * num_deformable_group
        self._kwargs_offset = {**shared, "num_filter": offsets, "num_group": groups, "no_bias": not offset_use_bias}
        self._kwargs = {
            **shared, "num_filter": channels, "num_group": groups, "num_deformable_group": num_deformable_group,
            "no_bias": not use_bias,
        }  # fmt: skip
        shape = (in_channels // groups if in_channels else 0, *kernel)
        with self.name_scope():
            # The order in which parameters are listed.
            if self._offset_first:
                self._offset(offsets, shape, offset_use_bias, offset_weight_initializer, offset_bias_initializer)
            self._own(channels, shape, use_bias, weight_initializer, bias_initializer)
            if not self._offset_first:
                self._offset(offsets, shape, offset_use_bias, offset_weight_initializer, offset_bias_initializer)
            self.act = nn.Activation(activation, prefix=f"{activation}_") if activation else None

    def _own(self, count: int, shape: Any, biased: bool, weight: Any, bias: Any) -> None:
        name = "deformable_conv_"
        self.deformable_conv_weight = self._param(name + "weight", (count, *shape), weight)
        self.deformable_conv_bias = self._param(name + "bias", (count,), bias) if biased else None

    def _offset(self, count: int, shape: Any, biased: bool, weight: Any, bias: Any) -> None:
        self.offset_weight = self._param("offset_weight", (count, *shape), weight)
        self.offset_bias = self._param("offset_bias", (count,), bias) if biased else None

    def _param(self, name: str, shape: tuple[int, ...], init: Any) -> Parameter:
        return self.params.get(name, shape=shape, init=init, allow_deferred_init=True)

    def _predicted(self, F: Any, x: Any, weight: Any, bias: Any) -> Any:
        operands = [x, weight] if bias is None else [x, weight, bias]
        return F.Convolution(*operands, **self._kwargs_offset)

    def _sampled(self, F: Any, operands: list[Any], bias: Any) -> Any:
        operands = operands if bias is None else [*operands, bias]
        out = getattr(F.contrib, self._op_name)(*operands, name="fwd", **self._kwargs)
        return out if self.act is None else self.act(out)

    def _alias(self) -> str:
        return "deformable_conv"

    def __repr__(self) -> str:
        k = self._kwargs
        text = f"{self._in_channels or None} -> {self._channels}, kernel_size={k['kernel']}, stride={k['stride']}"
        text += f", padding={k['pad']}" if k["pad"] != (0, 0) else ""
        text += f", dilation={k['dilate']}" if k["dilate"] != (1, 1) else ""
        text += f", groups={k['num_group']}" if k["num_group"] != 1 else ""
        text += ", bias=False" if k["no_bias"] else ""
        return f"{type(self).__name__}({text}{f', {self.act}' if self.act is not None else ''})"


class DeformableConvolution(_DeformableBase):
    __doc__ = (_DeformableBase.__doc__ or "").replace(
        "What both versions share: a convolution that predicts offsets, and the deformable one.",
        "A convolution that samples its input at points moved by offsets, which another convolution predicts.",
    )
    _op_name = "DeformableConvolution"

    def hybrid_forward(
        self, F: Any, x: Any, offset_weight: Any, deformable_conv_weight: Any, offset_bias: Any = None,
        deformable_conv_bias: Any = None,
    ) -> Any:  # fmt: skip
        """Return (N, channels, H', W') of (N, C, H, W)."""
        offset = self._predicted(F, x, offset_weight, offset_bias)
        return self._sampled(F, [x, offset, deformable_conv_weight], deformable_conv_bias)


class ModulatedDeformableConvolution(_DeformableBase):
    __doc__ = (_DeformableBase.__doc__ or "").replace(
        "What both versions share: a convolution that predicts offsets, and the deformable one.",
        "A deformable convolution whose samples are also weighted, by predicted numbers from 0 to 2.",
    )
    _op_name = "ModulatedDeformableConvolution"
    _per_point = 3
    _offset_first = False

    def hybrid_forward(
        self, F: Any, x: Any, offset_weight: Any, deformable_conv_weight: Any, offset_bias: Any = None,
        deformable_conv_bias: Any = None,
    ) -> Any:  # fmt: skip
        """Return (N, channels, H', W') of (N, C, H, W)."""
        predicted = self._predicted(F, x, offset_weight, offset_bias)
        offset = F.slice_axis(predicted, axis=1, begin=0, end=self._offsets_kept)
        mask = F.sigmoid(F.slice_axis(predicted, axis=1, begin=self._offsets_kept, end=None)) * 2
        return self._sampled(F, [x, offset, mask, deformable_conv_weight], deformable_conv_bias)

    def _alias(self) -> str:
        return "modulated_deformable_conv"


__getattr__, __dir__ = lazy_reexport(__name__, "dualmx.gluon.contrib.cnn")
