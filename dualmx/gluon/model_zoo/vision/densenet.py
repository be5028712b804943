"""DenseNet ("Densely connected convolutional networks", Huang et al. 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....context import Context
from ... import nn
from ...contrib.nn import HybridConcurrent, Identity
from ..model_store import DEFAULT_ROOT
from .network import Network, preset, with_pretrained

# By depth: channels of the first convolution, channels each layer adds, layers per stage.
PLANS = {
    121: (64, 32, (6, 12, 24, 16)), 161: (96, 48, (6, 12, 36, 24)), 169: (64, 32, (6, 12, 32, 32)),
    201: (64, 32, (6, 12, 48, 32)),
}  # fmt: skip


def _layer(growth: int, bottleneck: int, dropout: float) -> HybridConcurrent:
    """Concatenate the input with `growth` new channels computed from it."""
    made = nn.HybridSequential(prefix="")
    made.add(nn.BatchNorm(), nn.Activation("relu"), nn.Conv2D(bottleneck * growth, 1, use_bias=False))
    made.add(nn.BatchNorm(), nn.Activation("relu"), nn.Conv2D(growth, 3, padding=1, use_bias=False))
    if dropout:
        made.add(nn.Dropout(dropout))
    out = HybridConcurrent(axis=1, prefix="")
    out.add(Identity(), made)
    return out


class DenseNet(Network):
    """DenseNet for 224×224 images.

    Args:
        num_init_features: channels of the first convolution.
        growth_rate: channels that each layer adds.
        block_config: layers per stage.
        bn_size: width of the bottleneck, in multiples of `growth_rate`.
        dropout: rate after each layer.
        classes: number of outputs.
    """

    def __init__(
        self, num_init_features: int, growth_rate: int, block_config: Sequence[int], bn_size: int = 4,
        dropout: float = 0, classes: int = 1000, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            self.features.add(nn.Conv2D(num_init_features, 7, 2, 3, use_bias=False))
            self.features.add(nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(3, 2, 1))
            channels = num_init_features
            for i, count in enumerate(block_config):
                stage = nn.HybridSequential(prefix=f"stage{i + 1}_")
                with stage.name_scope():
                    for _ in range(count):
                        stage.add(_layer(growth_rate, bn_size, dropout))
                self.features.add(stage)
                channels += count * growth_rate
                if i + 1 < len(block_config):
                    channels //= 2
                    self.features.add(self._transition(channels))
            self.features.add(nn.BatchNorm(), nn.Activation("relu"), nn.AvgPool2D(7), nn.Flatten())
            self.output = nn.Dense(classes)

    @staticmethod
    def _transition(channels: int) -> nn.HybridSequential:
        out = nn.HybridSequential(prefix="")
        out.add(nn.BatchNorm(), nn.Activation("relu"), nn.Conv2D(channels, 1, use_bias=False), nn.AvgPool2D(2, 2))
        return out


def get_densenet(
    num_layers: int, pretrained: bool = False, ctx: Context | None = None, root: str = DEFAULT_ROOT, **kwargs: Any
) -> DenseNet:
    """DenseNet of 121, 161, 169 or 201 layers.

    Args:
        num_layers: how deep.
        pretrained: load trained parameters from `root`.
        ctx: where they are put; `cpu()` by default.
        root: folder of the parameter files.
        kwargs: for `DenseNet`.
    """
    return with_pretrained(DenseNet(*PLANS[num_layers], **kwargs), pretrained, f"densenet{num_layers}", root, ctx)


densenet121, densenet161, densenet169, densenet201 = (
    preset(get_densenet, f"densenet{n}", f"DenseNet of {n} layers", n) for n in PLANS
)


__all__ = ["DenseNet", "densenet121", "densenet161", "densenet169", "densenet201", "get_densenet"]
