"""The Estimator: what it logs, counts, saves, stops and evaluates, as MXNet's."""

from __future__ import annotations

import logging
import re

import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import ArgumentError
from dualmx.gluon.contrib import estimator as est


class Lines(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record):
        self.lines.append(re.sub(r"\d+\.\d+", "#", record.getMessage()))


def made(batch_size=4, metrics=None, hybridize=False, **kwargs):
    rng = np.random.RandomState(0)
    y = np.arange(12) % 2
    x = rng.rand(12, 3) * 0.1 + y.reshape(-1, 1)
    data = mx.gluon.data.DataLoader(mx.gluon.data.ArrayDataset(mx.nd.array(x), mx.nd.array(y)), batch_size=batch_size)
    net = mx.gluon.nn.Dense(2)
    net.initialize(mx.init.Xavier())
    if hybridize:
        net.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    made = est.Estimator(net, loss, train_metrics=metrics, trainer=trainer, context=mx.cpu(), **kwargs)
    made.logger.handlers.clear()
    log = Lines()
    made.logger.addHandler(log)
    return made, data, log.lines


def test_default_metrics_and_training():
    e, data, lines = made()
    assert [m.name for m in e.train_metrics] == ["training accuracy", "training softmaxcrossentropyloss"]
    assert [m.name for m in e.val_metrics] == ["validation accuracy", "validation softmaxcrossentropyloss"]
    e.fit(data, val_data=data, epochs=8)
    assert e.train_metrics[0].get()[1] == e.val_metrics[0].get()[1] == 1
    assert lines[:4] == [
        "Training begin: using optimizer SGD with current learning rate # ",
        "Train for 8 epochs.",
        "[Epoch 0] Begin, current learning rate: #",
        "Validation Begin",
    ]
    assert lines[4] == "[Epoch 0] Finished in #s, validation accuracy: #, validation softmaxcrossentropyloss: #"
    assert lines[-1].startswith("Train finished using total ") and "with 8 epochs. training accuracy: #" in lines[-1]
    assert e.evaluate(data) is None


def test_batches_end_training_and_lines_come_by_interval():
    e, data, lines = made()
    e.fit(data, batches=4, event_handlers=[est.LoggingHandler(2, metrics=e.train_metrics[:1])])
    batches = [line for line in lines if "Batch" in line]
    assert [line[:31] for line in batches] == [
        "[Epoch 0][Batch 0][Samples 4] t", "[Epoch 0][Batch 2][Samples 12] ", "[Epoch 1][Batch 0][Samples 16] ",
    ]  # fmt: skip
    assert "Train for 4 batches." in lines and batches[0].endswith("time/interval: #s training accuracy: #")


def test_moments_and_order_of_handlers():
    seen = []

    class Watch(est.TrainBegin, est.EpochBegin, est.BatchBegin, est.BatchEnd, est.EpochEnd, est.TrainEnd):
        def __getattribute__(self, name):
            if name in ("train_begin", "epoch_begin", "batch_begin", "batch_end", "epoch_end", "train_end"):
                return lambda *args, **kwargs: seen.append((name, sorted(kwargs)))
            return super().__getattribute__(name)

    e, data, _ = made(batch_size=12)
    e.fit(data, epochs=1, event_handlers=Watch())
    assert seen == [
        ("train_begin", []), ("epoch_begin", []), ("batch_begin", ["batch"]),
        ("batch_end", ["batch", "label", "loss", "pred"]), ("epoch_end", []), ("train_end", []),
    ]  # fmt: skip


def test_checkpoints_and_resuming(tmp_path):
    e, data, lines = made(hybridize=True)
    best = dict(monitor=e.val_metrics[1], save_best=True, verbose=1, max_checkpoints=2)
    e.fit(data, val_data=data, epochs=3, event_handlers=[est.CheckpointHandler(str(tmp_path), "m", **best)])
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == [
        "m-best.params", "m-best.states", "m-epoch1batch6.params", "m-epoch1batch6.states", "m-epoch2batch9.params",
        "m-epoch2batch9.states", "m-symbol.json",
    ]  # fmt: skip
    assert any("improved from inf to #, updating best model" in line for line in lines)
    weight = e.net.weight.data().asnumpy()
    again, data, lines = made()
    resume = est.CheckpointHandler(str(tmp_path), "m", resume_from_checkpoint=True)
    again.fit(data, epochs=4, event_handlers=[resume])
    assert "Checkpoint resumed from epoch 2 batch 9, continue to train for 1 epochs" in lines[0]
    assert (tmp_path / "m-epoch3batch12.params").exists()
    assert abs(again.net.weight.data().asnumpy() - weight).max() < 1
    with pytest.raises(mx.MXNetError, match="fit asks for 4"):
        again.fit(data, epochs=4, event_handlers=[resume])


def test_early_stopping():
    e, data, lines = made(metrics=mx.metric.Accuracy())
    stop = est.EarlyStoppingHandler(e.train_metrics[0], min_delta=10, patience=2)
    e.fit(data, epochs=9, event_handlers=[stop])
    assert stop.stopped_epoch == 2 and "[Epoch 2] EarlyStoppingHandler: " in lines[-2] + lines[-1]


def test_processors_and_validation_networks():
    class Halves(est.BatchProcessor):
        def fit_batch(self, estimator, train_batch, batch_axis=0):
            return super().fit_batch(estimator, [a[:2] for a in train_batch], batch_axis)

    net = mx.gluon.nn.Dense(2)
    net.initialize(mx.init.Zero())
    e, data, _ = made(batch_processor=Halves(), val_net=net)
    e.fit(data, epochs=1)
    assert e.train_metrics[0].num_inst == 6
    e.evaluate(data)
    assert e.val_metrics[0].get()[1] == 0.5


def test_bad_arguments():
    e, data, _ = made()
    loss = mx.gluon.loss.L2Loss()
    for call, text in (
        (lambda: e.fit(data), "expected one of them"),
        (lambda: e.fit(data, epochs=1, batches=2), "expected one of them"),
        (lambda: e.fit([1], epochs=1), "DataLoader"),
        (lambda: e.evaluate(3), "DataLoader"),
        (lambda: e.fit(data, epochs=1, event_handlers=[3]), "EventHandler"),
        (lambda: est.Estimator(e.net, 3), "gluon.loss.Loss"),
        (lambda: est.Estimator(e.net, loss, train_metrics=[3]), "EvalMetric"),
        (lambda: est.Estimator(e.net, loss, trainer=3), "Trainer"),
        (lambda: est.Estimator(e.net, loss, context="cpu"), "Context"),
        (lambda: est.CheckpointHandler(".", save_best=True), "monitor"),
        (lambda: est.EarlyStoppingHandler(3), "monitor"),
        (lambda: est.EarlyStoppingHandler(e.train_metrics[0], mode="up"), "mode"),
        (lambda: est.LoggingHandler(0), "log_interval"),
    ):
        with pytest.raises(ArgumentError, match=text):
            call()
