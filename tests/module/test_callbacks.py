"""Callbacks, monitor and checkpoints of `mx.model`; texts are those of MXNet 1.9.1."""

from __future__ import annotations

import io
import logging
import re

import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import MXNetError
from dualmx.model import BatchEndParam


def messages(caplog):
    return [r.getMessage() for r in caplog.records if r.name == "root"]


@pytest.fixture
def log(caplog):
    caplog.set_level(logging.INFO)
    return lambda: messages(caplog)


def half_right():
    metric = mx.metric.Accuracy()
    metric.update([mx.nd.array([0, 1])], [mx.nd.array([[1, 0], [0.8, 0.2]])])
    return metric


def without_speed(lines):
    return [re.sub(r"Speed: \S+ ", "Speed: # ", line) for line in lines]


@pytest.mark.parametrize(
    "auto_reset, expected",
    [
        (True, ["[0-2]\tSpeed: # samples/sec\taccuracy=0.500000", "[2-4]\tSpeed: # samples/sec\taccuracy=nan"]),
        (False, ["[0-2]\tSpeed: # samples/sec\taccuracy=0.500000", "[0-4]\tSpeed: # samples/sec\taccuracy=0.500000"]),
    ],
)
def test_speedometer(log, auto_reset, expected):
    speedometer, metric = mx.callback.Speedometer(10, 2, auto_reset), half_right()
    for epoch in range(2):
        for i in range(6):
            speedometer(BatchEndParam(epoch, i, metric, None))
    assert without_speed(log())[:2] == [f"Epoch[0] Batch {e}" for e in expected]
    assert len(log()) == 4


def test_speedometer_without_metric_and_with_several(log):
    speedometer = mx.callback.Speedometer(10, 2)
    for i in range(3):
        speedometer(BatchEndParam(0, i, None, None))
    both = mx.metric.CompositeEvalMetric([mx.metric.Accuracy(), mx.metric.MSE()])
    both.metrics[0].update([mx.nd.array([0, 1])], [mx.nd.array([[1, 0], [0.8, 0.2]])])
    both.metrics[1].update([mx.nd.array([0, 1])], [mx.nd.array([1, 0])])
    speedometer = mx.callback.Speedometer(10, 2)
    for i in range(3):
        speedometer(BatchEndParam(0, i, both, None))
    assert without_speed(log()) == [
        "Iter[0] Batch [2]\tSpeed: # samples/sec",
        "Epoch[0] Batch [0-2]\tSpeed: # samples/sec\taccuracy=0.500000\tmse=1.000000",
    ]


def test_log_train_metric_and_validation(log):
    callback = mx.callback.log_train_metric(2, True)
    metric = half_right()
    for i in range(3):
        callback(BatchEndParam(1, i, metric, None))
    callback(BatchEndParam(1, 4, None, None))
    mx.callback.LogValidationMetricsCallback()(BatchEndParam(3, 1, half_right(), None))
    mx.callback.LogValidationMetricsCallback()(BatchEndParam(3, 1, None, None))
    assert log() == [
        "Iter[1] Batch[0] Train-accuracy=0.500000",
        "Iter[1] Batch[2] Train-accuracy=nan",
        "Epoch[3] Validation-accuracy=0.500000",
    ]


def test_progress_bar(log):
    bar = mx.callback.ProgressBar(5, 10)
    for i in range(1, 6):
        bar(BatchEndParam(0, i, None, None))
    assert log() == [
        "[==--------] 20%\r", "[====------] 40%\r", "[======----] 60%\r", "[========--] 80%\r", "[==========] 100%\r",
    ]  # fmt: skip


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_redraws_one_line_on_terminals_only():
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        progress = mx.callback.Progress(10, total=4, every=0, stream=stream)
        for i in range(4):
            progress(BatchEndParam(2, i, half_right(), None))
    assert file.getvalue() == ""
    text = terminal.getvalue()
    assert "\x1b" not in text and text.count("\n") == 1 and text.endswith("\n")
    lines = text.strip("\r\n").split("\r")
    assert len(lines) == 4 and lines[1].startswith("Epoch 2  2/4 [##########----------]")
    assert lines[-1].rstrip().endswith("accuracy=0.5") and "4/4 [####################]" in lines[-1]


def test_progress_of_unknown_length_is_rare():
    terminal = Terminal()
    progress = mx.callback.Progress(10, every=1000, stream=terminal)
    for i in range(50):
        progress(BatchEndParam(0, i, None, None))
    assert terminal.getvalue().count("\r") == 1


