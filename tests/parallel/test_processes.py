"""Two real processes that exchange arrays by XLA's collectives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dualmx as mx
from dualmx.core.net import free_port

ROOT, JOBS = Path(__file__).parents[2], Path(__file__).parent / "jobs"
ENV = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}


def test_one_process_exchanges_with_itself() -> None:
    assert (mx.parallel.rank(), mx.parallel.size()) == (0, 1)
    assert mx.parallel.all_reduce([mx.nd.ones((2,))])[0].asnumpy().tolist() == [1.0, 1.0]
    assert mx.parallel.all_gather(mx.nd.ones((2,))).shape == (1, 2)
    assert mx.parallel.broadcast(mx.nd.ones((2,))).shape == (2,)
    mx.parallel.barrier()
    with pytest.raises(mx.base.MXNetError, match="root=1"):
        mx.parallel.broadcast(mx.nd.ones((2,)), root=1)
    with pytest.raises(TypeError, match="all_reduce"):
        mx.parallel.all_reduce(3)


def test_joining_after_xla_has_started_is_refused() -> None:
    mx.nd.ones((1,)).wait_to_read()
    with pytest.raises(mx.base.MXNetError, match="before any array"):
        mx.parallel.init("127.0.0.1:1", 2, 0, backend="xla")


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["host", "xla"])
def test_stores_and_trainers_by_collectives(tmp_path: Path, transport: str) -> None:
    job = [sys.executable, "-m", "dualmx.launch", "-n", "2", "-s", "0", "--launcher", "local"]
    command = [*job, sys.executable, str(JOBS / "collective.py"), str(tmp_path)]
    env = {**ENV, "DUALMX_COLLECTIVES": transport}
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    for name in ("gluon-True", "gluon-False", "module"):
        with np.load(tmp_path / f"{name}-0.npz") as one, np.load(tmp_path / f"{name}-1.npz") as two:
            assert len(one.files) and all(one[k].tobytes() == two[k].tobytes() for k in one.files), name
    with np.load(tmp_path / "gluon-True-0.npz") as found:
        for a, b in zip([found[k] for k in found.files], whole_batch(), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def whole_batch() -> list[np.ndarray]:
    """What one process with the batches of both ends with."""
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(4, activation="tanh", in_units=5), mx.gluon.nn.Dense(2, in_units=4))
    net.cast("float64")
    net.initialize()
    values = np.random.RandomState(1)
    for p in net.collect_params().values():
        p.set_data(mx.nd.array(values.randn(*p.shape), dtype="float64"))
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
    data = np.random.RandomState(0)
    x, y = mx.nd.array(data.randn(8, 5), dtype="float64"), mx.nd.array(data.randn(8, 2), dtype="float64")
    for _ in range(4):
        with mx.autograd.record():
            loss = ((net(x) - y) ** 2).sum()
        loss.backward()
        trainer.step(8)
    return [p.data().asnumpy() for p in net.collect_params().values()]


@pytest.mark.slow
@pytest.mark.parametrize("end", [0, signal.SIGKILL, signal.SIGSTOP], ids=["none", "killed", "stopped"])
def test_a_lost_process_is_an_error_of_the_other(end: int) -> None:
    where = f"127.0.0.1:{free_port('127.0.0.1')}"
    command = [sys.executable, str(JOBS / "alone.py"), where]
    env = {**ENV, "DUALMX_DIST_TIMEOUT": "4"}
    other = subprocess.Popen([*command, "1", str(int(end))], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    with other:
        try:
            first = subprocess.run([*command, "0", str(int(end))], env=env, capture_output=True, text=True, timeout=90)
            if not end:
                assert first.returncode == 0 and "finished" in first.stdout, first.stderr
                assert other.wait(30) == 0
            else:
                assert first.returncode == 7, first.stdout + first.stderr
                assert "told after" in first.stdout and "again:" in first.stdout
        finally:
            other.kill()
