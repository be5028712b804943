"""Two real processes that exchange arrays by XLA's collectives."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest

import dualmx as mx
from tests import jobs

JOBS = Path(__file__).parent / "jobs"


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
    command = [*jobs.launcher(2), jobs.PYTHON, JOBS / "collective.py", tmp_path]
    jobs.run(*command, env={"DUALMX_COLLECTIVES": transport})
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
    command, env = [jobs.PYTHON, JOBS / "alone.py", jobs.free_address()], {"DUALMX_DIST_TIMEOUT": "4"}
    with jobs.running(*command, 1, int(end), env=env) as other:
        if end:
            first = jobs.run(*command, 0, int(end), env=env, status=7)
            assert "told after" in first.stdout and "again:" in first.stdout
        else:
            assert "finished" in jobs.run(*command, 0, 0, env=env).stdout
            jobs.finish(other)
            assert other.returncode == 0
