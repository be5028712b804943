"""MobileNet (Howard et al. 2017) and MobileNetV2 ("Inverted residuals and linear bottlenecks", Sandler et al. 2018)."""

from __future__ import annotations

from typing import Any

from ....context import Context
from ... import nn
from ..model_store import DEFAULT_ROOT
from .network import Network, preset, with_pretrained

# Channels of the depthwise convolutions, of the pointwise ones after them, and strides.
DEPTHWISE = (32, 64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024)
POINTWISE = (64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024)
STRIDES = (1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1)
# Of the bottlenecks of version 2: how many, output channels, expansion, stride of the first.
BOTTLENECKS = (
    (1, 16, 1, 1), (2, 24, 6, 2), (3, 32, 6, 2), (4, 64, 6, 2), (3, 96, 6, 1), (3, 160, 6, 2), (1, 320, 6, 1),
)  # fmt: skip


class RELU6(nn.HybridBlock):
    """min(max(x, 0), 6)."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return the input clipped to [0, 6]."""
        return F.clip(x, 0, 6, name="relu6")


def _add_conv(
    out: nn.HybridSequential, channels: int, kernel: int = 1, stride: int = 1, pad: int = 0, groups: int = 1,
    active: bool = True, six: bool = False,
) -> None:  # fmt: skip
    out.add(nn.Conv2D(channels, kernel, stride, pad, groups=groups, use_bias=False), nn.BatchNorm(scale=True))
    if active:
        out.add(RELU6() if six else nn.Activation("relu"))


class LinearBottleneck(nn.HybridBlock):
    """Expand by a pointwise convolution, filter depthwise, and project linearly; added to the input if it fits.

    Args:
        in_channels: channels of the input.
        channels: channels of the output.
        t: expansion.
        stride: of the depthwise convolution.
    """

    def __init__(self, in_channels: int, channels: int, t: int, stride: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.use_shortcut = stride == 1 and in_channels == channels
        wide = in_channels * t
        with self.name_scope():
            self.out = nn.HybridSequential()
            _add_conv(self.out, wide, six=True)
            _add_conv(self.out, wide, 3, stride, 1, groups=wide, six=True)
            _add_conv(self.out, channels, active=False)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return (N, channels, H / stride, W / stride)."""
        out = self.out(x)
        return F.elemwise_add(out, x) if self.use_shortcut else out


class MobileNet(Network):
    """MobileNet for 224×224 images.

    Args:
        multiplier: of the numbers of channels.
        classes: number of outputs.
    """

    def __init__(self, multiplier: float = 1.0, classes: int = 1000, **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            with self.features.name_scope():
                _add_conv(self.features, int(32 * multiplier), 3, 2, 1)
                for depth, point, stride in zip(DEPTHWISE, POINTWISE, STRIDES, strict=True):
                    wide = int(depth * multiplier)
                    _add_conv(self.features, wide, 3, stride, 1, groups=wide)
                    _add_conv(self.features, int(point * multiplier))
                self.features.add(nn.GlobalAvgPool2D(), nn.Flatten())
            self.output = nn.Dense(classes)


class MobileNetV2(Network):
    """MobileNetV2 for 224×224 images.

    Args:
        multiplier: of the numbers of channels.
        classes: number of outputs.
    """

    def __init__(self, multiplier: float = 1.0, classes: int = 1000, **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="features_")
            with self.features.name_scope():
                before = int(32 * multiplier)
                _add_conv(self.features, before, 3, 2, 1, six=True)
                number = 0
                for count, channels, expansion, first_stride in BOTTLENECKS:
                    for i in range(count):
                        after = int(channels * multiplier)
                        stride = first_stride if i == 0 else 1
                        name = f"linearbottleneck{number}_"
                        self.features.add(LinearBottleneck(before, after, expansion, stride, prefix=name))
                        before, number = after, number + 1
                last = int(1280 * multiplier) if multiplier > 1.0 else 1280
                _add_conv(self.features, last, six=True)
                self.features.add(nn.GlobalAvgPool2D())
            self.output = nn.HybridSequential(prefix="output_")
            with self.output.name_scope():
                self.output.add(nn.Conv2D(classes, 1, use_bias=False, prefix="pred_"), nn.Flatten())


def _suffix(multiplier: float) -> str:
    text = f"{multiplier:.2f}"
    return text[:-1] if text.endswith("0") else text


def get_mobilenet(
    multiplier: float, pretrained: bool = False, ctx: Context | None = None, root: str = DEFAULT_ROOT, **kwargs: Any
) -> MobileNet:
    """MobileNet.

    Args:
        multiplier: of the numbers of channels.
        pretrained: load trained parameters from `root` (multipliers 0.25, 0.5, 0.75 and 1).
        ctx: where they are put; `cpu()` by default.
        root: folder of the parameter files.
        kwargs: for `MobileNet`.
    """
    return with_pretrained(MobileNet(multiplier, **kwargs), pretrained, f"mobilenet{_suffix(multiplier)}", root, ctx)


def get_mobilenet_v2(
    multiplier: float, pretrained: bool = False, ctx: Context | None = None, root: str = DEFAULT_ROOT, **kwargs: Any
) -> MobileNetV2:
    """MobileNetV2; arguments as for `get_mobilenet`."""
    name = f"mobilenetv2_{_suffix(multiplier)}"
    return with_pretrained(MobileNetV2(multiplier, **kwargs), pretrained, name, root, ctx)


# Names end with the multiplier, which says how many of the channels are there.
SHARES = {
    "1_0": (1.0, "all channels"),
    "0_75": (0.75, "3/4 of the channels"),
    "0_5": (0.5, "half of the channels"),
    "0_25": (0.25, "a quarter of the channels"),
}
mobilenet1_0, mobilenet0_75, mobilenet0_5, mobilenet0_25 = (
    preset(get_mobilenet, f"mobilenet{end}", f"MobileNet with {share}", multiplier)
    for end, (multiplier, share) in SHARES.items()
)
mobilenet_v2_1_0, mobilenet_v2_0_75, mobilenet_v2_0_5, mobilenet_v2_0_25 = (
    preset(get_mobilenet_v2, f"mobilenet_v2_{end}", f"MobileNetV2 with {share}", multiplier)
    for end, (multiplier, share) in SHARES.items()
)


__all__ = [
    "MobileNet", "MobileNetV2", "get_mobilenet", "get_mobilenet_v2", "mobilenet0_25", "mobilenet0_5", "mobilenet0_75",
    "mobilenet1_0", "mobilenet_v2_0_25", "mobilenet_v2_0_5", "mobilenet_v2_0_75", "mobilenet_v2_1_0",
]  # fmt: skip
