"""A mesh over two real processes: each holds its part of the model."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import dualmx as mx
from tests import jobs

COMMAND = [*jobs.launcher(2), jobs.PYTHON, Path(__file__).parent / "jobs" / "mesh.py"]


@pytest.mark.slow
def test_the_same_numbers_as_in_one_process(tmp_path: Path) -> None:
    jobs.run(*COMMAND, tmp_path, "small")
    with np.load(tmp_path / "0.npz") as one, np.load(tmp_path / "1.npz") as two:
        assert all(one[k].tobytes() == two[k].tobytes() for k in one.files)
        got = [one[k] for k in one.files if k.startswith("arr_")]
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(8, activation="tanh", in_units=5), mx.gluon.nn.Dense(2, in_units=8))
    net.cast("float64")
    net.initialize()
    values = np.random.RandomState(1)
    for p in net.collect_params().values():
        p.set_data(mx.nd.array(values.randn(*p.shape), dtype="float64"))
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
    data = np.random.RandomState(0)
    x, y = (mx.nd.array(data.randn(8, n), dtype="float64") for n in (5, 2))
    for _ in range(3):
        with mx.autograd.record():
            loss = ((net(x) - y) ** 2).sum()
        loss.backward()
        trainer.step(8)
    for a, p in zip(got, net.collect_params().values(), strict=True):
        np.testing.assert_allclose(a, p.data().asnumpy(), rtol=1e-12, atol=1e-14)
    for rank in (0, 1):  # each wrote whole parameters
        net.load_parameters(str(tmp_path / f"{rank}.params"))
        assert net[0].weight.data().asnumpy().tobytes() == got[0].tobytes()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")
def test_a_model_that_no_process_can_hold(tmp_path: Path) -> None:
    done = jobs.run(*COMMAND, tmp_path, "large")
    assert "finished 0" in done.stdout and done.stdout.count("above the limit: False") == 2
    alone = jobs.run(*COMMAND[-2:], tmp_path, "alone")  # without the limit
    assert "above the limit: True" in alone.stdout


@pytest.mark.slow
def test_a_process_that_dies_is_an_error_of_the_other(tmp_path: Path) -> None:
    done = jobs.run(*COMMAND, tmp_path, "lost", status=None)
    assert "told: " in done.stdout and "status 7" in done.stdout + done.stderr
