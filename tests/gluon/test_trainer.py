"""Trainer: one and several contexts, stores, stale gradients, states, compile counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx import autograd, gluon, nd
from dualmx.gluon import nn
from tests.gluon.oracle import ask

CPUS = [mx.cpu(0), mx.cpu(1)]


def make(ctx: Any = None) -> nn.Dense:
    net = nn.Dense(1, in_units=2, prefix="d_")
    net.initialize(mx.init.One(), ctx=ctx)
    return net


def backward(net: Any) -> None:
    with autograd.record():
        loss = net(nd.ones((2, 2)))
    loss.backward()


def backward_on_two(net: Any) -> None:
    with autograd.record():
        losses = [net(nd.ones((2, 2), ctx=c) * (i + 1)) for i, c in enumerate(CPUS)]
    for loss in losses:
        loss.backward()


def weights(net: nn.Dense) -> list[Any]:
    return [d.asnumpy().astype(float).round(5).tolist() for d in net.weight.list_data()]


def test_momentum_steps() -> None:
    net = make()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
    backward(net)
    trainer.step(2)
    assert weights(net) == [[[0.9, 0.9]]]
    backward(net)
    trainer.step(2)
    assert weights(net) == [[[0.71, 0.71]]]
    assert trainer.optimizer.rescale_grad == 0.5


def test_stale_gradients() -> None:
    net = make()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    for error in (UserWarning, mx.MXNetError):
        with pytest.raises(error, match="'d_bias' on cpu.0. was not computed.*ignore_stale_grad=True"):
            trainer.step(2)
    trainer.step(2, ignore_stale_grad=True)
    assert weights(net) == [[[1, 1]]]
    backward(net)
    trainer.step(2)
    with pytest.raises(
        UserWarning, match="not computed by a backward pass since the last step.*ignore_stale_grad=True"
    ):
        trainer.step(2)


@pytest.mark.parametrize(("grad_req", "total"), [("write", 2.0), ("add", 8.0)])
def test_used_gradients_of_one_context_are_cleared_unless_they_accumulate(grad_req: str, total: float) -> None:
    net = make(CPUS)
    net.collect_params().setattr("grad_req", grad_req)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5}, kvstore="device")
    backward_on_two(net)
    trainer.step(1)
    first = weights(net)
    with autograd.record():
        loss = net(nd.ones((2, 2), ctx=CPUS[0]))
    loss.backward()
    trainer.step(1, ignore_stale_grad=True)
    # The second context adds nothing, or what it had before.
    np.testing.assert_allclose(np.array(first) - weights(net), np.full((2, 1, 2), 0.5 * total))


def test_partly_used_network() -> None:
    a, b = make(), nn.Dense(1, in_units=2, prefix="e_")
    b.initialize(mx.init.One())
    params = {**a.collect_params(), **b.collect_params()}
    trainer = gluon.Trainer(params, "sgd", {"learning_rate": 0.1})
    backward(a)
    trainer.step(2, ignore_stale_grad=True)
    assert weights(a) == [[[0.9, 0.9]]]
    assert weights(b) == [[[1, 1]]]


def test_order_and_learning_rate() -> None:
    net = make()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    assert [p.name for p in trainer._params] == ["d_bias", "d_weight"]
    assert trainer.learning_rate == 0.1
    trainer.set_learning_rate(0.5)
    backward(net)
    trainer.step(2)
    assert weights(net) == [[[0.5, 0.5]]]
    scheduled = gluon.Trainer(make().collect_params(), "sgd", {"lr_scheduler": mx.lr_scheduler.FactorScheduler(2)})
    with pytest.raises(UserWarning, match="follows an lr_scheduler; set lr_scheduler.base_lr instead"):
        scheduled.set_learning_rate(1)


@pytest.mark.parametrize("way", ["step", "update", "set_learning_rate", "learning_rate"])
def test_numbers_in_arrays_without_axes(way: str) -> None:
    """As in `trainer.step(valid_lengths.sum())`, where the sum is still to be computed."""
    net = make()
    with mx.util.np_shape():
        two = nd.ones(2).as_np_ndarray().sum()
        rate = two / 20 if way == "learning_rate" else 0.1
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": rate}, update_on_kvstore=False)
        backward(net)
        if way == "set_learning_rate":
            trainer.set_learning_rate(two / 20)
        if way == "update":
            trainer.allreduce_grads()
        (trainer.update if way == "update" else trainer.step)(nd.ones(2).as_np_ndarray().sum())
    assert weights(net) == [[[0.9, 0.9]]]


def test_multipliers_apply() -> None:
    net = make()
    net.bias.lr_mult = 0.0
    net.weight.wd_mult = 0.0
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "wd": 10.0})
    backward(net)
    trainer.step(2)
    assert weights(net) == [[[0.9, 0.9]]]
    assert net.bias.data().asnumpy().tolist() == [0]


def test_optimizer_object() -> None:
    net = make()
    trainer = gluon.Trainer(net.collect_params(), mx.optimizer.SGD(learning_rate=0.3, rescale_grad=0.5))
    backward(net)
    trainer.step(2)
    assert trainer.optimizer.rescale_grad == 0.25
    assert weights(net) == [[[0.85, 0.85]]]


def test_wrong_arguments() -> None:
    net = make()
    params = net.collect_params()
    with pytest.raises(ValueError, match="foo"):
        gluon.Trainer(params, "foo")
    for wrong in (net, 3, [1]):
        with pytest.raises(ValueError, match="expected"):
            gluon.Trainer(wrong, "sgd")
    with pytest.raises(ValueError, match="optimizer_params"):
        gluon.Trainer(params, mx.optimizer.SGD(), {"learning_rate": 1})
    with pytest.raises(TypeError, match="kvstore=3"):
        gluon.Trainer(params, "sgd", kvstore=3)
    with pytest.raises(mx.MXNetError, match="has not been initialized"):
        gluon.Trainer(nn.Dense(1, in_units=2).collect_params(), "sgd")
    other = nn.Dense(1, in_units=2)
    other.initialize(ctx=mx.cpu(1))
    with pytest.raises(ValueError, match="same contexts"):
        gluon.Trainer([*params.values(), *other.collect_params().values()], "sgd")


def test_deferred_parameters() -> None:
    net = nn.Dense(1)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd")
    with pytest.raises(
        gluon.DeferredInitializationError,
        match="shape .* is not fully known and initialization was deferred.*Pass one batch",
    ):
        trainer.step(1)
    backward(net)
    trainer.step(1)


def test_fixed_parameters_are_left_alone() -> None:
    net = make()
    net.bias.grad_req = "null"
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    backward(net)
    trainer.step(2)
    assert weights(net) == [[[0.9, 0.9]]]
    assert net.bias.data().asnumpy().tolist() == [0]


def test_two_contexts_update_in_store() -> None:
    net = make(CPUS)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
    backward_on_two(net)
    trainer.step(4)
    assert trainer.update_on_kvstore
    assert weights(net) == [[[0.85, 0.85]], [[0.85, 0.85]]]
    assert [g.asnumpy().tolist() for g in net.weight.list_grad()] == [[[2, 2]], [[4, 4]]]
    for method in (trainer.allreduce_grads, lambda: trainer.update(1)):
        for error in (mx.MXNetError, AssertionError):
            with pytest.raises(error, match="update_on_kvstore=False"):
                method()
    backward_on_two(net)
    trainer.step(4)
    assert weights(net) == [[[0.565, 0.565]], [[0.565, 0.565]]]
    net.weight.set_data(nd.ones((1, 2)))
    backward_on_two(net)
    trainer.step(4)
    assert weights(net)[0] == weights(net)[1] == [[0.5935, 0.5935]]


def test_two_contexts_update_outside() -> None:
    net = make(CPUS)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}, update_on_kvstore=False)
    backward_on_two(net)
    trainer.allreduce_grads()
    assert [g.asnumpy().tolist() for g in net.weight.list_grad()] == [[[6, 6]], [[6, 6]]]
    trainer.update(4)
    assert weights(net) == [[[0.85, 0.85]], [[0.85, 0.85]]]


def test_two_contexts_without_store() -> None:
    net = make(CPUS)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore=None)
    backward_on_two(net)
    trainer.step(4)
    assert weights(net) == [[[0.95, 0.95]], [[0.9, 0.9]]]


@pytest.mark.parametrize("way", ["store", "step", "update", "alone"])
def test_gradients_of_some_contexts(way: str) -> None:
    """As with a last batch that has no rows for some devices."""
    net = make(CPUS)
    settings = {"learning_rate": 0.1, "momentum": 0.5}
    kvstore = None if way == "alone" else "device"
    trainer = gluon.Trainer(net.collect_params(), "sgd", settings, kvstore, update_on_kvstore=way == "store")
    backward_on_two(net)
    trainer.step(1)
    with autograd.record():
        loss = net(nd.ones((3, 2), ctx=CPUS[1]))
    loss.backward()
    if way == "update":
        trainer.allreduce_grads()
        trainer.update(1, ignore_stale_grad=True)
    else:
        trainer.step(1, ignore_stale_grad=True)
    # `allreduce_grads` does not know yet that some may be stale: the sums of the step before are added once more.
    expected = {"alone": [0.8, 0.1], "update": [-0.8, -0.8]}.get(way, [-0.2, -0.2])
    assert weights(net) == [[[v, v]] for v in expected]


@pytest.mark.parametrize("counts", [(2, 2), (2, 1), (1, 2), (1, 1)])
@pytest.mark.parametrize("in_store", [None, False])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_parameters_move_to_other_contexts(counts: tuple[int, int], in_store: bool | None, optimizer: str) -> None:
    """The optimizer's states, and its counts of updates, move along."""
    settings = {"learning_rate": 0.1, "momentum": 0.9} if optimizer == "sgd" else {"learning_rate": 0.1}

    def step(net: Any, trainer: Any, contexts: list[Any]) -> None:
        with autograd.record():
            losses = [(net(nd.ones((4 // len(contexts), 2), ctx=c)) ** 2).sum() for c in contexts]
        autograd.backward(losses)
        trainer.step(4)

    expected = make()
    plain = gluon.Trainer(expected.collect_params(), optimizer, settings)
    for _ in range(5):
        step(expected, plain, [mx.cpu(0)])
    places = [[mx.cpu(k) for k in range(counts[0])], [mx.cpu(k) for k in range(2, 2 + counts[1])]]
    net = make(places[0])
    trainer = gluon.Trainer(net.collect_params(), optimizer, settings, update_on_kvstore=in_store)
    for contexts, steps in zip(places, (2, 3), strict=True):
        net.collect_params().reset_ctx(contexts)
        for _ in range(steps):
            step(net, trainer, contexts)
    for found in net.weight.list_data():
        np.testing.assert_allclose(found.asnumpy(), expected.weight.data().asnumpy(), rtol=1e-5)
    net.weight.reset_ctx(mx.cpu(0))
    with pytest.raises(ValueError, match="must be on the same contexts"):
        trainer.step(1)


def test_environment_decides_where_to_update(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MXNET_UPDATE_ON_KVSTORE", "0")
    net = make(CPUS)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    backward_on_two(net)
    trainer.allreduce_grads()
    trainer.update(4)
    assert weights(net) == [[[0.85, 0.85]], [[0.85, 0.85]]]


class Doubling:
    """A user's store: sums over contexts and doubles."""

    type = "teststore"
    num_workers = 1

    def __init__(self) -> None:
        self.values: dict[int, Any] = {}

    def init(self, keys: list[int], values: list[Any]) -> None:
        self.values = dict(zip(keys, values, strict=True))

    def push(self, keys: list[int], values: list[list[Any]]) -> None:
        for key, arrays in zip(keys, values, strict=True):
            self.values[key] = sum(a.as_in_context(mx.cpu(0)) for a in arrays) * 2

    def pull(self, keys: list[int], out: list[list[Any]]) -> None:
        for key, arrays in zip(keys, out, strict=True):
            for array in arrays:
                self.values[key].copyto(array)

    def is_capable(self, capability: str) -> bool:
        return False


def test_own_store() -> None:
    net = make()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore=Doubling())
    backward(net)
    trainer.step(2)
    assert weights(net) == [[[0.8, 0.8]]]


@pytest.mark.parametrize("ctx", [None, CPUS], ids=["one", "two"])
@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_states_round_trip(name: str, ctx: Any, tmp_path: Path) -> None:
    settings = {"learning_rate": 0.1, **({"momentum": 0.9} if name == "sgd" else {})}
    path = str(tmp_path / "t.states")
    step = backward if ctx is None else backward_on_two

    def steps(net: Any, trainer: gluon.Trainer, n: int) -> None:
        for _ in range(n):
            step(net)
            trainer.step(4)

    net = make(ctx)
    trainer = gluon.Trainer(net.collect_params(), name, settings)
    steps(net, trainer, 2)
    trainer.save_states(path)
    net.save_parameters(str(tmp_path / "p"))
    steps(net, trainer, 2)
    again = make(ctx)
    again.load_parameters(str(tmp_path / "p"))
    resumed = gluon.Trainer(again.collect_params(), name, {"learning_rate": 0.7})
    resumed.load_states(path)
    assert resumed.learning_rate == 0.1
    steps(again, resumed, 2)
    np.testing.assert_allclose(weights(again), weights(net), rtol=1e-6)


@pytest.mark.oracle
def test_states_of_mxnet(tmp_path: Path) -> None:
    script = """
net = mx.gluon.nn.Dense(1, in_units=2, prefix="d_")
net.initialize(mx.init.One())
trainer = mx.gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1})
def step():
    with mx.autograd.record():
        loss = net(mx.nd.ones((2, 2)))
    loss.backward()
    trainer.step(2)
step()
trainer.save_states(sys.argv[1] + "/t")
net.save_parameters(sys.argv[1] + "/p")
step()
print(json.dumps(net.weight.data().asnumpy().tolist()))
"""
    expected = ask(script, str(tmp_path))
    net = nn.Dense(1, in_units=2, prefix="d_")
    net.load_parameters(str(tmp_path / "p"))
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.5})
    trainer.load_states(str(tmp_path / "t"))
    backward(net)
    trainer.step(2)
    np.testing.assert_allclose(net.weight.data().asnumpy(), expected, rtol=1e-6)


def test_half_precision_with_master_weights() -> None:
    net = make()
    net.cast("float16")
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1e-4, "multi_precision": True})
    for _ in range(10):
        with autograd.record():
            loss = net(nd.ones((2, 2), dtype="float16"))
        loss.backward()
        trainer.step(2)
    np.testing.assert_allclose(weights(net), [[[0.999, 0.999]]], atol=5e-4)
    assert weights(net) != [[[1, 1]]]


def test_no_compilation_after_warm_up() -> None:
    net = nn.HybridSequential()
    net.add(nn.Dense(8, activation="relu"), nn.Dense(2))
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
    loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
    x, y = nd.ones((4, 3)), nd.array([0, 1, 1, 0])

    def step() -> None:
        with autograd.record():
            loss = loss_fn(net(x), y)
        loss.backward()
        trainer.step(4)

    for _ in range(3):
        step()
    with mx.debug.assert_compiles(0):
        for n in range(5):
            trainer.set_learning_rate(0.1 / (n + 1))
            step()
