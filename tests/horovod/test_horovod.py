"""Training in the words of Horovod: alone, and in two real processes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

import dualmx as mx
import dualmx.horovod as hvd
from tests import jobs


@pytest.fixture
def begun() -> Iterator[None]:
    hvd.init()
    yield
    hvd.shutdown()


def test_before_init() -> None:
    assert not hvd.is_initialized()
    for call in (hvd.rank, hvd.size, lambda: hvd.allreduce(mx.nd.ones((1,))), lambda: hvd.broadcast_parameters({})):
        with pytest.raises(mx.base.MXNetError, match=r"call hvd.init\(\) first"):
            call()
    with pytest.raises(ValueError, match="use process_sets"):
        hvd.init(comm=[0])


def test_alone(begun: None) -> None:
    x = mx.nd.array([1.0, 2.0])
    assert (hvd.rank(), hvd.size(), hvd.local_rank(), hvd.cross_size()) == (0, 1, 0, 1)
    for op in (None, hvd.Sum, hvd.Min, hvd.Max, hvd.Product, hvd.Adasum):
        assert hvd.allreduce(x, op=op).asnumpy().tolist() == [1.0, 2.0]
    assert hvd.allgather(x).shape == (2,) and hvd.alltoall(x).shape == (2,) and hvd.join() == 0
    assert hvd.alltoall(x, splits=[2])[1].asnumpy().tolist() == [2]
    assert hvd.broadcast_object("x") == "x" and not hvd.mpi_built() and hvd.gloo_built()
    net = mx.gluon.nn.Dense(1)
    with pytest.raises(mx.base.MXNetError, match="never initialized"):
        hvd.broadcast_parameters(net.collect_params())
    net.initialize()
    hvd.broadcast_parameters(net.collect_params())
    trainer = hvd.DistributedTrainer(net.collect_params(), mx.optimizer.SGD(learning_rate=1.0))
    with mx.autograd.record():
        loss = net(mx.nd.ones((4, 3))).sum()
    loss.backward()
    before = net.weight.data().asnumpy()
    trainer.step(4)
    np.testing.assert_allclose(net.weight.data().asnumpy(), before - 1, rtol=1e-5)


def test_misuse(begun: None) -> None:
    optimizer = hvd.DistributedOptimizer(mx.optimizer.Adam(0.25), gradient_predivide_factor=4.0)
    assert isinstance(optimizer, mx.optimizer.Adam) and optimizer.learning_rate == 0.25
    with pytest.raises(ValueError, match="distributed already"):
        hvd.DistributedOptimizer(optimizer)
    with pytest.raises(TypeError, match="expected an Optimizer"):
        hvd.DistributedOptimizer("sgd")  # type: ignore[arg-type]
    w = mx.gluon.Parameter("w", shape=(2,))
    w.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    with pytest.raises(ValueError, match="one context in each process"):
        hvd.DistributedTrainer([w], "sgd")
    w = mx.gluon.Parameter("w", shape=(2,))
    w.initialize()
    with pytest.warns(UserWarning, match="the optimizer inside"):
        trainer = hvd.DistributedTrainer([w], optimizer)
    assert type(trainer.optimizer) is mx.optimizer.Adam and trainer.optimizer.rescale_grad == 1.0
    with pytest.raises(ValueError, match="expected more than 0"):
        hvd.DistributedTrainer([w], "sgd", gradient_predivide_factor=0)
    for wrong, said in (([w], "a dict"), ({"w": 3}, "params holds a int")):
        with pytest.raises(TypeError, match=said):
            hvd.broadcast_parameters(wrong)
    with pytest.raises(ValueError, match="was added already"):
        hvd.add_process_set(hvd.global_process_set)


@pytest.mark.slow
def test_two_processes() -> None:
    done = jobs.run(*jobs.launcher(2), jobs.PYTHON, "tests/horovod/jobs/horovod.py")
    assert done.stdout.count("finished") == 2


@pytest.mark.slow
def test_example() -> None:
    script = ["examples/coming_from/horovod_mnist.py", "--epochs", "1", "--fp16-allreduce"]
    done = jobs.run(*jobs.launcher(2), jobs.PYTHON, *script)
    said = done.stdout + done.stderr
    assert float(re.findall(r"Validation: accuracy=([\d.]+)", said)[0]) > 0.8
    sums = re.findall(r"sum of weights (\S+)", said)
    assert len(sums) == 2 and sums[0] == sums[1]
