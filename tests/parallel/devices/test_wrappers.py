"""`DataParallel`, names of devices, and uneven parts: as one device with the whole batch."""

from __future__ import annotations

import numpy as np
import pytest

import dualmx as mx
from dualmx.gluon import nn
from dualmx.gluon.parallel import DataParallel, devices, rest

RNG = np.random.RandomState(3)
X, Y = RNG.randn(11, 5), RNG.randn(11, 2)


def network(batch_norm: str = "", dropout: float = 0.0) -> nn.HybridSequential:
    net = nn.HybridSequential()
    net.add(nn.Dense(4, activation="tanh", in_units=5))
    if batch_norm:
        net.add(mx.gluon.contrib.nn.SyncBatchNorm(in_channels=4) if batch_norm == "sync" else nn.BatchNorm())
    if dropout:
        net.add(nn.Dropout(dropout))
    net.add(nn.Dense(2, in_units=4))
    net.cast("float64")
    return net


def fill(net: mx.gluon.Block) -> None:
    values = np.random.RandomState(1)
    for p in net.collect_params().values():
        if "weight" in p.name or "bias" in p.name:
            p.set_data(mx.nd.array(values.randn(*p.shape) * 0.3, dtype="float64"))


def values_of(net: mx.gluon.Block, k: int = 0) -> list[np.ndarray]:
    return [p.list_data()[k].asnumpy() for p in net.collect_params().values()]


def float64(a: np.ndarray) -> mx.nd.NDArray:
    return mx.nd.array(a, dtype="float64")


OPTIMIZERS = {
    "sgd": {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.01},
    "adam": {"learning_rate": 0.05},
    "rmsprop": {"learning_rate": 0.05},
    "lars": {"learning_rate": 0.1, "momentum": 0.9},
}


