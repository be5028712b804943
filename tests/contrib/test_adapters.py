"""Older autograd functions, data loaders as iterators, variance-reduced gradients, aliases."""

from __future__ import annotations

import numpy as np
import pytest

import dualmx as mx
from dualmx import nd
from dualmx.contrib import autograd as old
from dualmx.contrib.io import DataLoaderIter
from dualmx.contrib.svrg_optimization import SVRGModule
from dualmx.contrib.tensorboard import LogMetricsCallback


def test_grad_and_loss() -> None:
    x, y = nd.array([1, 2]), nd.array([3, 4])
    grads, loss = old.grad_and_loss(lambda a, b: a * a * b)(x, y)
    assert [g.asnumpy().tolist() for g in grads] == [[6, 16], [1, 4]] and loss.asnumpy().tolist() == [3, 16]
    (only,) = old.grad(lambda a, b: a * a * b, argnum=1)(x, y)
    assert only.asnumpy().tolist() == [1, 4]
    (both,), losses = old.grad_and_loss(lambda a: [a * 2, a * 3])(x)
    assert both.asnumpy().tolist() == [5, 5] and len(losses) == 2


def test_sections() -> None:
    assert old.set_is_training(True) is False and old.set_is_training(False) is True
    with old.train_section():
        assert mx.autograd.is_recording() and mx.autograd.is_training()
        with old.test_section():
            assert not mx.autograd.is_recording() and not mx.autograd.is_training()
        assert mx.autograd.is_recording()
    assert not mx.autograd.is_recording()


def test_loader_as_iterator() -> None:
    rows = np.arange(10, dtype="float32").reshape(5, 2)
    loader = mx.gluon.data.DataLoader(mx.gluon.data.ArrayDataset(rows, np.arange(5)), 2)
    iterator = DataLoaderIter(loader)
    assert iterator.provide_data == [("data", (2, 2))] and iterator.provide_label == [("softmax_label", (2,))]
    for _ in range(2):
        batches = list(iterator)
        assert [b.pad for b in batches] == [0, 0, 1]
        assert batches[2].data[0].asnumpy().tolist() == [[8, 9], [0, 0]]
        assert batches[0].label[0].dtype == np.float32
        iterator.reset()


def regression() -> tuple[mx.Symbol, mx.io.NDArrayIter]:
    draw = np.random.RandomState(0)
    x = draw.randn(12, 3).astype("float32")
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="fc")
    net = mx.sym.LinearRegressionOutput(net, mx.sym.var("lin_label"), name="lin")
    return net, mx.io.NDArrayIter(x, (x @ [1, 2, 3] + 0.5).astype("float32"), batch_size=4, label_name="lin_label")


def test_variance_reduced_gradients() -> None:
    net, data = regression()
    module = SVRGModule(net, label_names=["lin_label"], update_freq=2)
    sgd = {"learning_rate": 0.05}
    module.fit(data, num_epoch=4, eval_metric="mse", optimizer_params=sgd, initializer=mx.init.One())
    x, y = data.data[0][1].asnumpy(), data.label[0][1].asnumpy()

    def gradient(rows: slice, w: np.ndarray) -> np.ndarray:
        inputs = np.c_[x[rows], np.ones(4)]
        return inputs.T @ (inputs @ w - y[rows])

    batches = [slice(i, i + 4) for i in (0, 4, 8)]
    w, before, mean = np.array([1.0, 1, 1, 0]), np.zeros(4), np.zeros(4)
    for epoch in range(4):
        if epoch % 2 == 0:
            before, mean = w, np.mean([gradient(b, w) for b in batches], axis=0)
        for b in batches:
            w = w - 0.05 / 4 * (gradient(b, w) - gradient(b, before) + mean)
    found = module.get_params()[0]
    np.testing.assert_allclose(np.r_[found["fc_weight"].asnumpy()[0], found["fc_bias"].asnumpy()], w, rtol=1e-4)
    for wrong, error in ((None, TypeError), ("a", TypeError), (0, ValueError)):
        with pytest.raises(error, match="update_freq"):
            SVRGModule(net, update_freq=wrong)


def test_operators_have_a_second_name() -> None:
    assert mx.contrib.nd.quadratic is nd.contrib.quadratic
    assert mx.contrib.symbol.quadratic is mx.sym.contrib.quadratic


def test_tensorboard_says_what_it_needs(monkeypatch, tmp_path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tensorboardX", None)
    monkeypatch.setitem(__import__("sys").modules, "mxboard", None)
    with pytest.raises(mx.MXNetError, match="tensorboardX"):
        LogMetricsCallback(str(tmp_path))
