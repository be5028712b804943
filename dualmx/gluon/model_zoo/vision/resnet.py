"""ResNet v1 ("Deep residual learning", He et al. 2015) and v2 ("Identity mappings", He et al. 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....context import Context
from ....core.errors import ArgumentError
from ... import nn
from ...hybrid import HybridBlock
from ..model_store import DEFAULT_ROOT
from .network import Network, preset, with_pretrained

# By depth: whether blocks are bottlenecks, blocks per stage, channels before the first stage and of the stages.
PLANS = {
    18: (False, (2, 2, 2, 2), (64, 64, 128, 256, 512)), 34: (False, (3, 4, 6, 3), (64, 64, 128, 256, 512)),
    50: (True, (3, 4, 6, 3), (64, 256, 512, 1024, 2048)), 101: (True, (3, 4, 23, 3), (64, 256, 512, 1024, 2048)),
    152: (True, (3, 8, 36, 3), (64, 256, 512, 1024, 2048)),
}  # fmt: skip


def _conv3x3(channels: int, stride: int, in_channels: int) -> nn.Conv2D:
    return nn.Conv2D(channels, 3, stride, 1, use_bias=False, in_channels=in_channels)


class _V1(HybridBlock):
    """A block of version 1: convolutions and a shortcut, added, then ReLU."""

    body: nn.HybridSequential
    downsample: nn.HybridSequential | None
    shortcut_first: bool

    def _add_downsample(self, channels: int, stride: int, in_channels: int, wanted: bool) -> None:
        if not wanted:
            self.downsample = None
            return
        self.downsample = nn.HybridSequential(prefix="")
        self.downsample.add(nn.Conv2D(channels, 1, stride, use_bias=False, in_channels=in_channels), nn.BatchNorm())

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return (N, channels, H / stride, W / stride)."""
        out = self.body(x)
        residual = x if self.downsample is None else self.downsample(x)
        return F.Activation(residual + out if self.shortcut_first else out + residual, act_type="relu")


class BasicBlockV1(_V1):
    """Two 3×3 convolutions.

    Args:
        channels: of the output.
        stride: of the first convolution.
        downsample: whether the shortcut is a convolution.
        in_channels: of the input, 0 if it shall follow from it.
    """

    shortcut_first = True

    def __init__(self, channels: int, stride: int, downsample: bool = False, in_channels: int = 0, **kwargs: Any):
        super().__init__(**kwargs)
        self.body = nn.HybridSequential(prefix="")
        self.body.add(_conv3x3(channels, stride, in_channels), nn.BatchNorm(), nn.Activation("relu"))
        self.body.add(_conv3x3(channels, 1, channels), nn.BatchNorm())
        self._add_downsample(channels, stride, in_channels, downsample)


class BottleneckV1(_V1):
    """1×1, 3×3 and 1×1 convolutions, the middle one with a quarter of the channels; arguments as `BasicBlockV1`."""

    shortcut_first = False

    def __init__(self, channels: int, stride: int, downsample: bool = False, in_channels: int = 0, **kwargs: Any):
        super().__init__(**kwargs)
        inner = channels // 4
        self.body = nn.HybridSequential(prefix="")
        self.body.add(nn.Conv2D(inner, 1, stride), nn.BatchNorm(), nn.Activation("relu"))
        self.body.add(_conv3x3(inner, 1, inner), nn.BatchNorm(), nn.Activation("relu"))
        self.body.add(nn.Conv2D(channels, 1, 1), nn.BatchNorm())
        self._add_downsample(channels, stride, in_channels, downsample)


