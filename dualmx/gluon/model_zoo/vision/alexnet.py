"""AlexNet, in the form of "One weird trick for parallelizing convolutional neural networks" (Krizhevsky 2014)."""

from __future__ import annotations

from typing import Any

from ....context import Context
from ... import nn
from ..model_store import DEFAULT_ROOT
from .network import Network, with_pretrained


class AlexNet(Network):
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


def alexnet(pretrained: bool = False, ctx: Context | None = None, root: str = DEFAULT_ROOT, **kwargs: Any) -> AlexNet:
    """AlexNet.

    Args:
        pretrained: load trained parameters from `root`.
        ctx: where they are put; `cpu()` by default.
        root: folder of the parameter files.
        kwargs: for `AlexNet`.
    """
    return with_pretrained(AlexNet(**kwargs), pretrained, "alexnet", root, ctx)