def network():
    fc = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    return mx.sym.SoftmaxOutput(mx.sym.Activation(fc, act_type="relu", name="act"), name="softmax")


def test_do_checkpoint(log, tmp_path):
    callback = mx.callback.do_checkpoint(str(tmp_path / "chk"), 2)
    for epoch in range(4):
        callback(epoch, network(), {"fc_weight": mx.nd.ones((2, 3))}, {"m": mx.nd.ones(1)})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["chk-0002.params", "chk-0004.params", "chk-symbol.json"]
    assert log()[0] == f'Saved checkpoint to "{tmp_path}/chk-0002.params"'
    symbol, args, states = mx.model.load_checkpoint(str(tmp_path / "chk"), 2)
    assert symbol.tojson() == network().tojson()
    assert args["fc_weight"].asnumpy().tolist() == [[1, 1, 1]] * 2 and states["m"].shape == (1,)
    with pytest.raises(MXNetError, match=r"chk-0003\.params"):
        mx.model.load_checkpoint(str(tmp_path / "chk"), 3)
    mx.callback.do_checkpoint(str(tmp_path / "each"), 0)(0, network(), {}, {})
    assert (tmp_path / "each-0001.params").exists()


def test_load_params_of_any_kind(tmp_path):
    mx.nd.save(str(tmp_path / "a-0001.params"), {"w": mx.nd.ones(1), "arg:v": mx.nd.ones(1), "aux:m": mx.nd.ones(1)})
    args, states = mx.model.load_params(str(tmp_path / "a"), 1)
    assert sorted(args) == ["v", "w"] and sorted(states) == ["m"]
    mx.nd.save(str(tmp_path / "a-0002.params"), [mx.nd.ones(1)])
    with pytest.raises(TypeError, match="without names"):
        mx.model.load_params(str(tmp_path / "a"), 2)
    mx.nd.save(str(tmp_path / "a-0003.params"), {})
    assert mx.model.load_params(str(tmp_path / "a"), 3) == ({}, {})


def watched(**kwargs):
    mon = mx.monitor.Monitor(1, **kwargs)
    exe = network().simple_bind(mx.cpu(), data=(2, 3))
    for array in exe.arg_arrays:
        array[:] = 0.5
    mon.install(exe)
    mon.tic()
    exe.forward(is_train=True)
    exe.backward()
    return mon


def test_monitor_collects_outputs_then_arguments(log):
    mon = watched()
    mon.toc_print()
    lines = [line for line in log() if "backward" not in line]
    assert lines == [
        "Batch:       1 fc_output                      1.25\t",
        "Batch:       1 act_output                     1.25\t",
        "Batch:       1 softmax_output                 0.5\t",
        "Batch:       1 data                           0.5\t",
        "Batch:       1 fc_weight                      0.5\t",
        "Batch:       1 fc_bias                        0.5\t",
        "Batch:       1 softmax_label                  0.5\t",
    ]


def test_monitor_pattern_sort_statistic_and_interval():
    assert watched(pattern=".*weight").toc() == [(1, "fc_weight", "0.5\t")]
    names = [name for _, name, _ in watched(sort=True, monitor_all=True).toc()]
    assert names == sorted(names) and "fc_weight" in names
    two = watched(pattern="fc_bias", stat_func=lambda x: [x.max(), x])
    assert two.toc() == [(1, "fc_bias", "0.5\t[0.5 0.5]\t")]
    with pytest.raises(TypeError, match="stat_func"):
        watched(stat_func=lambda x: 3).toc()
    mon = mx.monitor.Monitor(2)
    assert [bool((mon.tic(), mon.activated, mon.toc())[1]) for _ in range(4)] == [True, False, True, False]


def test_default_statistic_is_norm_over_root_of_size():
    x = mx.sym.var("a") * 1
    exe = x.bind(mx.cpu(), {"a": mx.nd.array([1, 2, 3, -6])})
    mon = mx.monitor.Monitor(1, pattern="a")
    mon.install(exe)
    mon.tic()
    exe.forward()
    ((_, name, text),) = mon.toc()
    assert name == "a" and float(text) == pytest.approx(np.sqrt(50) / 2)


def test_monitor_in_fit(log):
    mod = mx.mod.Module(network())
    data = mx.io.NDArrayIter(np.ones((8, 3)), np.zeros(8), batch_size=4)
    mod.fit(data, num_epoch=1, monitor=mx.monitor.Monitor(1, pattern="fc_weight"))
    assert [line for line in log() if line.startswith("Batch:")][0].startswith("Batch:       1 fc_weight  ")
