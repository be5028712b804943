"""Several devices in one process: as one device with the whole batch, and as one program."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import dualmx as mx
from dualmx.compile.events import counters
from dualmx.gluon import nn

R, B = 4, 3
RNG = np.random.RandomState(3)
X = RNG.randn(R * B, 5)
Y = RNG.randn(R * B, 2)


def test_there_are_devices() -> None:
    assert len(jax.devices()) == 8


def train(
    contexts: list, steps: int = 3, optimizer: str = "sgd", settings: dict | None = None, kvstore: str = "device",
    update_on_kvstore: bool | None = None, hybridize: bool = True, read_loss: bool = False, batch_norm: bool = False,
):  # fmt: skip
    mx.random.seed(7)
    net = nn.HybridSequential()
    net.add(nn.Dense(4, activation="tanh", in_units=5))
    if batch_norm:
        net.add(nn.BatchNorm(in_channels=4))
    net.add(nn.Dense(2, in_units=4))
    net.cast("float64")
    net.initialize(mx.init.Xavier(), ctx=contexts)
    values = np.random.RandomState(1)
    for p in net.collect_params().values():
        if "running" not in p.name and "gamma" not in p.name:
            p.set_data(mx.nd.array(values.randn(*p.shape) * 0.3, dtype="float64"))
    if hybridize:
        net.hybridize()
    trainer = mx.gluon.Trainer(
        net.collect_params(),
        optimizer,
        settings or {"learning_rate": 0.1, "momentum": 0.9},
        kvstore=kvstore,
        update_on_kvstore=update_on_kvstore,
    )
    loss_of = mx.gluon.loss.L2Loss()
    for _ in range(steps):
        xs = mx.gluon.utils.split_and_load(mx.nd.array(X, dtype="float64"), contexts)
        ys = mx.gluon.utils.split_and_load(mx.nd.array(Y, dtype="float64"), contexts)
        with mx.autograd.record():
            losses = [loss_of(net(x), y) for x, y in zip(xs, ys, strict=True)]
        for loss in losses:
            loss.backward()
        if read_loss:
            [float(loss.mean().asscalar()) for loss in losses]
        trainer.step(len(X))
    return net, trainer, losses


def values_of(net, k: int = 0) -> list[np.ndarray]:
    return [p.list_data()[k].asnumpy() for p in net.collect_params().values()]


@pytest.mark.parametrize(
    "case",
    [
        {},
        {"update_on_kvstore": False},
        {"kvstore": "local"},
        {"kvstore": "nccl", "optimizer": "adam", "settings": {"learning_rate": 0.05}},
        {"optimizer": "lamb", "settings": {"learning_rate": 0.05}},
        {"optimizer": "nadam", "settings": {"learning_rate": 0.05}},
        {"optimizer": "nadam", "settings": {"learning_rate": 0.05}, "update_on_kvstore": False, "read_loss": True},
        {"hybridize": False},
        {"read_loss": True},
    ],
    ids=str,
)
def test_several_devices_equal_one_with_the_whole_batch(case: dict) -> None:
    many, _, losses = train([mx.cpu(i) for i in range(R)], **case)
    one, _, whole = train([mx.cpu(0)], **case)
    for k in range(R):
        for a, b in zip(values_of(many, k), values_of(one), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        np.concatenate([x.asnumpy() for x in losses]), whole[0].asnumpy(), rtol=1e-12, atol=1e-14
    )


def test_a_step_is_one_program() -> None:
    contexts = [mx.cpu(i) for i in range(R)]
    train(contexts, steps=3)
    before, compiled = counters.flushes, counters.compiles
    train(contexts, steps=4)
    first = counters.flushes - before
    before = counters.flushes
    train(contexts, steps=6)
    assert counters.flushes - before - first == 2
    assert counters.compiles == compiled


def test_old_buffers_are_taken_over() -> None:
    contexts = [mx.cpu(i) for i in range(R)]
    train(contexts, steps=3)
    before = counters.kept_copies
    train(contexts, steps=3)
    assert counters.kept_copies == before


def test_batch_statistics_are_those_of_each_device() -> None:
    net, _, _ = train([mx.cpu(i) for i in range(R)], batch_norm=True, steps=1)
    mean = next(p for p in net.collect_params().values() if "running_mean" in p.name)
    found = [a.asnumpy() for a in mean.list_data()]
    assert not np.allclose(found[0], found[1])


def test_dropout_differs_between_devices_and_repeats_with_the_seed() -> None:
    contexts = [mx.cpu(i) for i in range(R)]

    def draw() -> list[np.ndarray]:
        mx.random.seed(5)
        layer = nn.Dropout(0.5)
        with mx.autograd.record():
            return [layer(mx.nd.ones((4, 8), ctx=c)).asnumpy() for c in contexts]

    first, second = draw(), draw()
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert not np.array_equal(first[0], first[1])


def test_different_work_on_one_device_falls_back() -> None:
    contexts = [mx.cpu(0), mx.cpu(1)]
    w = mx.gluon.Parameter("w", shape=(3,), init="ones")
    w.initialize(ctx=contexts)
    trainer = mx.gluon.Trainer([w], "sgd", {"learning_rate": 1.0, "momentum": 0.5})
    expected, momentum = np.ones(3), np.zeros(3)
    for step in range(4):
        with mx.autograd.record():
            a = (w.data(contexts[0]) * 2).sum()
            b = (w.data(contexts[1]) * 3).sum() if step % 2 else (w.data(contexts[1]).exp() * 0 + 1).sum()
        a.backward()
        b.backward()
        trainer.step(1)
        momentum = 0.5 * momentum - (5.0 if step % 2 else 2.0)
        expected = expected + momentum
        for c in contexts:
            np.testing.assert_allclose(w.data(c).asnumpy(), expected)


def test_states_are_saved_and_loaded(tmp_path) -> None:
    contexts = [mx.cpu(0), mx.cpu(1)]
    path = str(tmp_path / "t.states")

    def make():
        w = mx.gluon.Parameter("w", shape=(2,), init="ones")
        w.initialize(ctx=contexts)
        return w, mx.gluon.Trainer([w], "sgd", {"learning_rate": 0.1, "momentum": 0.9})

    def step(w, trainer) -> None:
        with mx.autograd.record():
            losses = [(w.data(c) * w.data(c)).sum() for c in contexts]
        mx.autograd.backward(losses)
        trainer.step(1)

    w, trainer = make()
    for _ in range(2):
        step(w, trainer)
    trainer.save_states(path)
    v, other = make()
    v.set_data(w.data(contexts[0]))
    other.load_states(path)
    for _ in range(2):
        step(w, trainer)
        step(v, other)
    for c in contexts:
        np.testing.assert_array_equal(w.data(c).asnumpy(), v.data(c).asnumpy())


def test_store_has_the_values_that_a_step_made() -> None:
    contexts = [mx.cpu(0), mx.cpu(1)]
    kv = mx.kv.create("device")
    kv.init(0, mx.nd.ones((2,)))
    kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    weights = [mx.nd.ones((2,), ctx=c) for c in contexts]
    assert kv.update_together([0], [[mx.nd.ones((2,), ctx=c) for c in contexts]], [weights])
    out = mx.nd.zeros((2,))
    kv.pull(0, out=out)
    assert out.asnumpy().tolist() == weights[1].asnumpy().tolist() == [0.0, 0.0]
    kv.push(0, [mx.nd.ones((2,), ctx=c) for c in contexts])
    kv.pull(0, out=out)
    assert out.asnumpy().tolist() == [-1.0, -1.0]


@pytest.mark.parametrize("kvstore", ["local", "device", None])
def test_module_on_several_devices_equals_one(kvstore: str | None) -> None:
    def run(contexts: list) -> list[dict]:
        x = mx.sym.var("data")
        h = mx.sym.Activation(mx.sym.FullyConnected(x, num_hidden=4, name="a"), act_type="tanh")
        net = mx.sym.LinearRegressionOutput(mx.sym.FullyConnected(h, num_hidden=2, name="b"), mx.sym.var("label"))
        mod = mx.mod.Module(net, label_names=["label"], context=contexts)
        data = mx.io.DataDesc("data", X.shape, np.float64)
        mod.bind([data], [mx.io.DataDesc("label", Y.shape, np.float64)])
        values = np.random.RandomState(1)
        shapes = {"a_weight": (4, 5), "a_bias": (4,), "b_weight": (2, 4), "b_bias": (2,)}
        mod.init_params(arg_params={n: mx.nd.array(values.randn(*s), dtype="float64") for n, s in shapes.items()})
        mod.init_optimizer(kvstore, "sgd", {"learning_rate": 0.1, "momentum": 0.9})
        batch = mx.io.DataBatch([mx.nd.array(X, dtype="float64")], [mx.nd.array(Y, dtype="float64")])
        for _ in range(3):
            mod.forward_backward(batch)
            mod.update()
        found = mod.get_params()[0]
        return [{n: a.asnumpy() for n, a in found.items()}, {"out": mod.get_outputs()[0].asnumpy()}]

    many, one = run([mx.cpu(i) for i in range(R)]), run([mx.cpu(0)])
    for a, b in zip(many, one, strict=True):
        for n in a:
            np.testing.assert_allclose(a[n], b[n], rtol=1e-12, atol=1e-12)


def test_row_sparse_gradients_of_several_devices() -> None:
    def run(contexts: list) -> np.ndarray:
        net = nn.Embedding(6, 2, sparse_grad=True)
        net.initialize(ctx=contexts)
        net.weight.set_data(mx.nd.array(np.arange(12).reshape(6, 2)))
        trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
        for _ in range(2):
            parts = mx.gluon.utils.split_and_load(np.array([0, 2, 2, 5]), contexts)
            with mx.autograd.record():
                losses = [(net(p) ** 2).sum() for p in parts]
            mx.autograd.backward(losses)
            trainer.step(4)
        return net.weight.data(contexts[-1]).asnumpy()

    np.testing.assert_allclose(run([mx.cpu(0), mx.cpu(1)]), run([mx.cpu(0)]), rtol=1e-6)


def test_groups_within_devices_update_on_their_own_contexts() -> None:
    def net():
        with mx.AttrScope(ctx_group="far"):
            h = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4, name="a")
        return mx.sym.LinearRegressionOutput(mx.sym.FullyConnected(h, num_hidden=2, name="b"), mx.sym.var("label"))

    def run(contexts: list, groups: list | None) -> list[np.ndarray]:
        mod = mx.mod.Module(net(), label_names=["label"], context=contexts, group2ctxs=groups)
        mod.bind([("data", X.shape)], [("label", Y.shape)])
        values = np.random.RandomState(1)
        shapes = {"a_weight": (4, 5), "a_bias": (4,), "b_weight": (2, 4), "b_bias": (2,)}
        mod.init_params(arg_params={n: mx.nd.array(values.randn(*s)) for n, s in shapes.items()})
        mod.init_optimizer("local", "sgd", {"learning_rate": 0.1, "momentum": 0.9})
        for _ in range(2):
            mod.forward_backward(mx.io.DataBatch([mx.nd.array(X)], [mx.nd.array(Y)]))
            mod.update()
        return [a.asnumpy() for _, a in sorted(mod.get_params()[0].items())]

    placed = run([mx.cpu(0), mx.cpu(1)], [{"far": mx.cpu(2)}, {"far": mx.cpu(3)}])
    for a, b in zip(placed, run([mx.cpu(0)], None), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
