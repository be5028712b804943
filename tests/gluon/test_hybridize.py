"""Hybridization: traced once, equal to imperative execution, structures, hooks, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx import autograd, gluon, nd
from dualmx.gluon import nn


class Counted(gluon.HybridBlock):
    """Counts its traces and returns a nested result."""

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.seen: list[str] = []

    def hybrid_forward(self, F: Any, x: Any, y: Any, z: Any = None) -> Any:
        self.seen.append(F.__name__.split(".")[-1])
        other = y[0] + y[1] if isinstance(y, (list, tuple)) else y
        return x + other, [x * 2, x * 3]


def test_traced_once() -> None:
    net = Counted()
    net.hybridize()
    for n in (2, 3):
        out, (double, triple) = net(nd.ones((n,)), nd.ones((n,)))
        assert out.asnumpy().tolist() == [2] * n
        assert double.asnumpy().tolist() == [2] * n
        assert triple.asnumpy().tolist() == [3] * n
    assert net.seen == ["symbol"]
    net.hybridize()
    net(nd.ones((2,)), nd.ones((2,)))
    assert net.seen == ["symbol", "symbol"]
    net.hybridize(False)
    net(nd.ones((2,)), nd.ones((2,)))
    assert net.seen[-1] == "ndarray"


def test_structures() -> None:
    net = Counted()
    net.hybridize()
    one = nd.ones((2,))
    assert net(one, [one, one])[0].asnumpy().tolist() == [3, 3]
    with pytest.raises(ValueError, match="nesting of the inputs"):
        net(one, one)
    net.hybridize()
    assert net(one, one, None)[0].asnumpy().tolist() == [2, 2]
    net.hybridize()
    with pytest.raises(TypeError, match="got int"):
        net(one, one, 3)
    net.hybridize(False)
    assert net(one, one, 3)[0].asnumpy().tolist() == [2, 2]


def test_flags_are_accepted() -> None:
    net = nn.Dense(2)
    net.initialize()
    net.hybridize(static_alloc=True, static_shape=True, inline_limit=3, forward_bulk_size=2, backward_bulk_size=2)
    assert net(nd.ones((1, 3))).shape == (1, 2)
    with pytest.raises(mx.MXNetError, match="backend='foo'"):
        net.hybridize(backend="foo")
    with pytest.raises(ValueError, match="backend"):
        net.optimize_for(nd.ones((1, 3)))
    net.hybridize(backend="MKLDNN")
    net.optimize_for(nd.ones((1, 3)), backend="MKLDNN_QUANTIZE")
    assert net(nd.ones((1, 3))).shape == (1, 2)


def test_backends_of_mxnet_leave_the_symbol_as_it_is() -> None:
    out = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    values = {"fc_weight": nd.ones((2, 3)), "fc_bias": nd.ones((2,))}
    assert out.optimize_for("MKLDNN", values, ctx=mx.cpu()).tojson() == out.tojson()
    assert out.get_backend_symbol("MKLDNN").tojson() == out.tojson()
    with pytest.raises(ValueError, match="optimize_for: backend='MKLDN': did you mean 'MKLDNN'"):
        out.optimize_for("MKLDN")


def build() -> nn.HybridSequential:
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(4, 3, padding=1, activation="relu"),
        nn.BatchNorm(),
        nn.MaxPool2D(),
        nn.Conv2D(6, 3),
        nn.GlobalAvgPool2D(),
        nn.Flatten(),
        nn.Dense(5, activation="tanh"),
        nn.Dense(3),
    )
    return net


def train(net: Any, steps: int, static: bool) -> list[np.ndarray]:
    rng = np.random.RandomState(0)
    x, y = nd.array(rng.rand(4, 2, 8, 8)), nd.array([0, 1, 2, 1])
    net(x)
    for k, param in enumerate(net.collect_params().values()):
        param.set_data(nd.array(np.random.RandomState(k).uniform(0.1, 0.6, param.shape)))
    if static:
        net.hybridize(static_alloc=True)
    loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
    losses = []
    for _ in range(steps):
        with autograd.record():
            loss = loss_fn(net(x), y)
        loss.backward()
        trainer.step(4)
        losses.append(loss.asnumpy())
    return [*losses, *(p.data().asnumpy() for p in net.collect_params().values())]


def test_equals_imperative() -> None:
    results = []
    for static in (False, True):
        net = build()
        net.initialize()
        results.append(train(net, 3, static))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


def test_deferred_shapes_and_statistics() -> None:
    net = build()
    net.initialize()
    net.hybridize()
    x = nd.array(np.random.RandomState(0).rand(4, 2, 8, 8))
    with autograd.record():
        loss = net(x).sum()
    loss.backward()
    assert net[0].weight.shape == (4, 2, 3, 3)
    assert abs(net[1].running_mean.data().asnumpy()).max() > 0
    before = net[1].running_mean.data().asnumpy()
    net(x)
    np.testing.assert_array_equal(net[1].running_mean.data().asnumpy(), before)


def test_training_mode_follows_autograd() -> None:
    net = nn.HybridSequential()
    net.add(nn.Dropout(0.5))
    net.hybridize()
    x = nd.ones((1000,))
    assert net(x).asnumpy().sum() == 1000
    with autograd.record():
        first = net(x).asnumpy()
        second = net(x).asnumpy()
    assert set(np.unique(first)) == {0, 2}
    assert (first != second).any()
    assert net(x).asnumpy().sum() == 1000


def test_hybridized_child_of_a_plain_block() -> None:
    class Net(gluon.Block):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.HybridSequential()
            self.body.add(nn.Dense(3), nn.Dense(2))

        def forward(self, x: Any) -> Any:
            return self.body(x) * 2

    net = Net()
    net.initialize()
    x = nd.ones((1, 4))
    plain = net(x).asnumpy()
    net.hybridize()
    np.testing.assert_allclose(net(x).asnumpy(), plain, rtol=1e-6)
    assert net.body._graph is not None


def test_parameters_set_after_tracing_are_used() -> None:
    net = nn.Dense(1, in_units=2, use_bias=False)
    net.initialize()
    net.hybridize()
    x = nd.ones((1, 2))
    net(x)
    net.weight.set_data(nd.ones((1, 2)) * 5)
    assert net(x).asnumpy().tolist() == [[10]]
    net.collect_params().initialize(mx.init.One(), force_reinit=True)
    assert net(x).asnumpy().tolist() == [[2]]
    net.collect_params().reset_ctx(mx.cpu(1))
    assert net(nd.ones((1, 2), ctx=mx.cpu(1))).context == mx.cpu(1)


def test_constants_in_graphs() -> None:
    class Fixed(gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.c = self.params.get_constant("c", nd.array([1, 2]))

        def hybrid_forward(self, F: Any, x: Any, c: Any) -> Any:
            return x * c

    net = Fixed()
    net.initialize()
    assert net(nd.ones((2,))).asnumpy().tolist() == [1, 2]
    net.hybridize()
    assert net(nd.ones((2,))).asnumpy().tolist() == [1, 2]


def test_multi_context() -> None:
    net = nn.HybridSequential()
    net.add(nn.Dense(3, in_units=2), nn.Dense(1, in_units=3))
    net.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    net.hybridize()
    a, b = (net(nd.ones((1, 2), ctx=c)) for c in (mx.cpu(0), mx.cpu(1)))
    assert b.context == mx.cpu(1)
    np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


def test_op_hook() -> None:
    net = nn.HybridSequential(prefix="n_")
    with net.name_scope():
        net.add(nn.Dense(2, in_units=2, activation="relu"))
    net.initialize()
    seen: list[tuple[str, str, tuple[int, ...]]] = []
    net.register_op_hook(lambda name, op, array: seen.append((name, op, array.shape)))
    net.hybridize()
    net(nd.ones((1, 2)))
    assert seen == [
        ("n_dense0_fwd_output", "FullyConnected", (1, 2)),
        ("n_dense0_relu_fwd_output", "Activation", (1, 2)),
    ]


def test_op_hook_with_inputs() -> None:
    net = nn.Dense(2, in_units=3, prefix="d_")
    net.initialize()
    seen: list[tuple[str, str, tuple[int, ...]]] = []
    net.register_op_hook(lambda name, op, array: seen.append((name, op, array.shape)), monitor_all=True)
    net.hybridize()
    net(nd.ones((1, 3)))
    op = "FullyConnected"
    assert seen == [
        ("d_fwd_data", op, (1, 3)),
        ("d_fwd_weight", op, (2, 3)),
        ("d_fwd_bias", op, (2,)),
        ("d_fwd_output", op, (1, 2)),
    ]


def test_warns_about_hooks() -> None:
    net = nn.Dense(2)
    net.register_forward_hook(lambda *_: None)
    with pytest.warns(UserWarning, match="forward hooks"):
        net.hybridize()


def test_unknown_variable_is_named() -> None:
    class Stray(gluon.HybridBlock):
        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return x + F.var("mystery")

    net = Stray()
    net.hybridize()
    with pytest.raises(ValueError, match="'mystery' is neither an input nor a parameter"):
        net(nd.ones((2,)))


def test_mixed_dtypes_raise_as_when_imperative() -> None:
    net = nn.Dense(2, in_units=3)
    net.initialize()
    net.cast("float16")
    for static in (False, True):
        net.hybridize(static)
        with pytest.raises(ValueError, match="different dtypes"):
            net(nd.ones((1, 3)))
        assert net(nd.ones((1, 3), dtype="float16")).dtype == np.float16


def test_second_instance_compiles_nothing() -> None:
    def run() -> None:
        net = nn.HybridSequential()
        net.add(nn.Dense(4, activation="relu"), nn.BatchNorm(), nn.Dropout(0.3), nn.Dense(2))
        net.initialize()
        net(nd.ones((3, 5)))
        net.hybridize()
        loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
        trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1})
        for _ in range(3):
            with autograd.record():
                loss = loss_fn(net(nd.ones((3, 5))), nd.array([0, 1, 1]))
            loss.backward()
            trainer.step(3)
            loss.wait_to_read()

    run()
    with mx.debug.assert_compiles(0):
        run()
