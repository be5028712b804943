"""`hvd.elastic` in a process that is alone: states, samplers, and when a function is called again."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dualmx as mx
import dualmx.horovod as hvd
from dualmx import parallel
from dualmx.horovod.elastic import sampler as sampling
from dualmx.op import lowering_context
from dualmx.ps import PeerLost


@pytest.fixture
def lose(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Run all that is recorded in one program with an exchange that fails, since another process is gone."""

    def exchange(key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        raise PeerLost("process 1 died")

    net = mx.gluon.contrib.nn.SyncBatchNorm(in_channels=2)
    net.initialize()
    net.hybridize()
    x = mx.nd.ones((3, 2))
    mx.nd.waitall()

    def run() -> None:
        with monkeypatch.context() as patched, mx.autograd.train_mode():
            patched.setattr(lowering_context, "_beyond", [exchange])
            patched.setattr(parallel, "is_initialized", lambda: True)
            patched.setattr(parallel, "size", lambda: 2)
            y = net(x)
            with pytest.raises(mx.MXNetError, match="process 1 died"):
                y.wait_to_read()

    return run


@pytest.fixture(autouse=True)
def begun() -> Iterator[None]:
    hvd.init()
    yield
    hvd.shutdown()


class TestObjectState:
    def test_values_are_kept_apart_from_what_was_saved(self) -> None:
        state = hvd.elastic.ObjectState(epoch=1, seen={"a": [1]}, w=mx.nd.ones((2,)), n=np.zeros(2))
        state.seen["a"].append(2)
        state.w += 1
        state.n[0] = 5
        state.epoch = 2
        for _ in range(2):
            state.restore()
            assert (state.epoch, state.seen, state.n.tolist()) == (1, {"a": [1]}, [0.0, 0.0])
            assert state.w.asnumpy().tolist() == [1.0, 1.0]
            state.seen["a"].append(3)
            state.w += 1
        state.commit()
        state.seen["a"].clear()
        state.restore()
        assert state.seen == {"a": [1, 3]} and state.w.asnumpy().tolist() == [2.0, 2.0]

    def test_what_is_saved_does_not_depend_on_what_comes_after(self, lose: Callable[[], None]) -> None:
        state = hvd.elastic.ObjectState(w=mx.nd.ones((2,)), more={"a": [mx.nd.ones((2,))]})
        state.w += 1
        state.more["a"][0] *= 3
        state.commit()
        lose()
        state.restore()
        assert state.w.asnumpy().tolist() == [2.0, 2.0] and state.more["a"][0].asnumpy().tolist() == [3.0, 3.0]

    def test_values_with_a_state_dict_stay_the_same_objects(self) -> None:
        class Counting:
            def __init__(self) -> None:
                self.n = 0

            def state_dict(self) -> dict[str, int]:
                return {"n": self.n}

            def load_state_dict(self, told: dict[str, int]) -> None:
                self.n = told["n"]

        counting = Counting()
        state = hvd.elastic.ObjectState(counting=counting)
        counting.n = 3
        state.sync()
        counting.n = 4
        state.restore()
        assert state.counting is counting and counting.n == 3

    def test_what_cannot_be_sent_is_refused(self) -> None:
        with pytest.raises(TypeError, match="function cannot be sent"):
            hvd.elastic.ObjectState(code=lambda: 0).sync()


def trained(net: Any, trainer: Any, steps: int) -> list[list[float]]:
    for _ in range(steps):
        with mx.autograd.record():
            loss = (net(mx.nd.array([[1.0, 2.0], [3.0, -1.0]])) ** 2).sum()
        loss.backward()
        trainer.step(2)
    return [p.data().asnumpy().reshape(-1).tolist() for p in net.collect_params().values()]


OPTIMIZERS = {
    "sgd": {"momentum": 0.9},
    "adam": {},
    "nadam": {},  # has a number of its own that changes
    "sgd by a schedule": {"lr_scheduler": lambda: mx.lr_scheduler.FactorScheduler(3, 0.5)},
}


class TestMXNetState:
    @pytest.mark.parametrize("name", OPTIMIZERS)
    def test_training_goes_on_as_if_nothing_had_happened(self, name: str) -> None:
        settings = {k: v() if callable(v) else v for k, v in OPTIMIZERS[name].items()}
        net = mx.gluon.nn.HybridSequential()
        net.add(mx.gluon.nn.Dense(3, in_units=2), mx.gluon.nn.BatchNorm(in_channels=3), mx.gluon.nn.Dense(1))
        net.initialize()
        trainer = hvd.DistributedTrainer(
            net.collect_params(), name.split()[0], {"learning_rate": 0.1, "wd": 0.01, **settings}
        )
        state = hvd.elastic.MXNetState(net=net, trainer=trainer, step=0)
        trained(net, trainer, 2)
        state.step = 2
        state.commit()
        found = trained(net, trainer, 5)
        for _ in range(2):
            state.restore()
            assert state.step == 2 and trained(net, trainer, 5) == found
        state.restore()
        state.sync()
        assert trained(net, trainer, 5) == found

    def test_first_values_do_not_depend_on_what_comes_after(self, lose: Callable[[], None]) -> None:
        net = mx.gluon.nn.Dense(1)
        net.initialize(mx.init.One())
        state = hvd.elastic.MXNetState(net=net, step=0)
        state.sync()
        y = net(mx.nd.ones((1, 2)))
        lose()
        state.restore()
        assert net.weight.data().asnumpy().tolist() == [[1.0, 1.0]]
        with pytest.raises(mx.MXNetError, match="process 1 died"):
            y.asnumpy()

    def test_shapes_may_be_unknown_at_first(self) -> None:
        net = mx.gluon.nn.Dense(1)
        net.initialize()
        trainer = hvd.DistributedTrainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
        state = hvd.elastic.MXNetState(net=net.collect_params(), trainer=trainer)
        state.sync()
        x = mx.nd.array([[1.0, 2.0]])
        before = net(x).asnumpy()
        for _ in range(2):
            trained(net, trainer, 1)
            assert net(x).asnumpy() != before
            state.restore()  # to the first values, which nobody has committed
            np.testing.assert_array_equal(net(x).asnumpy(), before)

    def test_gradients_of_a_step_that_failed_are_not_added_to_the_next(self) -> None:
        net = mx.gluon.nn.Dense(1, in_units=2)
        net.initialize()
        net.collect_params().setattr("grad_req", "add")
        state = hvd.elastic.MXNetState(net=net)
        with mx.autograd.record():
            net(mx.nd.ones((1, 2))).backward()
        state.restore()
        assert net.weight.grad().asnumpy().tolist() == [[0.0, 0.0]]

    def test_what_was_not_computed_is_not_saved(self) -> None:
        """Weights that depend on an exchange that failed leave the last commit alone."""
        net = mx.gluon.nn.Dense(1, in_units=1, use_bias=False)
        net.initialize(mx.init.One())
        state = hvd.elastic.MXNetState(net=net)

        class Failing(mx.autograd.Function):
            def forward(self, x: Any) -> Any:
                raise PeerLost("process 1 died")

        with pytest.raises(hvd.elastic.HorovodInternalError, match="process 1 died"):
            net.weight.set_data(Failing()(net.weight.data()))
            state.commit()
        state.restore()
        assert net.weight.data().asscalar() == 1

    def test_misuse(self) -> None:
        with pytest.raises(TypeError, match="net of type int: expected a Block"):
            hvd.elastic.MXNetState(net=3)
        with pytest.raises(TypeError, match="trainer of type str: expected a Trainer"):
            hvd.elastic.MXNetState(trainer="sgd")  # type: ignore[arg-type]
        net = mx.gluon.nn.Dense(1, in_units=1)
        net.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
        trainer = mx.gluon.Trainer(net.collect_params(), "sgd", kvstore="device", update_on_kvstore=True)
        trainer._init_store()
        with pytest.raises(ValueError, match="take a DistributedTrainer"):
            hvd.elastic.MXNetState(trainer=trainer)


class TestRun:
    def test_it_goes_back_after_a_loss_and_not_when_others_join(self) -> None:
        state = hvd.elastic.ObjectState(step=0)
        called: list[Any] = []
        state.register_reset_callbacks([lambda: called.append("reset"), lambda: called.append(state.step)])

        @hvd.elastic.run
        def train(state: Any, last: int, *, text: str) -> str:
            """Trains."""
            called.append(("begins at", state.step))
            while state.step < last:
                state.step += 1
                if state.step == 2:
                    state.commit()
                if state.step == 3 and len(called) < 3:
                    raise hvd.elastic.HorovodInternalError("process 1 died")
                if state.step == 5 and len(called) < 6:
                    raise hvd.elastic.HostsUpdatedInterrupt(skip_sync=True)
            return text

        assert train(state, 6, text="done") == "done" and train.__doc__ == "Trains."
        assert called == [("begins at", 0), "reset", 2, ("begins at", 2), "reset", 5, ("begins at", 5)]

    def test_other_errors_pass(self) -> None:
        def failing(state: Any) -> None:
            raise mx.base.MXNetError("of the script")

        with pytest.raises(mx.base.MXNetError, match="of the script"):
            hvd.elastic.run(failing)(hvd.elastic.ObjectState())

    def test_init_comes_first(self) -> None:
        hvd.shutdown()
        with pytest.raises(mx.base.MXNetError, match=r"hvd.elastic.run: .*call hvd.init\(\) first"):
            hvd.elastic.run(lambda state: None)(hvd.elastic.State())
        hvd.init()

    def test_a_state_of_ones_own(self) -> None:
        class Mine(hvd.elastic.State):
            said: list[str] = []

            def save(self) -> None:
                self.said.append("save")

            def restore(self) -> None:
                self.said.append("restore")

            def sync(self) -> None:
                self.said.append("sync")

            def reset(self) -> None:
                self.said.append("reset")

        def train(state: Any) -> None:
            state.commit()
            if state.said.count("save") == 1:
                raise hvd.elastic.HorovodInternalError("gone")

        hvd.elastic.run(train)(Mine())
        assert Mine.said == ["sync", "save", "restore", "reset", "sync", "save"]


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Which process this one is for samplers, and of how many."""
    now = {"rank": 0, "size": 1}
    monkeypatch.setattr(sampling, "rank", lambda: now["rank"])
    monkeypatch.setattr(sampling, "size", lambda: now["size"])
    return now


class TestSampler:
    def dealt(self, places: dict[str, int], told: dict[str, Any], length: int, size: int) -> list[Any]:
        """The samplers of all processes of a group, after one has told its state."""
        samplers = []
        for rank in range(size):
            places.update(rank=rank, size=size)
            samplers.append(hvd.elastic.ElasticSampler(range(length), seed=3))
            samplers[-1].load_state_dict(told)
        return samplers

    @pytest.mark.parametrize("seed", range(20))
    def test_each_sample_is_used_once_while_processes_come_and_go(self, seed: int, places: dict[str, int]) -> None:
        rng = random.Random(seed)
        length = rng.randrange(1, 200)
        told: dict[str, Any] = {"epoch": seed, "processed_indices": []}
        used: Counter[int] = Counter()
        while True:
            size, batch = rng.randrange(1, 5), rng.randrange(1, 9)
            samplers = self.dealt(places, told, length, size)
            assert len({s.num_samples for s in samplers}) == 1
            batches = -(-len(samplers[0]) // batch)
            if not batches:
                break
            made = rng.randrange(batches + 1)
            for number in range(made):
                for s in samplers:
                    used.update(s.get_indices(number, batch))
                    s.record_batch(number, batch)
            assert len({frozenset(s.processed_indices) for s in samplers}) == 1
            repeated = samplers[0].total_size - len(samplers[0].remaining_indices)
            assert repeated < size or len(samplers[0].remaining_indices) < size
            # What one of them tells is enough, whoever else dies.
            told = rng.choice(samplers).state_dict()
            if made == batches:
                break
        assert set(used) == set(range(length)) and sum(used.values()) - length < 5

    def test_orders(self, places: dict[str, int]) -> None:
        one, other = (hvd.elastic.ElasticSampler(range(50), seed=s) for s in (1, 2))
        assert sorted(one) == list(range(50)) and list(one) != list(other)
        first = list(one)
        one.set_epoch(1)
        assert list(one) != first and one.epoch == 1
        one.set_epoch(0)
        assert list(one) == first
        plain = hvd.elastic.ElasticSampler([7] * 4, shuffle=False)
        assert list(plain) == [0, 1, 2, 3] == plain.remaining_indices
        assert (plain.rank, plain.num_replicas, plain.num_samples, plain.total_size) == (0, 1, 4, 4)

    def test_single_samples_are_handed_out_at_sync(self) -> None:
        sampler = hvd.elastic.ElasticSampler(range(4), shuffle=False)
        state = hvd.elastic.MXNetState(sampler=sampler)
        sampler.record_indices([1, 2])
        state.sync()
        assert list(sampler) == [0, 3] and sampler.processed_indices == {1, 2}
        sampler.record_batch(0, 2)
        state.restore()
        assert sampler.processed_indices == {1, 2} and state.sampler is sampler
        sampler.record_batch(0, 2)
        sampler.reset()
        assert list(sampler) == [] and len(sampler) == 0

    def test_what_others_have_recorded_is_added_if_it_is_of_the_same_epoch(
        self, places: dict[str, int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        told = [
            {"epoch": 2, "processed_indices": np.array([0, 1]), "own_indices": np.array([5])},
            {"epoch": 2, "processed_indices": np.array([0, 1, 2, 3]), "own_indices": np.array([6])},  # a commit later
            {"epoch": 0, "processed_indices": np.array([], int), "own_indices": np.array([7])},
        ]
        monkeypatch.setattr(sampling.parallel, "all_gather_object", lambda _: told)
        places.update(rank=2, size=3)
        sampler = hvd.elastic.ElasticSampler(range(9), shuffle=False)
        sampler.sync()
        assert sampler.processed_indices == {0, 1, 5, 6} and sampler.epoch == 2
        assert sampler.remaining_indices == [2, 3, 4, 7, 8] and list(sampler) == [4, 2]  # 2 is used twice

    def test_a_loader_takes_it(self) -> None:
        data = mx.gluon.data.ArrayDataset(np.arange(6))
        sampler = hvd.elastic.ElasticSampler(data, shuffle=False)
        sampler.record_batch(0, 2)
        sampler.reset()
        loader = mx.gluon.data.DataLoader(data, 2, sampler=sampler)
        assert [b.asnumpy().tolist() for b in loader] == [[2, 3], [4, 5]]
