"""Exchanges by the names of torch.distributed; training that averages now and then; the watch on copies."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import dualmx as mx
import dualmx.distributed as dist
from dualmx.gluon.parallel import AccumulatingTrainer, DivergenceCheck
from tests import jobs
from tests.horovod.test_eager_exchanges import launched


def test_alone() -> None:
    with pytest.raises(ValueError, match="call init_process_group first"):
        dist.get_rank()
    assert dist.is_backend_available("gloo") and not dist.is_torchelastic_launched()
    assert dist.get_node_local_rank(fallback_rank=7) == 7 and issubclass(dist.DistBackendError, RuntimeError)
    with pytest.raises(ValueError, match="backend"):
        dist.init_process_group("carrier pigeons")
    dist.init_process_group("gloo", rank=0, world_size=1)
    try:
        x = mx.nd.array([1.0, 2.0])
        for run in (
            lambda: dist.all_reduce(x), lambda: dist.broadcast(x, 0), lambda: dist.reduce(x, 0), lambda: dist.barrier(),
            lambda: dist.scatter(x, [x.copy()]), lambda: dist.reduce_scatter(x, [x.copy()]),
            lambda: dist.all_to_all([x], [x.copy()]), lambda: dist.all_gather([x], x.copy()),
        ):  # fmt: skip
            assert run() is None and x.asnumpy().tolist() == [1.0, 2.0]
        assert dist.all_reduce(x, async_op=True).wait() and dist.get_world_size() == 1
        out = [None]
        dist.all_gather_object(out, {"a": 1})
        assert out == [{"a": 1}]
        with pytest.raises(ValueError, match="does not fit into"):
            dist.all_to_all([mx.nd.zeros((3,))], [x])
        with pytest.raises(ValueError, match="called before"):
            dist.init_process_group()
        own, every = dist.new_subgroups(1)
        assert every == [own] and dist.get_process_group_ranks(own) == [0]
        with pytest.raises(ValueError, match="float32 values: expected integers"):
            dist.all_reduce(mx.np.ones((1,)), dist.ReduceOp.BAND)
        with pytest.raises(ValueError, match="a divisor of 1"):
            dist.new_subgroups(2)
        with pytest.raises(ValueError, match="expected one of them"):
            dist.broadcast(x, 0, group_src=0)
        with pytest.raises(ValueError, match="below 1"):
            dist.broadcast(x, group_src=1)
        with pytest.raises(ValueError, match="src=None"):
            dist.broadcast(x)
    finally:
        dist.destroy_process_group()
    assert not dist.is_initialized()


def test_works_that_fail_stay_failed() -> None:
    def fail() -> None:
        raise mx.base.MXNetError("process 1 died")

    work = dist.Work(fail, lambda: True)
    for _ in range(2):
        with pytest.raises(mx.base.MXNetError, match="process 1 died"):
            work.wait()
        assert work.is_completed() and not work.is_success() and "died" in str(work.exception())
    well = dist.Work(lambda: None, lambda: True)
    assert well.wait() and well.wait() and well.is_success() and well.exception() is None


def test_periodic_updates_alone() -> None:
    x, y = (np.random.RandomState(k).randn(8, n) for k, n in ((0, 3), (1, 1)))

    def trained(cut: int) -> np.ndarray:
        mx.random.seed(1)
        net = mx.gluon.nn.Dense(1, in_units=3)
        net.cast("float64")
        net.initialize()
        trainer = AccumulatingTrainer(net.collect_params(), "adam", {"learning_rate": 0.1}, accumulate=cut)
        for _ in range(3):
            for k in range(cut):
                with mx.autograd.record():
                    own = (mx.nd.array(a[k * 8 // cut : (k + 1) * 8 // cut], dtype="float64") for a in (x, y))
                    data, label = own
                    loss = mx.gluon.loss.L2Loss()(net(data), label)
                loss.backward()
                trainer.step(8 // cut)
        assert trainer.updates == 3
        return net.weight.data().asnumpy()

    np.testing.assert_allclose(trained(4), trained(1), rtol=1e-12, atol=1e-14)
    net = mx.gluon.nn.Dense(1, in_units=3)
    net.initialize()
    for settings, said in (
        ({"accumulate": 0}, "accumulate"), ({"average_every": 0}, "average_every"),
        ({"average_every": 2, "kvstore": "device"}, "exchanges gradients"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            AccumulatingTrainer(net.collect_params(), "sgd", **settings)


def test_copies_on_contexts_are_watched() -> None:
    net = mx.gluon.nn.Dense(2, in_units=2, prefix="watched_")
    net.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    sentinel = DivergenceCheck(net, every=3)
    for _ in range(5):
        sentinel.step()
    net.weight.data(mx.cpu(1))[0, 0] = 7
    expected = r"step 6: parameter 'watched_weight' differs on cpu\(1\) from cpu\(0\)"
    with pytest.raises(mx.base.MXNetError, match=expected):
        sentinel.step()


@pytest.mark.slow
@pytest.mark.parametrize(("job", "count"), [("torchlike", 3), ("periodic", 2)])
def test_processes(job: str, count: int) -> None:
    launched(count, f"tests/distributed/jobs/{job}.py")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mpiexec") is None, reason="needs MPI")
def test_started_by_mpiexec() -> None:
    command = ["mpiexec", "--allow-run-as-root", "--oversubscribe", "-n", "3", jobs.PYTHON]
    assert jobs.run(*command, "tests/distributed/jobs/torchlike.py").stdout.count("finished") == 3
