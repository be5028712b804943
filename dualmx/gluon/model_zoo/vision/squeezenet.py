"""SqueezeNet ("AlexNet-level accuracy with 50x fewer parameters", Iandola et al. 2016)."""

from __future__ import annotations

from typing import Any

from ....context import Context
from ....core.errors import ArgumentError
from ... import nn
from ...contrib.nn import HybridConcurrent
from ..model_store import DEFAULT_ROOT
from .network import Network, preset, with_pretrained

# First convolution (channels, kernel), then "pool" or the width of the next fire module.
PLANS: dict[str, tuple[int, int, tuple[Any, ...]]] = {
    "1.0": (96, 7, ("pool", 16, 16, 32, "pool", 32, 48, 48, 64, "pool", 64)),
    "1.1": (64, 3, ("pool", 16, 16, "pool", 32, 32, "pool", 48, 48, 64, 64)),
}


def _conv(channels: int, kernel: int, padding: int = 0) -> nn.HybridSequential:
    out = nn.HybridSequential(prefix="")
    out.add(nn.Conv2D(channels, kernel, padding=padding), nn.Activation("relu"))
    return out


def _fire(squeezed: int) -> nn.HybridSequential:
    """Squeeze to few channels, expand by 1×1 and 3×3 convolutions side by side."""
    out = nn.HybridSequential(prefix="")
    out.add(_conv(squeezed, 1))
    sides = HybridConcurrent(axis=1, prefix="")
    sides.add(_conv(4 * squeezed, 1), _conv(4 * squeezed, 3, 1))
    out.add(sides)
    return out


class SqueezeNet(Network):
    """SqueezeNet for 224×224 images.

    Args:
        version: `"1.0"` or `"1.1"`.
        classes: number of outputs.

    Raises:
        ArgumentError: another version.
    """

    def __init__(self, version: str, classes: int = 1000, **kwargs: Any):
        super().__init__(**kwargs)
        if version not in PLANS:
            raise ArgumentError(f"SqueezeNet: version={version!r}: expected one of {sorted(PLANS)}")
        channels, kernel, plan = PLANS[version]
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            with self.features.name_scope():
                self.features.add(nn.Conv2D(channels, kernel, 2), nn.Activation("relu"))
                for part in plan:
                    self.features.add(nn.MaxPool2D(3, 2, ceil_mode=True) if part == "pool" else _fire(part))
                self.features.add(nn.Dropout(0.5))
            self.output = nn.HybridSequential(prefix="")
            with self.output.name_scope():
                self.output.add(nn.Conv2D(classes, 1), nn.Activation("relu"), nn.AvgPool2D(13), nn.Flatten())


def get_squeezenet(
    version: str, pretrained: bool = False, ctx: Context | None = None, root: str = DEFAULT_ROOT, **kwargs: Any
) -> SqueezeNet:
    """SqueezeNet 1.0 or 1.1.

    Args:
        version: `"1.0"` or `"1.1"`.
        pretrained: load trained parameters from `root`.
        ctx: where they are put; `cpu()` by default.
        root: folder of the parameter files.
        kwargs: for `SqueezeNet`.
    """
    return with_pretrained(SqueezeNet(version, **kwargs), pretrained, f"squeezenet{version}", root, ctx)


squeezenet1_0 = preset(get_squeezenet, "squeezenet1_0", "SqueezeNet 1.0", "1.0")
squeezenet1_1 = preset(get_squeezenet, "squeezenet1_1", "SqueezeNet 1.1, which computes 2.4 times less", "1.1")


__all__ = ["SqueezeNet", "get_squeezenet", "squeezenet1_0", "squeezenet1_1"]
