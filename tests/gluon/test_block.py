"""Blocks: registration, hooks, containers, both ways of defining a network, errors."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx import autograd, gluon, nd
from dualmx.gluon import nn


class Scale(gluon.HybridBlock):
    """Multiplies by a learned factor, and counts how often its forward runs with each front end."""

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.calls: list[str] = []
        with self.name_scope():
            self.factor = self.params.get("factor", shape=(0,), init="ones", allow_deferred_init=True)

    def hybrid_forward(self, F: Any, x: Any, factor: Any) -> Any:
        self.calls.append(F.__name__)
        return F.broadcast_mul(x, F.reshape(factor, shape=(1, -1)))


def test_parameters_arrive_as_keywords() -> None:
    net = Scale()
    net.initialize()
    net.factor.shape = (3,)
    net.factor.finish_deferred_init()
    assert net(nd.ones((2, 3))).asnumpy().tolist() == [[1, 1, 1], [1, 1, 1]]
    assert net.calls == ["dualmx.ndarray"]


def test_plain_forward() -> None:
    class Net(gluon.Block):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Dense(2)

        def forward(self, x: Any, twice: bool = False) -> Any:
            y = self.fc(x)
            return y * 2 if twice else y

    net = Net()
    net.initialize()
    x = nd.ones((1, 3))
    np.testing.assert_allclose(net(x, True).asnumpy(), 2 * net(x).asnumpy())


def test_hybrid_block_with_own_forward() -> None:
    class Double(gluon.HybridBlock):
        def forward(self, x: Any) -> Any:
            return x * 2

    net = Double()
    net.hybridize()
    assert net(nd.ones((2,))).asnumpy().tolist() == [2, 2]


def test_subclass_of_a_layer_keeps_its_own_hybrid_forward() -> None:
    class Negative(nn.Dense):
        def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
            return -super().hybrid_forward(F, x, weight, bias)

    a = nn.Dense(2, in_units=3)
    a.initialize()
    b = Negative(2, in_units=3, params=a.params)
    x = nd.ones((1, 3))
    np.testing.assert_allclose(b(x).asnumpy(), -a(x).asnumpy())


def test_settings_of_a_layer_can_change() -> None:
    drop = nn.Dropout(0.0)
    x = nd.ones((100,))
    drop._rate = 1.0
    with autograd.record():
        assert drop(x).asnumpy().sum() == 0
    conv = nn.Conv2D(1, 1, in_channels=1)
    conv.initialize()
    conv._kwargs["stride"] = (2, 2)
    assert conv(nd.ones((1, 1, 4, 4))).shape == (1, 1, 2, 2)


def test_undefined_forward() -> None:
    with pytest.raises(NotImplementedError, match="must define forward"):
        gluon.Block()(1)
    with pytest.raises(NotImplementedError, match="must define hybrid_forward"):
        gluon.HybridBlock()(nd.ones((1,)))


def test_wrong_input_type() -> None:
    for kind in (TypeError, ValueError):
        with pytest.raises(kind, match="expected an NDArray or a Symbol"):
            nn.Dense(3)(3.0)


def test_attributes_keep_their_kind() -> None:
    net = nn.HybridSequential()
    net.fc = nn.Dense(2)
    with pytest.raises(TypeError, match="'fc' holds a Dense"):
        net.fc = 3
    with pytest.raises(TypeError, match="cannot become a Flatten"):
        net.fc = nn.Flatten()
    net.fc = nn.Dense(3)
    dense = nn.Dense(2)
    with pytest.raises(ValueError, match="already holds a parameter"):
        dense.weight = gluon.Parameter("other")


def test_hybrid_children_only() -> None:
    net = nn.HybridSequential()
    for child in (3, nn.Sequential()):
        with pytest.raises(ValueError, match="children of a HybridBlock"):
            net.add(child)


def test_sequential() -> None:
    net = nn.Sequential()
    net.add(nn.Dense(3), nn.Dense(4), nn.Flatten())
    assert len(net) == 3
    assert isinstance(net[-1], nn.Flatten)
    assert [type(b).__name__ for b in net[0:2]] == ["Dense", "Dense"]
    assert repr(net[1:2]).startswith("Sequential(\n  (0): Dense(None -> 4")
    assert repr(nn.Sequential()) == "Sequential(\n\n)"


def test_concatenate_and_identity() -> None:
    x = nd.ones((2, 3))
    for kind in (nn.Concatenate, nn.HybridConcatenate):
        net = kind(axis=1)
        net.add(nn.Dense(2), nn.Identity())
        net.initialize()
        assert net(x).shape == (2, 5)
        net.hybridize()
        assert net(x).shape == (2, 5)


def test_hooks() -> None:
    net = nn.Dense(2, in_units=2)
    net.initialize()
    seen: list[Any] = []
    before = net.register_forward_pre_hook(lambda b, i: seen.append(("pre", b, len(i))))
    after = net.register_forward_hook(lambda b, i, o: seen.append(("post", b, o.shape)))
    net(nd.ones((1, 2)))
    assert seen == [("pre", net, 1), ("post", net, (1, 2))]
    before.detach()
    before.detach()
    after.detach()
    net(nd.ones((1, 2)))
    assert len(seen) == 2
    with net.register_forward_hook(lambda *_: seen.append("with")):
        net(nd.ones((1, 2)))
    net(nd.ones((1, 2)))
    assert seen[2:] == ["with"]


def test_apply_visits_children_first() -> None:
    net = nn.Sequential(prefix="s_")
    with net.name_scope():
        net.add(nn.Dense(2, activation="relu"), nn.Flatten())
    names: list[str] = []
    assert net.apply(lambda b: names.append(b.name)) is net
    assert names == ["s_dense0_relu", "s_dense0", "s_flatten0", "s"]


def test_unregistered_containers_warn() -> None:
    net = gluon.Block()
    net.layers = [nn.Dense(2)]
    with pytest.warns(UserWarning, match="Block.layers is a plain container"):
        assert list(net.collect_params()) == []


def test_cast() -> None:
    net = nn.HybridSequential()
    net.add(nn.Dense(2, in_units=2), nn.BatchNorm(in_channels=2))
    net.initialize()
    net.cast("float16")
    assert net[0].weight.data().dtype == np.float16
    assert net[1].gamma.data().dtype == np.float32


def test_shared_parameters() -> None:
    a = nn.Dense(2, in_units=2)
    b = nn.Dense(2, in_units=2, params=a.params)
    a.initialize(init="ones")
    assert b.weight is a.weight
    a.weight.set_data(nd.ones((2, 2)) * 3)
    assert b(nd.ones((1, 2))).asnumpy().tolist() == [[6, 6]]


def _trained(net: gluon.Block, x: mx.nd.NDArray) -> np.ndarray:
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    with autograd.record():
        loss = (net(x) ** 2).sum()
    loss.backward()
    trainer.step(1)
    return net(x).asnumpy()


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("way", [copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))], ids=["deepcopy", "pickle"])
def test_a_copy_has_the_values_and_learns_by_itself(way: Callable[[Any], Any], hybridize: bool) -> None:
    net = nn.HybridSequential()
    first = nn.Dense(3, activation="relu")
    net.add(nn.Conv2D(2, 1), nn.BatchNorm(), nn.Flatten(), first, nn.Dense(3, in_units=3), nn.Dropout(0.5))
    net.add(nn.Dense(3, in_units=3, params=net[4].params))
    net.initialize()
    if hybridize:
        net.hybridize()
    x = nd.random.uniform(shape=(2, 3, 4, 4))
    before = _trained(net, x)
    twin = way(net)
    np.testing.assert_allclose(twin(x).asnumpy(), before, rtol=1e-6)
    assert twin[4].weight is twin[6].weight is not net[4].weight
    assert list(twin.collect_params()) == list(net.collect_params())
    assert not np.allclose(_trained(twin, x), before)
    np.testing.assert_allclose(net(x).asnumpy(), before, rtol=1e-6)


def test_copies_of_losses_and_symbol_blocks() -> None:
    data, x = mx.sym.var("data"), nd.ones((1, 2))
    block = gluon.SymbolBlock(mx.sym.FullyConnected(data, num_hidden=3, name="fc"), data)
    block.initialize()
    want = block(x).asnumpy()
    loss = gluon.loss.L2Loss()
    loss(x, x)
    for way in (copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))):
        assert way(block)(x).asnumpy().tolist() == want.tolist()
        assert way(loss)(x, x + 2).asscalar() == 2


def test_a_shallow_copy_shares_the_parameters() -> None:
    net = nn.Dense(2, in_units=2)
    net.initialize()
    grad = net.weight.grad()
    twin = copy.copy(net)
    assert twin.weight is net.weight and net.weight.grad() is grad
    assert copy.copy(net.weight).data() is net.weight.data()


def test_summary(capsys: pytest.CaptureFixture[str]) -> None:
    class Tied(gluon.HybridBlock):
        def __init__(self, **kwargs: Any):
            super().__init__(**kwargs)
            with self.name_scope():
                self.a = nn.Dense(3)
                self.b = nn.Dense(3, params=self.a.params)

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return self.b(self.a(x)), [x, x]

    net = Tied()
    net.initialize()
    net.summary(nd.ones((2, 3)))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "        Layer (type)                                Output Shape         Param #"
    assert lines[3:7] == [
        "               Input                                      (2, 3)               0",
        "             Dense-1                                      (2, 3)              12",
        "             Dense-2                                      (2, 3)              12",
        "              Tied-3                    (2, 3), [(2, 3), (2, 3)]               0",
    ]
    assert lines[9:14] == [
        "   Total params: 24",
        "   Trainable params: 24",
        "   Non-trainable params: 0",
        "Shared params in forward computation graph: 12",
        "Unique parameters in model: 12",
    ]
    net.hybridize()
    with pytest.raises(ValueError, match="hybridize"):
        net.summary(nd.ones((2, 3)))
    assert not net._forward_hooks


def test_layer_argument_errors() -> None:
    for make, text in (
        (lambda: nn.Conv2D(3, 2, layout="foo"), "layout='foo'"),
        (lambda: nn.Conv2D(3, (2, 2, 2)), "kernel_size"),
        (lambda: nn.MaxPool2D((2, 2, 2)), "pool_size"),
        (lambda: nn.AvgPool3D(layout="NHWC"), "layout='NHWC'"),
        (lambda: nn.LeakyReLU(-1), "alpha=-1"),
        (lambda: nn.Activation("foo"), "act_type='foo'"),
        (lambda: nn.Dropout(1.5), "p=1.5"),
        (lambda: nn.ReflectionPad2D((1, 2)), "8 numbers"),
        (lambda: nn.Lambda("rleu"), "did you mean 'relu'"),
        (lambda: gluon.loss.CTCLoss(layout="foo"), "layout='foo'"),
        (lambda: gluon.loss.LogisticLoss(label_format="foo"), "label_format='foo'"),
    ):
        with pytest.raises(ValueError, match=text):
            make()
    with pytest.raises(ValueError, match="expected a function"):
        nn.HybridLambda(3)


def test_channels_last() -> None:
    x = np.random.RandomState(0).rand(2, 5, 6, 3).astype("float32")
    last = nn.Conv2D(4, 3, layout="NHWC")
    last.initialize()
    out = last(nd.array(x))
    assert last.weight.shape == (4, 3, 3, 3)
    assert repr(last) == "Conv2D(3 -> 4, kernel_size=(3, 3), stride=(1, 1))"
    first = nn.Conv2D(4, 3, in_channels=3)
    first.initialize()
    first.weight.set_data(nd.transpose(last.weight.data(), axes=(0, 3, 1, 2)))
    np.testing.assert_allclose(
        first(nd.array(x.transpose(0, 3, 1, 2))).asnumpy().transpose(0, 2, 3, 1), out.asnumpy(), atol=1e-5
    )


def test_dropout_scales_survivors() -> None:
    drop = nn.Dropout(0.25)
    x = nd.ones((10000,))
    assert drop(x).asnumpy().tolist() == x.asnumpy().tolist()
    with autograd.record():
        y = drop(x).asnumpy()
    np.testing.assert_allclose(np.unique(y), [0, 1 / 0.75])
    assert abs((y == 0).mean() - 0.25) < 0.02


def test_deferred_initialization_inside_record() -> None:
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, activation="relu"), nn.BatchNorm(), nn.Flatten(), nn.Dense(3))
    net.initialize()
    with autograd.record():
        loss = net(nd.ones((2, 3, 6, 6))).sum()
    loss.backward()
    assert net[0].weight.shape == (4, 3, 3, 3)
    assert net[3].weight.grad().shape == (3, 64)


def test_impossible_shape_inference() -> None:
    conv = nn.Conv2D(4, 3)
    conv.initialize()
    with pytest.raises(ValueError, match="deferred initialization failed"):
        conv(nd.ones((2, 3)))

    class Unused(gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.w = self.params.get("w", shape=(0,), allow_deferred_init=True)

        def hybrid_forward(self, F: Any, x: Any, w: Any) -> Any:
            return x * 2

    net = Unused()
    net.initialize()
    with pytest.raises(mx.MXNetError, match="w"):
        net(nd.ones((2,)))


def test_multi_context_forward() -> None:
    net = nn.Dense(2, in_units=2)
    net.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    outs = [net(nd.ones((1, 2), ctx=c)) for c in (mx.cpu(0), mx.cpu(1))]
    assert [o.context for o in outs] == [mx.cpu(0), mx.cpu(1)]
    np.testing.assert_array_equal(outs[0].asnumpy(), outs[1].asnumpy())


def test_pixel_shuffle() -> None:
    shuffle = gluon.contrib.nn.PixelShuffle2D((2, 3))
    x = np.arange(48).reshape(1, 12, 2, 2).astype("float32")
    wanted = x.reshape(1, 2, 2, 3, 2, 2).transpose(0, 1, 4, 2, 5, 3).reshape(1, 2, 4, 6)
    np.testing.assert_array_equal(shuffle(nd.array(x)).asnumpy(), wanted)
    shuffle.hybridize()
    np.testing.assert_array_equal(shuffle(nd.array(x)).asnumpy(), wanted)
    assert repr(shuffle) == "PixelShuffle2D((2, 3))"


def test_concurrent() -> None:
    net = gluon.contrib.nn.HybridConcurrent(axis=1)
    net.add(nn.Dense(2), gluon.contrib.nn.Identity())
    net.initialize()
    assert net(nd.ones((2, 3))).shape == (2, 5)


def test_hooks_of_inner_blocks_receive_arrays_of_the_users_kind() -> None:
    mx.npx.set_np()
    try:
        net = nn.HybridConcatenate(axis=1)
        net.add(nn.Dense(2), nn.Dense(3))
        net.initialize()
        seen: list[type] = []
        net[0].register_forward_pre_hook(lambda block, given: seen.append(type(given[0])))
        net[0].register_forward_hook(lambda block, given, result: seen.extend((type(given[0]), type(result))))
        y = net(mx.np.ones((2, 4)))
        assert type(y) is mx.np.ndarray and y.shape == (2, 5) and seen == [mx.np.ndarray] * 3
    finally:
        mx.npx.reset_np()