def train_parts(contexts: list, optimizer: str, rows: int = 11, update_on_kvstore: bool | None = None, bn: str = ""):
    net = network(bn)
    net.initialize(ctx=contexts)
    fill(net)
    net.hybridize()
    trainer = mx.gluon.Trainer(
        net.collect_params(), optimizer, dict(OPTIMIZERS[optimizer]), update_on_kvstore=update_on_kvstore
    )
    loss_of = mx.gluon.loss.L2Loss()
    for _ in range(3):
        xs = mx.gluon.utils.split_and_load(float64(X[:rows]), contexts, even_split=False)
        ys = mx.gluon.utils.split_and_load(float64(Y[:rows]), contexts, even_split=False)
        with mx.autograd.record():
            losses = [loss_of(net(x), y) for x, y in zip(xs, ys, strict=True)]
        mx.autograd.backward(losses)
        trainer.step(rows)
    return net


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_uneven_parts_equal_the_whole_batch(optimizer: str) -> None:
    contexts = [mx.cpu(i) for i in range(4)]
    many, one = train_parts(contexts, optimizer), train_parts([mx.cpu(0)], optimizer)
    for k in range(4):
        for a, b in zip(values_of(many, k), values_of(one), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_statistics_of_all_devices_equal_those_of_the_whole_batch() -> None:
    contexts = [mx.cpu(i) for i in range(4)]
    many, one = train_parts(contexts, "sgd", 8, bn="sync"), train_parts([mx.cpu(0)], "sgd", 8, bn="own")
    for k in range(4):
        for a, b in zip(values_of(many, k), values_of(one), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("in_store", [True, False])
def test_a_loop_of_store_and_backward_equals_the_whole_batch(in_store: bool) -> None:
    def run(contexts: list) -> np.ndarray:
        kv = mx.kv.create("device")
        weights = [mx.nd.ones((5, 2), ctx=c, dtype="float64") for c in contexts]
        for w in weights:
            w.attach_grad()
        kv.init("w", weights[0])
        optimizer = mx.optimizer.create("adam", learning_rate=0.1, rescale_grad=1 / len(X))
        if in_store:
            kv.set_optimizer(optimizer)
        updater = mx.optimizer.get_updater(optimizer)
        for _ in range(3):
            xs = mx.gluon.utils.split_and_load(float64(X), contexts, even_split=False)
            ys = mx.gluon.utils.split_and_load(float64(Y), contexts, even_split=False)
            with mx.autograd.record():
                losses = [((mx.nd.dot(x, w) - y) ** 2).sum() for x, y, w in zip(xs, ys, weights, strict=True)]
            mx.autograd.backward(losses)
            kv.push("w", [w.grad for w in weights])
            if in_store:
                kv.pull("w", out=weights)
            else:
                total = mx.nd.zeros((5, 2), dtype="float64")
                kv.pull("w", out=total)
                updater("w", total, weights[0])
                for w in weights[1:]:
                    weights[0].copyto(w)
        return weights[-1].asnumpy()

    np.testing.assert_allclose(run([mx.cpu(i) for i in range(4)]), run([mx.cpu(0)]), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("optimizer", ["adam", "rmsprop"])
def test_module_by_shares_of_work(optimizer: str) -> None:
    def run(contexts: list, shares: list | None) -> list[np.ndarray]:
        h = mx.sym.Activation(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4, name="a"), act_type="tanh")
        net = mx.sym.LinearRegressionOutput(mx.sym.FullyConnected(h, num_hidden=2, name="b"), mx.sym.var("label"))
        mod = mx.mod.Module(net, label_names=["label"], context=contexts, work_load_list=shares)
        mod.bind([mx.io.DataDesc("data", X.shape, np.float64)], [mx.io.DataDesc("label", Y.shape, np.float64)])
        values = np.random.RandomState(1)
        shapes = {"a_weight": (4, 5), "a_bias": (4,), "b_weight": (2, 4), "b_bias": (2,)}
        mod.init_params(arg_params={n: float64(values.randn(*s)) for n, s in shapes.items()})
        mod.init_optimizer("device", optimizer, {"learning_rate": 0.05})
        for _ in range(3):
            mod.forward_backward(mx.io.DataBatch([float64(X)], [float64(Y)]))
            mod.update()
        return [a.asnumpy() for _, a in sorted(mod.get_params()[0].items())]

    for a, b in zip(run([mx.cpu(0), mx.cpu(1), mx.cpu(2)], [1, 2, 1]), run([mx.cpu(0)], None), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("rows", [11, 3], ids=["more rows", "fewer rows than devices"])
def test_data_parallel_is_called_like_the_network(rows: int) -> None:
    def run(wrap) -> tuple[list[np.ndarray], float]:
        net = wrap(network())
        net.initialize()
        fill(net)
        net.hybridize()
        trainer = mx.gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.05})
        for _ in range(3):
            with mx.autograd.record():
                loss = ((net(float64(X[:rows])) - float64(Y[:rows])) ** 2).mean()
            loss.backward()
            trainer.step(1)
        return values_of(net), float(loss.asscalar())

    (many, a), (one, b) = run(lambda net: DataParallel(net, [0, 1, 2, 3])), run(lambda net: net)
    assert abs(a - b) < 1e-12
    for x, y in zip(many, one, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


def test_data_parallel_takes_over_what_is_initialized_and_hands_gradients_to_its_input() -> None:
    net = network()
    net.initialize()
    fill(net)
    before = values_of(net)
    wrapped = DataParallel(net, ["cpu:2", "cpu:5"])
    assert net[0].weight.list_ctx() == [mx.cpu(2), mx.cpu(5)]
    for k in range(2):
        assert all(np.array_equal(a, b) for a, b in zip(values_of(net, k), before, strict=True))
    x = float64(X)
    x.attach_grad()
    with mx.autograd.record():
        y = wrapped(x)
        loss = (y * y).sum()
    loss.backward()
    assert y.context == mx.cpu(2)
    numeric = [(X + d) for d in 1e-6 * np.eye(5)]
    up = [(wrapped(float64(n)).asnumpy() ** 2).sum(1) for n in numeric]
    base = (wrapped(float64(X)).asnumpy() ** 2).sum(1)
    np.testing.assert_allclose(x.grad.asnumpy().T, (np.array(up) - base) / 1e-6, atol=1e-4)


@pytest.mark.usefixtures("one_tier")
def test_dropout_differs_between_the_parts_and_repeats_with_the_seed() -> None:
    net = DataParallel(network(dropout=0.5), 4)
    net.initialize()
    fill(net)

    def draw() -> np.ndarray:
        mx.random.seed(5)
        with mx.autograd.record():
            return net(float64(np.tile(X[:2], (4, 1)))).asnumpy()

    first, second = draw(), draw()
    assert np.array_equal(first, second)
    assert not np.array_equal(first[:2], first[2:4])


def test_names_of_devices() -> None:
    assert devices() == [mx.cpu(i) for i in range(8)]
    assert devices(2) == [mx.cpu(0), mx.cpu(1)]
    assert devices(["cpu:0", "/cpu:1", "/device:CPU:2", "/job:worker/replica:0/task:0/device:CPU:3", 4, mx.cpu(5)]) == [
        mx.cpu(i) for i in range(6)
    ]
    for wanted, said in (
        ("gpu:0", "'gpu:0': there is no such device; this process has 8 cpu"),
        (["cpu:8"], "device_count=9"),
        (9, "9 devices"),
        ([], "at least one"),
        ("cpu", "expected a name such as"),
        ([0, 0], r"cpu\(0\) is named twice"),
        (0, "1 or more"),
        ([mx.gpu(3)], "no such device"),
    ):
        with pytest.raises(ValueError, match=said):
            devices(wanted)
    for wrong in (1.5, [None]):
        with pytest.raises(TypeError, match="expected"):
            devices(wrong)


def test_misuse_of_data_parallel() -> None:
    with pytest.raises(TypeError, match="expected a Block"):
        DataParallel(3)  # type: ignore[arg-type]
    net = DataParallel(network(), 2)
    net.initialize()
    with pytest.raises(ValueError, match="at least one array"):
        net(3)
    with pytest.raises(ValueError, match="2, 3 rows"):
        net(mx.nd.ones((2, 5)), mx.nd.ones((3, 5)))
    with pytest.raises(ValueError, match="leave it out"):
        net.initialize(ctx=mx.cpu(7))
    rest(net.collect_params().values(), [])
