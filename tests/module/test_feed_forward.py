"""`FeedForward`, the interface that came before modules; expected texts and shapes are those of MXNet 1.9.1."""

from __future__ import annotations

import logging
import re

import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import MXNetError
from dualmx.model import FeedForward

X = np.random.RandomState(0).randn(20, 3).astype("float32")
Y = (X[:, 0] > 0).astype("float32")


def network():
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="a"), name="softmax")


def test_fit_logs_and_learns(caplog):
    caplog.set_level(logging.INFO)
    np.random.seed(0)
    model = FeedForward(network(), num_epoch=20, learning_rate=0.5, momentum=0.9, numpy_batch_size=4)
    model.fit(X, Y, eval_data=(X, Y), batch_end_callback=mx.callback.Speedometer(4, 2))
    lines = [re.sub(r"[\d.]+ samples|=[\d.]+", "#", r.getMessage()) for r in caplog.records if r.name == "root"]
    assert lines[:6] == [
        "Start training with [cpu(0)]",
        "Epoch[0] Batch [0-2]\tSpeed: #/sec\taccuracy#",
        "Epoch[0] Batch [2-4]\tSpeed: #/sec\taccuracy#",
        "Epoch[0] Resetting Data Iterator",
        "Epoch[0] Time cost#",
        "Epoch[0] Validation-accuracy#",
    ]
    assert sorted(model.arg_params) == ["a_bias", "a_weight"]
    assert model.score(mx.io.NDArrayIter(X, Y, batch_size=4)) > 0.9


@pytest.mark.usefixtures("xla_tier")  # bits of programs that ran a different number of times
def test_predict_save_and_load(tmp_path):
    model = FeedForward.create(network(), X, Y, num_epoch=1, learning_rate=0.1)
    out = model.predict(X)
    assert isinstance(out, np.ndarray) and out.shape == (20, 2)
    out, data, label = model.predict(mx.io.NDArrayIter(X, Y, batch_size=6), return_data=True)
    assert out.shape == (20, 2) and np.array_equal(data, X) and np.array_equal(label, Y)
    model.save(str(tmp_path / "ff"))
    again = FeedForward.load(str(tmp_path / "ff"), 1)
    assert again.begin_epoch == 1 and np.array_equal(again.predict(X), model.predict(X))


def test_epoch_size_and_errors():
    seen = []
    model = FeedForward(network(), num_epoch=3, epoch_size=2, learning_rate=0.1)
    model.fit(mx.io.NDArrayIter(X, Y, batch_size=4), batch_end_callback=lambda p: seen.append((p.epoch, p.nbatch)))
    assert seen == [(e, b) for e in range(3) for b in (1, 2)]  # from 1 on, other than those of Module.fit
    with pytest.raises(ValueError, match="num_epoch"):
        FeedForward(network()).fit(X, Y)
    with pytest.raises(ValueError, match="y is missing"):
        FeedForward(network(), num_epoch=1).fit(X)
    with pytest.raises(MXNetError, match="no parameters"):
        FeedForward(network(), num_epoch=1).predict(X)


class Counted(mx.io.NDArrayIter):
    """Notes when it is reset and when it is asked."""

    def __init__(self, *args, **kwargs):
        self.events = []
        super().__init__(*args, **kwargs)

    def reset(self):
        self.events.append("reset")
        super().reset()

    def next(self):
        batch = super().next()
        self.events.append("batch")
        return batch


def test_the_iterator_is_reset_before_the_first_epoch():
    data = Counted(X, Y, batch_size=10)
    assert data.events == ["reset"]  # made, as in MXNet
    data.events.clear()
    FeedForward(network(), num_epoch=1, learning_rate=0.1).fit(data)
    assert data.events == ["reset", "batch", "batch", "reset"]


def test_evaluation_resets_before_and_after():
    data = Counted(X, Y, batch_size=10)
    data.events.clear()
    FeedForward(network(), num_epoch=2, learning_rate=0.1).fit(mx.io.NDArrayIter(X, Y, batch_size=10), eval_data=data)
    assert data.events == ["reset", "batch", "batch", "reset"] * 2


def test_arrays_of_evaluation_draw_orders_as_in_mxnet(monkeypatch):
    sizes, shuffle = [], np.random.shuffle
    monkeypatch.setattr(np.random, "shuffle", lambda x: (sizes.append(len(x)), shuffle(x))[1])
    for pair in ((X[:7], Y[:7]), [X[:7].tolist(), Y[:7].tolist()]):
        sizes.clear()
        FeedForward(network(), num_epoch=2, numpy_batch_size=4).fit(X, Y, eval_data=pair)
        assert sizes == [20, 7, 20, 20, 7, 7, 20, 7, 7]


def test_labels_may_be_a_column():
    columns = FeedForward(network(), num_epoch=1, numpy_batch_size=10, initializer=mx.init.One())
    flat = FeedForward(network(), num_epoch=1, numpy_batch_size=10, initializer=mx.init.One())
    for model, labels in ((columns, Y.reshape(-1, 1)), (flat, Y)):
        np.random.seed(0)
        model.fit(X, labels)
    np.testing.assert_allclose(columns.arg_params["a_weight"].asnumpy(), flat.arg_params["a_weight"].asnumpy(), 1e-6)


@pytest.mark.parametrize("wrong", [(X,), (X, Y, Y), X, 3])
def test_evaluation_needs_an_iterator_or_a_pair(wrong):
    with pytest.raises(TypeError, match="eval_data") as error:
        FeedForward(network(), num_epoch=1).fit(X, Y, eval_data=wrong)
    assert isinstance(error.value, MXNetError)