class _V2(HybridBlock):
    """A block of version 2: normalization and ReLU before each convolution, the shortcut after the first of them."""

    downsample: nn.Conv2D | None

    def _add_downsample(self, channels: int, stride: int, in_channels: int, wanted: bool) -> None:
        self.downsample = nn.Conv2D(channels, 1, stride, use_bias=False, in_channels=in_channels) if wanted else None

    def _steps(self) -> list[tuple[Any, Any]]:
        raise NotImplementedError

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return (N, channels, H / stride, W / stride)."""
        residual = x
        for i, (norm, conv) in enumerate(self._steps()):
            x = F.Activation(norm(x), act_type="relu")
            if i == 0 and self.downsample is not None:
                residual = self.downsample(x)
            x = conv(x)
        return x + residual


class BasicBlockV2(_V2):
    """Two 3×3 convolutions; arguments as `BasicBlockV1`."""

    def __init__(self, channels: int, stride: int, downsample: bool = False, in_channels: int = 0, **kwargs: Any):
        super().__init__(**kwargs)
        self.bn1, self.conv1 = nn.BatchNorm(), _conv3x3(channels, stride, in_channels)
        self.bn2, self.conv2 = nn.BatchNorm(), _conv3x3(channels, 1, channels)
        self._add_downsample(channels, stride, in_channels, downsample)

    def _steps(self) -> list[tuple[Any, Any]]:
        return [(self.bn1, self.conv1), (self.bn2, self.conv2)]


class BottleneckV2(_V2):
    """1×1, 3×3 and 1×1 convolutions; arguments as `BasicBlockV1`."""

    def __init__(self, channels: int, stride: int, downsample: bool = False, in_channels: int = 0, **kwargs: Any):
        super().__init__(**kwargs)
        inner = channels // 4
        self.bn1, self.conv1 = nn.BatchNorm(), nn.Conv2D(inner, 1, 1, use_bias=False)
        self.bn2, self.conv2 = nn.BatchNorm(), _conv3x3(inner, stride, inner)
        self.bn3, self.conv3 = nn.BatchNorm(), nn.Conv2D(channels, 1, 1, use_bias=False)
        self._add_downsample(channels, stride, in_channels, downsample)

    def _steps(self) -> list[tuple[Any, Any]]:
        return [(self.bn1, self.conv1), (self.bn2, self.conv2), (self.bn3, self.conv3)]


def _add_stem(features: nn.HybridSequential, channels: int, thumbnail: bool) -> None:
    if thumbnail:
        features.add(_conv3x3(channels, 1, 0))
    else:
        features.add(nn.Conv2D(channels, 7, 2, 3, use_bias=False), nn.BatchNorm(), nn.Activation("relu"))
        features.add(nn.MaxPool2D(3, 2, 1))


def _add_stages(features: nn.HybridSequential, block: Any, layers: Sequence[int], channels: Sequence[int]) -> None:
    for i, count in enumerate(layers):
        before, after, stride = channels[i], channels[i + 1], 1 if i == 0 else 2
        stage = nn.HybridSequential(prefix=f"stage{i + 1}_")
        with stage.name_scope():
            stage.add(block(after, stride, after != before, in_channels=before, prefix=""))
            for _ in range(count - 1):
                stage.add(block(after, 1, False, in_channels=after, prefix=""))
        features.add(stage)


def _check(name: str, layers: Sequence[int], channels: Sequence[int]) -> None:
    if len(channels) != len(layers) + 1:
        raise ArgumentError(
            f"{name}: {len(channels)} channels for {len(layers)} stages: expected one number more than stages"
        )


class ResNetV1(Network):
    """Residual network, version 1.

    Args:
        block: class of the blocks, such as `BasicBlockV1`.
        layers: blocks per stage.
        channels: before the first stage, and of every stage.
        classes: number of outputs.
        thumbnail: begin with one 3×3 convolution, for small images.

    Raises:
        ArgumentError: not one number of channels more than stages.
    """

    def __init__(
        self, block: Any, layers: Sequence[int], channels: Sequence[int], classes: int = 1000,
        thumbnail: bool = False, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(**kwargs)
        _check("ResNetV1", layers, channels)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            _add_stem(self.features, channels[0], thumbnail)
            _add_stages(self.features, block, layers, channels)
            self.features.add(nn.GlobalAvgPool2D())
            self.output = nn.Dense(classes, in_units=channels[-1])


class ResNetV2(Network):
    """Residual network, version 2; arguments as `ResNetV1`, with blocks such as `BasicBlockV2`."""

    def __init__(
        self, block: Any, layers: Sequence[int], channels: Sequence[int], classes: int = 1000,
        thumbnail: bool = False, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(**kwargs)
        _check("ResNetV2", layers, channels)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            self.features.add(nn.BatchNorm(scale=False, center=False))
            _add_stem(self.features, channels[0], thumbnail)
            _add_stages(self.features, block, layers, channels)
            self.features.add(nn.BatchNorm(), nn.Activation("relu"), nn.GlobalAvgPool2D(), nn.Flatten())
            self.output = nn.Dense(classes, in_units=channels[-1])


def get_resnet(
    version: int, num_layers: int, pretrained: bool = False, ctx: Context | None = None, root: str = DEFAULT_ROOT,
    **kwargs: Any,
) -> ResNetV1 | ResNetV2:  # fmt: skip
    """Residual network.

    Args:
        version: 1 or 2.
        num_layers: 18, 34, 50, 101 or 152.
        pretrained: load trained parameters from `root`.
        ctx: where they are put; `cpu()` by default.
        root: folder of the parameter files.
        kwargs: for `ResNetV1` or `ResNetV2`.

    Raises:
        ArgumentError: another depth or version.
    """
    if num_layers not in PLANS:
        raise ArgumentError(f"Invalid number of layers: {num_layers}. Options are {sorted(PLANS)}")
    if version not in (1, 2):
        raise ArgumentError(f"Invalid resnet version: {version}. Options are 1 and 2.")
    bottleneck, layers, channels = PLANS[num_layers]
    blocks = (BottleneckV1, BottleneckV2) if bottleneck else (BasicBlockV1, BasicBlockV2)
    net = (ResNetV1, ResNetV2)[version - 1](blocks[version - 1], layers, channels, **kwargs)
    return with_pretrained(net, pretrained, f"resnet{num_layers}_v{version}", root, ctx)


resnet18_v1, resnet34_v1, resnet50_v1, resnet101_v1, resnet152_v1 = (
    preset(get_resnet, f"resnet{n}_v1", f"Residual network of {n} layers, version 1", 1, n) for n in PLANS
)
resnet18_v2, resnet34_v2, resnet50_v2, resnet101_v2, resnet152_v2 = (
    preset(get_resnet, f"resnet{n}_v2", f"Residual network of {n} layers, version 2", 2, n) for n in PLANS
)


__all__ = [
    "BasicBlockV1", "BasicBlockV2", "BottleneckV1", "BottleneckV2", "ResNetV1", "ResNetV2", "get_resnet",
    "resnet101_v1", "resnet101_v2", "resnet152_v1", "resnet152_v2", "resnet18_v1", "resnet18_v2", "resnet34_v1",
    "resnet34_v2", "resnet50_v1", "resnet50_v2",
]  # fmt: skip
