"""Deformable convolution layers: names, order and shapes of parameters, values of MXNet."""

from __future__ import annotations

import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import ArgumentError
from dualmx.gluon.contrib import cnn

CASES = [
    (
        cnn.DeformableConvolution,
        dict(kernel_size=(3, 3), padding=(1, 1), strides=(2, 2), num_deformable_group=2, activation="relu"),
        {"offset_weight": (36, 4, 3, 3), "offset_bias": (36,), "deformable_conv_weight": (4, 4, 3, 3),
         "deformable_conv_bias": (4,)},
        (1, 4, 3, 3), 47.7523,
    ),
    (
        cnn.ModulatedDeformableConvolution,
        dict(kernel_size=(3, 2), use_bias=False, groups=2),
        {"deformable_conv_weight": (4, 2, 3, 2), "offset_weight": (18, 2, 3, 2), "offset_bias": (18,)},
        (1, 4, 4, 4), 7.7277,
    ),
    (
        cnn.DeformableConvolution,
        dict(offset_use_bias=False, use_bias=False, in_channels=4),
        {"offset_weight": (2, 4, 1, 1), "deformable_conv_weight": (4, 4, 1, 1)},
        (1, 4, 6, 5), 6.4991,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("layer", "options", "shapes", "out", "total"), CASES)
def test_layers(layer, options, shapes, out, total):
    net, x = layer(4, **options), mx.nd.array(np.random.RandomState(0).rand(1, 4, 6, 5))
    net.initialize()
    net(x)
    params = net.collect_params()
    assert {k[len(net.prefix) :]: p.shape for k, p in params.items()} == shapes
    assert [k[len(net.prefix) :] for k in params] == list(shapes)
    for i, p in enumerate(params.values()):
        p.set_data(mx.nd.array(np.linspace(-0.3, 0.4, int(np.prod(p.shape))).reshape(p.shape) * (i + 1) / 3))
    for active in (False, True):
        net.hybridize(active)
        y = net(x)
        assert y.shape == out and abs(y.sum().asscalar() - total) < 2e-4


def test_bad_arguments():
    with pytest.raises(ArgumentError, match="layout"):
        cnn.DeformableConvolution(4, layout="NHWC")
    with pytest.raises(ArgumentError, match="two numbers"):
        cnn.DeformableConvolution(4, kernel_size=(3,))
    assert "kernel_size=(3, 3), stride=(1, 1), groups=2" in repr(cnn.DeformableConvolution(4, 3, groups=2))
