"""Wrappers and exchanges of training loops in real processes, and alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dualmx as mx
from dualmx.gluon.parallel import DistributedDataParallel, sync_gradients, sync_initial_weights
from tests import jobs


def test_alone_nothing_is_exchanged() -> None:
    net = mx.gluon.nn.Dense(2)
    net.initialize()
    with pytest.raises(mx.base.MXNetError, match="dense.*has no values yet"):
        sync_initial_weights(net)
    ddp = DistributedDataParallel(net)
    trainer = mx.gluon.Trainer(ddp.collect_params(), "sgd", {"learning_rate": 1.0}, kvstore=None)
    with mx.autograd.record():
        loss = ddp(mx.nd.ones((4, 3))).sum()
    loss.backward()
    before = net.weight.data().asnumpy()
    sync_gradients(ddp)
    trainer.step(4)
    np.testing.assert_allclose(net.weight.data().asnumpy(), before - 1, rtol=1e-6)
    with ddp.join():
        pass
    assert list(ddp.collect_params_with_prefix()) == ["module.weight", "module.bias"]


def test_misuse_is_told() -> None:
    with pytest.raises(TypeError, match="expected a Block or its parameters"):
        sync_gradients([1])
    with pytest.raises(TypeError, match="expected a Block"):
        DistributedDataParallel(3)  # type: ignore[arg-type]
    net = mx.gluon.nn.Dense(2, in_units=3)
    net.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    with pytest.raises(ValueError, match="one context in each process"):
        DistributedDataParallel(net)
    with pytest.raises(ValueError, match="bucket_cap_mb=0"):
        DistributedDataParallel(net, bucket_cap_mb=0)
    net = mx.gluon.nn.Dense(2, in_units=3)
    net.initialize()
    with (
        pytest.raises(mx.base.MXNetError, match="setattr\\('grad_req', 'add'\\)"),
        DistributedDataParallel(net).no_sync(),
    ):
        pass


@pytest.mark.slow
def test_distributed_data_parallel() -> None:
    command = [jobs.PYTHON, "tests/parallel/jobs/wrapped.py", jobs.free_address()]
    said = jobs.run_together([[*command, k] for k in range(2)])
    assert all("finished" in s for s in said)
    assert "process 1 has left the job" in said[0]


@pytest.mark.slow
def test_the_loop_of_five_steps(tmp_path: Path) -> None:
    script = [jobs.PYTHON, "examples/coming_from/mpi_loop.py", "--steps", "12", "--save"]
    for count, name in ((2, "two"), (1, "one")):
        job = {"JAX_COORDINATOR_ADDRESS": jobs.free_address(), "JAX_NUM_PROCESSES": str(count)}
        envs = [{**job, "JAX_PROCESS_ID": str(k)} for k in range(count)]
        jobs.run_together([[*script, tmp_path / f"{name}.npz"]] * count, envs)
    with np.load(tmp_path / "two.npz") as two, np.load(tmp_path / "one.npz") as one:
        for k in one.files:
            np.testing.assert_allclose(two[k], one[k], rtol=1e-12, atol=1e-12)
