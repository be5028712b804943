"""Wrappers and exchanges of training loops in real processes, and alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dualmx as mx
from dualmx.core.net import free_port
from dualmx.gluon.parallel import DistributedDataParallel, sync_gradients, sync_initial_weights

ROOT = Path(__file__).parents[2]
ENV = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"} | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}


def free_address() -> str:
    return f"127.0.0.1:{free_port('127.0.0.1')}"


def run_together(commands: list[list[str]], envs: list[dict[str, str]] | None = None, timeout: int = 150) -> list[str]:
    """Run processes at once; returns what each printed, and fails with that if one of them failed."""
    started = [
        subprocess.Popen([sys.executable, *c], env=e, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for c, e in zip(commands, envs or [ENV] * len(commands), strict=True)
    ]
    try:
        said = [p.communicate(timeout=timeout)[0].decode() for p in started]
    finally:
        for p in started:
            p.kill()
            p.wait()
    assert all(p.returncode == 0 for p in started), "\n----\n".join(s[-4000:] for s in said)
    return said


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
    assert list(ddp._collect_params_with_prefix()) == ["module.weight", "module.bias"]


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
    where = free_address()
    said = run_together([["tests/parallel/jobs/wrapped.py", where, str(k)] for k in range(2)])
    assert all("finished" in s for s in said)
    assert "process 1 has left the job" in said[0]


@pytest.mark.slow
def test_the_loop_of_five_steps(tmp_path: Path) -> None:
    script = ["examples/coming_from/mpi_loop.py", "--steps", "12", "--save"]
    job = {"JAX_COORDINATOR_ADDRESS": free_address(), "JAX_NUM_PROCESSES": "2"}
    envs = [{**ENV, **job, "JAX_PROCESS_ID": str(k)} for k in range(2)]
    run_together([[*script, str(tmp_path / "two.npz")]] * 2, envs)
    alone = {"JAX_COORDINATOR_ADDRESS": free_address(), "JAX_NUM_PROCESSES": "1", "JAX_PROCESS_ID": "0"}
    run_together([[*script, str(tmp_path / "one.npz")]], [{**ENV, **alone}])
    with np.load(tmp_path / "two.npz") as two, np.load(tmp_path / "one.npz") as one:
        for k in one.files:
            np.testing.assert_allclose(two[k], one[k], rtol=1e-12, atol=1e-12)
