"""VGG ("Very deep convolutional networks for large-scale image recognition", Simonyan and Zisserman 2014)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....context import Context
from ....core.errors import ArgumentError
from ....initializer import Xavier
from ... import nn
from ..model_store import DEFAULT_ROOT
from .network import Network, preset, with_pretrained

FILTERS = (64, 128, 256, 512, 512)
LAYERS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


class VGG(Network):
    """VGG for 224×224 images.

    Args:
        layers: convolutions per stage.
        filters: their channels.
        classes: number of outputs.
        batch_norm: normalize after every convolution.
    """

    def __init__(
        self, layers: Sequence[int], filters: Sequence[int], classes: int = 1000, batch_norm: bool = False,
        **kwargs: Any,
    ):  # fmt: skip
        super().__init__(**kwargs)
        if len(layers) != len(filters):
            raise ArgumentError(f"VGG: {len(layers)} layers, {len(filters)} filters: expected equally many")
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            with self.features.name_scope():
                for count, channels in zip(layers, filters, strict=True):
                    for _ in range(count):
                        start = Xavier(rnd_type="gaussian", factor_type="out", magnitude=2)
                        self.features.add(
                            nn.Conv2D(channels, 3, padding=1, weight_initializer=start, bias_initializer="zeros")
                        )
                        if batch_norm:
                            self.features.add(nn.BatchNorm())
                        self.features.add(nn.Activation("relu"))
                    self.features.add(nn.MaxPool2D(strides=2))
                for _ in range(2):
                    self.features.add(
                        nn.Dense(4096, activation="relu", weight_initializer="normal", bias_initializer="zeros"),
                        nn.Dropout(rate=0.5),
                    )
            self.output = nn.Dense(classes, weight_initializer="normal", bias_initializer="zeros")


def get_vgg(
    num_layers: int, pretrained: bool = False, ctx: Context | None = None, root: str = DEFAULT_ROOT, **kwargs: Any
) -> VGG:
    """VGG of 11, 13, 16 or 19 layers.

    Args:
        num_layers: how deep.
        pretrained: load trained parameters from `root`.
        ctx: where they are put; `cpu()` by default.
        root: folder of the parameter files.
        kwargs: for `VGG`.

    Raises:
        ArgumentError: another depth.
    """
    if num_layers not in LAYERS:
        raise ArgumentError(f"get_vgg: num_layers={num_layers}: expected one of {sorted(LAYERS)}")
    name = f"vgg{num_layers}_bn" if kwargs.get("batch_norm") else f"vgg{num_layers}"
    return with_pretrained(VGG(LAYERS[num_layers], FILTERS, **kwargs), pretrained, name, root, ctx)


vgg11, vgg13, vgg16, vgg19 = (preset(get_vgg, f"vgg{n}", f"VGG of {n} layers", n) for n in LAYERS)
vgg11_bn, vgg13_bn, vgg16_bn, vgg19_bn = (
    preset(get_vgg, f"vgg{n}_bn", f"VGG of {n} layers with batch normalization", n, batch_norm=True) for n in LAYERS
)


__all__ = ["VGG", "get_vgg", "vgg11", "vgg11_bn", "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19", "vgg19_bn"]
