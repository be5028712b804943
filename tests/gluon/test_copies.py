"""Blocks that are copied, or pickled for another process: weights travel, what holds in one process does not."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx import keras
from tests import jobs

X = mx.nd.array(np.random.RandomState(0).rand(4, 3, 8, 8))


def dense() -> Any:
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(5, activation="relu"), mx.gluon.nn.Dropout(0.5), mx.gluon.nn.Dense(2))
    return net


def convolutions() -> Any:
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Conv2D(4, 3, activation="relu"), mx.gluon.nn.BatchNorm(), mx.gluon.nn.MaxPool2D(2))
    return net


def symbol() -> Any:
    data = mx.sym.var("data")
    return mx.gluon.SymbolBlock(mx.sym.FullyConnected(data, num_hidden=3, name="fc"), data)


def outputs(net: Any) -> np.ndarray:
    return net(X).asnumpy()


def trained(net: Any) -> list[np.ndarray]:
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore=None)
    for _ in range(2):
        with mx.autograd.record(train_mode=False):
            loss = (net(X) ** 2).mean()
        loss.backward()
        trainer.step(1)
    return [p.data().asnumpy() for p in net.collect_params().values()]


@pytest.mark.usefixtures("one_tier")
@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("make", [dense, convolutions, symbol])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))], ids=["copy", "pickle"])
def test_copies_compute_and_learn_the_same_by_themselves(make: Any, copied: Any, hybrid: bool) -> None:
    net = make()
    net.initialize()
    net.hybridize(hybrid)
    before = outputs(net)
    trained(net)  # so that there are gradients, a Trainer and programs
    learnt = outputs(net)
    other = copied(net)
    np.testing.assert_array_equal(outputs(other), learnt)
    assert np.abs(learnt - before).max() > 0
    after = trained(other)
    np.testing.assert_array_equal(outputs(net), learnt)
    for a, b in zip(after, trained(net), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)


def test_copies_before_the_first_batch() -> None:
    net = dense()
    assert [p.is_initialized for p in copy.deepcopy(net).collect_params().values()] == [False] * 4
    net.initialize(mx.init.One())
    other = pickle.loads(pickle.dumps(net))
    assert outputs(other).shape == (4, 2)
    with pytest.raises(
        mx.gluon.parameter.DeferredInitializationError,
        match="shape .* is not fully known and initialization was deferred.*Pass one batch",
    ):
        net[0].weight.data()


def test_shared_parameters_stay_shared_and_settings_stay_settings() -> None:
    first = mx.gluon.nn.Dense(3, in_units=3, flatten=False)
    second = mx.gluon.nn.Dense(3, in_units=3, params=first.params, flatten=False)
    net = mx.gluon.nn.HybridSequential()
    net.add(first, second, mx.gluon.nn.LeakyReLU(0.5))
    net.initialize()
    other = copy.deepcopy(net)
    other[0].weight.set_data(mx.nd.zeros((3, 3)))
    assert other[1].weight.data().asnumpy().tolist() == np.zeros((3, 3)).tolist()
    assert net[1].weight.data().asnumpy().any()
    other[0]._kwargs["no_bias"] = True  # binds the call of the copy anew, and of it alone
    assert other[0]._call.params["no_bias"] and not net[0]._call.params["no_bias"]


def test_several_contexts() -> None:
    net = mx.gluon.nn.Dense(2, in_units=3)
    net.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    other = copy.deepcopy(net)
    assert other.weight.list_ctx() == [mx.cpu(0), mx.cpu(1)]
    np.testing.assert_array_equal(other.weight.data(mx.cpu(1)).asnumpy(), net.weight.data(mx.cpu(0)).asnumpy())


def test_compiled_models_of_keras_are_compiled_anew() -> None:
    model = keras.Sequential([keras.layers.Dense(4, activation="relu", input_shape=(3,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    rows = np.ones((8, 3), "float32")
    model.fit(rows, np.ones(8), verbose=0)
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(other.predict(rows), model.predict(rows))
    with pytest.raises(mx.MXNetError, match="not compiled"):
        other.fit(rows, np.ones(8))


@pytest.mark.slow
@pytest.mark.parametrize("make", [convolutions, lambda: mx.gluon.rnn.LSTM(4)], ids=["convolutions", "recurrent"])
def test_another_process(make: Any, tmp_path: Path) -> None:
    net = make()
    x = X if make is convolutions else X.reshape((4, 3, 64))
    net.initialize()
    net.hybridize()
    out = net(x).asnumpy()
    (tmp_path / "net").write_bytes(pickle.dumps((net, x)))
    code = "import pickle, numpy; net, x = pickle.load(open('net', 'rb')); numpy.save('out', net(x).asnumpy())"
    jobs.run(jobs.PYTHON, "-c", code, cwd=tmp_path)
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), out, rtol=1e-5, atol=1e-6)
