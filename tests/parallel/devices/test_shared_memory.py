"""Arrays of several devices whose memory other libraries see."""

from __future__ import annotations

import numpy as np
import pytest

import dualmx as mx
from dualmx import autograd, nd

X = np.arange(12).reshape(4, 3) / 10


def train(shared: str, update_on_kvstore: bool | None) -> list[np.ndarray]:
    mx.random.seed(0)
    contexts = [mx.cpu(0), mx.cpu(1)]
    net = mx.gluon.nn.Dense(2, in_units=3)
    net.initialize(mx.init.Normal(0.5), ctx=contexts)
    settings = {"learning_rate": 0.05, "momentum": 0.9}
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", settings, update_on_kvstore=update_on_kvstore)
    weights, grads = net.weight.list_data(), net.weight.list_grad()
    weight = np.from_dlpack(weights[0]) if "weight" in shared else None
    grad = np.from_dlpack(grads[1]) if "grad" in shared else None
    for _ in range(3):
        with autograd.record():
            losses = [(net(x) ** 2).sum() for x in mx.gluon.utils.split_and_load(nd.array(X), contexts)]
        autograd.backward(losses)
        trainer.step(4)
        assert weight is None or np.array_equal(weight, weights[0].asnumpy())
        assert grad is None or np.array_equal(grad, grads[1].asnumpy())
    found = [w.asnumpy() for w in weights]
    net.weight.set_data(nd.ones((2, 3)))
    net.weight.zero_grad()
    assert weight is None or (weight == 1).all()
    assert grad is None or not grad.any()
    return found


@pytest.mark.parametrize("update_on_kvstore", [None, False])
@pytest.mark.parametrize("shared", ["weight", "grad", "weight and grad"])
def test_training_on_devices_is_the_same(shared: str, update_on_kvstore: bool | None) -> None:
    np.testing.assert_array_equal(train(shared, update_on_kvstore), train("", update_on_kvstore))
