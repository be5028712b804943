"""AlexNet, in the form of "One weird trick for parallelizing convolutional neural networks" (Krizhevsky 2014)."""

from __future__ import annotations

from typing import Any

from ....context import Context, cpu
from ... import nn
from ...hybrid import HybridBlock
from ..model_store import DEFAULT_ROOT, load_pretrained


class AlexNet(HybridBlock):
    """AlexNet for 224×224 images.

    Args:
        classes: number of outputs.
    """

    def __init__(self, classes: int = 1000, **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            with self.features.name_scope():
                for channels, kernel, stride, pad, pooled in (
                    (64, 11, 4, 2, True), (192, 5, 1, 2, True), (384, 3, 1, 1, False), (256, 3, 1, 1, False),
                    (256, 3, 1, 1, True),
                ):  # fmt: skip
                    self.features.add(nn.Conv2D(channels, kernel, stride, pad, activation="relu"))
                    if pooled:
                        self.features.add(nn.MaxPool2D(3, 2))
                self.features.add(nn.Flatten())
                for _ in range(2):
                    self.features.add(nn.Dense(4096, activation="relu"), nn.Dropout(0.5))
            self.output = nn.Dense(classes)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return class scores (N, classes) of images (N, 3, H, W)."""
        return self.output(self.features(x))


def alexnet(pretrained: bool = False, ctx: Context | None = None, root: str = DEFAULT_ROOT, **kwargs: Any) -> AlexNet:
    """AlexNet.

    Args:
        pretrained: load trained parameters from `root`.
        ctx: where they are put; `cpu()` by default.
        root: folder of the parameter files.
        kwargs: for `AlexNet`.
    """
    net = AlexNet(**kwargs)
    if pretrained:
        load_pretrained(net, "alexnet", root, ctx or cpu())
    return net
