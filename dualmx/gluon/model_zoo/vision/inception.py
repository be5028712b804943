"""Inception v3 ("Rethinking the Inception architecture for computer vision", Szegedy et al. 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....context import Context
from ... import nn
from ...contrib.nn import HybridConcurrent
from ..model_store import DEFAULT_ROOT
from .network import Network, with_pretrained

# Channels, kernel, stride, padding of one convolution.
Conv = tuple[int, Any, Any, Any]


def _one(channels: int) -> Conv:
    return (channels, 1, 1, 0)


def _row(channels: int, width: int) -> Conv:
    return (channels, (1, width), 1, (0, width // 2))


def _column(channels: int, height: int) -> Conv:
    return (channels, (height, 1), 1, (height // 2, 0))


def _square(channels: int, size: int) -> Conv:
    return (channels, size, 1, size // 2)


def _down(channels: int) -> Conv:
    return (channels, 3, 2, 0)


def _conv(channels: int, kernel: Any, stride: Any, padding: Any) -> nn.HybridSequential:
    out = nn.HybridSequential(prefix="")
    out.add(nn.Conv2D(channels, kernel, stride, padding, use_bias=False))
    out.add(nn.BatchNorm(epsilon=0.001), nn.Activation("relu"))
    return out


def _branch(*convs: Conv, pool: str = "") -> nn.HybridSequential:
    out = nn.HybridSequential(prefix="")
    if pool == "avg":
        out.add(nn.AvgPool2D(3, 1, 1))
    elif pool == "max":
        out.add(nn.MaxPool2D(3, 2))
    for conv in convs:
        out.add(_conv(*conv))
    return out


def _side_by_side(prefix: str, makers: Sequence[Any]) -> HybridConcurrent:
    """Concatenate the branches that `makers` make inside the name scope of the block."""
    out = HybridConcurrent(axis=1, prefix=prefix)
    with out.name_scope():
        for make in makers:
            out.add(make())
    return out


def _a(pooled: int, prefix: str) -> HybridConcurrent:
    return _side_by_side(prefix, [
        lambda: _branch(_one(64)), lambda: _branch(_one(48), _square(64, 5)),
        lambda: _branch(_one(64), _square(96, 3), _square(96, 3)), lambda: _branch(_one(pooled), pool="avg"),
    ])  # fmt: skip


def _b(prefix: str) -> HybridConcurrent:
    return _side_by_side(prefix, [
        lambda: _branch(_down(384)), lambda: _branch(_one(64), _square(96, 3), _down(96)),
        lambda: _branch(pool="max"),
    ])  # fmt: skip


def _c(n: int, prefix: str) -> HybridConcurrent:
    return _side_by_side(prefix, [
        lambda: _branch(_one(192)), lambda: _branch(_one(n), _row(n, 7), _column(192, 7)),
        lambda: _branch(_one(n), _column(n, 7), _row(n, 7), _column(n, 7), _row(192, 7)),
        lambda: _branch(_one(192), pool="avg"),
    ])  # fmt: skip


def _d(prefix: str) -> HybridConcurrent:
    return _side_by_side(prefix, [
        lambda: _branch(_one(192), _down(320)),
        lambda: _branch(_one(192), _row(192, 7), _column(192, 7), _down(192)), lambda: _branch(pool="max"),
    ])  # fmt: skip


def _split(*convs: Conv) -> nn.HybridSequential:
    """A branch whose end is a row and a column convolution side by side."""
    out = nn.HybridSequential(prefix="")
    out.add(_branch(*convs))
    sides = HybridConcurrent(axis=1, prefix="")
    sides.add(_branch(_row(384, 3)), _branch(_column(384, 3)))
    out.add(sides)
    return out


def _e(prefix: str) -> HybridConcurrent:
    return _side_by_side(prefix, [
        lambda: _branch(_one(320)), lambda: _split(_one(384)), lambda: _split(_one(448), _square(384, 3)),
        lambda: _branch(_one(192), pool="avg"),
    ])  # fmt: skip


class Inception3(Network):
    """Inception v3 for 299×299 images.

    Args:
        classes: number of outputs.
    """

    def __init__(self, classes: int = 1000, **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            for conv in (_down(32), (32, 3, 1, 0), _square(64, 3)):
                self.features.add(_conv(*conv))
            self.features.add(nn.MaxPool2D(3, 2))
            for conv in (_one(80), (192, 3, 1, 0)):
                self.features.add(_conv(*conv))
            self.features.add(nn.MaxPool2D(3, 2))
            self.features.add(_a(32, "A1_"), _a(64, "A2_"), _a(64, "A3_"), _b("B_"))
            self.features.add(_c(128, "C1_"), _c(160, "C2_"), _c(160, "C3_"), _c(192, "C4_"))
            self.features.add(_d("D_"), _e("E1_"), _e("E2_"), nn.AvgPool2D(8), nn.Dropout(0.5))
            self.output = nn.Dense(classes)


def inception_v3(
    pretrained: bool = False, ctx: Context | None = None, root: str = DEFAULT_ROOT, **kwargs: Any
) -> Inception3:
    """Inception v3.

    Args:
        pretrained: load trained parameters from `root`.
        ctx: where they are put; `cpu()` by default.
        root: folder of the parameter files.
        kwargs: for `Inception3`.
    """
    return with_pretrained(Inception3(**kwargs), pretrained, "inceptionv3", root, ctx)
