"""Bridges to Flax and Optax."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx import autograd, gluon, nd
from dualmx.gluon import nn
from dualmx.gluon.bridge import FlaxBlock, OptaxOptimizer, functional

jax = pytest.importorskip("jax")
jnp = jax.numpy
linen = pytest.importorskip("flax.linen")
optax = pytest.importorskip("optax")

X = np.random.RandomState(0).rand(4, 3).astype("float32")


class Net(linen.Module):
    """A Flax network with BatchNorm and Dropout."""

    @linen.compact
    def __call__(self, x: Any, train: bool = False) -> Any:
        x = linen.Dense(5)(x)
        x = linen.BatchNorm(use_running_average=not train, momentum=0.9)(x)
        x = linen.Dropout(0.5, deterministic=not train)(linen.relu(x))
        return linen.Dense(2)(x)


@pytest.mark.slow
def test_flax_forward_and_gradient() -> None:
    module = linen.Dense(3)
    block = FlaxBlock(module, nd.array(X), prefix="f_")
    assert sorted(block.collect_params()) == ["f_params_bias", "f_params_kernel"]
    block.initialize()
    with autograd.record():
        y = block(nd.array(X))
        loss = (y * y).sum()
    loss.backward()
    kernel, bias = (block.params[f"f_params_{n}"] for n in ("kernel", "bias"))
    tree = {"params": {"kernel": kernel.data().as_jax(), "bias": bias.data().as_jax()}}
    np.testing.assert_allclose(y.asnumpy(), module.apply(tree, X), rtol=1e-5)
    wanted = jax.grad(lambda t: (module.apply(t, X) ** 2).sum())(tree)["params"]
    np.testing.assert_allclose(kernel.grad().asnumpy(), wanted["kernel"], rtol=1e-4)
    np.testing.assert_allclose(bias.grad().asnumpy(), wanted["bias"], rtol=1e-4)


def test_flax_state_mode_and_training() -> None:
    block = FlaxBlock(Net(), nd.array(X))
    block.initialize()
    assert [p.grad_req for p in block.collect_params("flaxblock.*batch_stats.*").values()] == ["null", "null"]
    x = nd.array(X)
    first, second = block(x).asnumpy(), block(x).asnumpy()
    np.testing.assert_allclose(
        second, first, rtol=1e-5
    )  # the first program initializes as well, and rounds differently
    np.testing.assert_array_equal(block(x).asnumpy(), second)
    mean = next(p for p in block.collect_params().values() if p.name.endswith("mean"))
    assert abs(mean.data().asnumpy()).max() == 0
    trainer = gluon.Trainer(block.collect_params(), "sgd", {"learning_rate": 0.05})
    losses = []
    for _ in range(60):
        with autograd.record():
            loss = gluon.loss.L2Loss()(block(x), nd.ones((4, 2)))
        loss.backward()
        trainer.step(4)
        losses.append(float(loss.mean().asscalar()))
    assert abs(mean.data().asnumpy()).max() > 0
    assert np.mean(losses[-10:]) < np.mean(losses[:10]) / 2


def test_flax_without_example() -> None:
    net = nn.Sequential()
    net.add(FlaxBlock(linen.Dense(4)), nn.Dense(2))
    net.initialize()
    assert net(nd.array(X)).shape == (4, 2)
    assert len(net.collect_params()) == 4


def test_flax_parameters_are_saved(tmp_path: Path) -> None:
    a, b = (FlaxBlock(Net(), nd.array(X)) for _ in range(2))
    a.initialize()
    a.save_parameters(str(tmp_path / "p"))
    b.load_parameters(str(tmp_path / "p"))
    np.testing.assert_array_equal(a(nd.array(X)).asnumpy(), b(nd.array(X)).asnumpy())


def test_flax_needs_a_module() -> None:
    with pytest.raises(TypeError, match="flax.linen module"):
        FlaxBlock(nn.Dense(2))


def build() -> nn.HybridSequential:
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(5, activation="relu"), nn.BatchNorm(), nn.Dense(2))
    net.initialize(mx.init.Xavier())
    return net


@pytest.mark.slow
def test_functional_equals_the_block() -> None:
    net = build()
    fn, params = functional(net, nd.array(X))
    assert set(params) == set(net.collect_params())
    np.testing.assert_allclose(jax.jit(fn)(params, X), net(nd.array(X)).asnumpy(), rtol=1e-5, atol=1e-6)
    with autograd.record(train_mode=False):
        loss = (net(nd.array(X)) ** 2).sum()
    loss.backward()
    grads = jax.grad(lambda p: (fn(p, X) ** 2).sum())(params)
    weight = net[0].weight
    np.testing.assert_allclose(grads[weight.name], weight.grad().asnumpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["predict", "train", "always", "loop"])
def test_functional_needs_a_key_where_it_draws(mode) -> None:
    x = mx.sym.var("x")
    symbol = mx.sym.LeakyReLU(
        mx.sym.Dropout(x, p=0.5, mode="always" if mode == "always" else "training"), act_type="rrelu"
    )
    if mode == "loop":
        symbol = mx.sym.contrib.foreach(lambda row, s: (row + mx.sym.random.normal(shape=(1,)), s), x, [])[0]
    fn, _ = functional(symbol, train=mode == "train")
    if mode == "predict":
        assert jax.jit(lambda a: fn({}, a))(np.ones((2, 1), "f")).shape == (2, 1)
        return
    with pytest.raises(mx.MXNetError, match="draws random numbers"):
        fn({}, np.ones((2, 1), "f"))


@pytest.mark.slow
def test_functional_in_an_optax_loop() -> None:
    fn, params = functional(build(), nd.array(X), train=True)
    tx = optax.adam(0.05)
    state = tx.init(params)
    target = jnp.ones((4, 2))

    def loss(p: Any) -> Any:
        out, moved = fn(p, X)
        return ((out - target) ** 2).mean(), moved

    @jax.jit
    def step(p: Any, state: Any) -> Any:
        (value, moved), grads = jax.value_and_grad(loss, has_aux=True)(p)
        updates, state = tx.update(grads, state, p)
        return {**optax.apply_updates(p, updates), **moved}, state, value

    values = []
    for _ in range(30):
        params, state, value = step(params, state)
        values.append(float(value))
    assert values[-1] < values[0] / 10
    assert abs(params["net_batchnorm0_running_mean"]).max() > 0


def test_functional_symbol() -> None:
    symbol = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    weight = np.arange(6).reshape(2, 3).astype("float32")
    fn, params = functional(symbol, params={"fc_weight": weight, "fc_bias": np.zeros(2, "float32")})
    np.testing.assert_allclose(jax.jit(fn)(params, X), X @ weight.T, rtol=1e-5)


def test_functional_random_and_errors() -> None:
    net = nn.HybridSequential()
    net.add(nn.Dropout(0.5))
    fn, params = functional(net, nd.ones((100,)), train=True)
    with pytest.raises(ValueError, match="key="):
        fn(params, jnp.ones(100))
    out, _ = fn(params, jnp.ones(100), key=jax.random.key(0))
    assert set(np.unique(out)) == {0, 2}
    with pytest.raises(ValueError, match="example inputs"):
        functional(net)
    with pytest.raises(TypeError, match="block or a symbol"):
        functional(3)


def regression(net: Any) -> None:
    with autograd.record():
        loss = gluon.loss.L2Loss()(net(nd.array(X)), nd.ones((4, 2)))
    loss.backward()


def make() -> nn.Dense:
    net = nn.Dense(2, in_units=3)
    net.initialize(mx.init.One())
    return net


@pytest.mark.slow
def test_optax_equals_optax() -> None:
    net = make()
    tx = optax.chain(optax.clip_by_global_norm(0.1), optax.adam(0.1))
    trainer = gluon.Trainer(net.collect_params(), tx)
    params = {"bias": jnp.zeros(2), "weight": jnp.ones((2, 3))}
    state = tx.init(params)
    for _ in range(5):
        regression(net)
        grads = {"bias": net.bias.grad().as_jax() / 4, "weight": net.weight.grad().as_jax() / 4}
        trainer.step(4)
        updates, state = tx.update(grads, state, params)
        params = optax.apply_updates(params, updates)
        np.testing.assert_allclose(net.weight.data().asnumpy(), params["weight"], rtol=1e-5)
        np.testing.assert_allclose(net.bias.data().asnumpy(), params["bias"], rtol=1e-5, atol=1e-6)


def test_optax_agrees_with_sgd() -> None:
    a, b = make(), make()
    one = gluon.Trainer(a.collect_params(), "sgd", {"learning_rate": 0.1})
    other = gluon.Trainer(b.collect_params(), optax.sgd(0.1))
    for _ in range(3):
        for net, trainer in ((a, one), (b, other)):
            regression(net)
            trainer.step(4)
    np.testing.assert_allclose(a.weight.data().asnumpy(), b.weight.data().asnumpy(), rtol=1e-6)


def test_optax_learning_rate() -> None:
    net = make()
    trainer = gluon.Trainer(net.collect_params(), optax.inject_hyperparams(optax.sgd)(learning_rate=0.5))
    regression(net)
    trainer.step(4)
    assert trainer.learning_rate == 0.5
    trainer.set_learning_rate(0.0)
    before = net.weight.data().asnumpy()
    regression(net)
    trainer.step(4)
    np.testing.assert_array_equal(net.weight.data().asnumpy(), before)
    fixed = gluon.Trainer(make().collect_params(), optax.sgd(0.1))
    with pytest.raises(mx.MXNetError, match="inject_hyperparams"):
        fixed.set_learning_rate(0.1)


def test_optax_states_round_trip(tmp_path: Path) -> None:
    def steps(net: Any, trainer: gluon.Trainer) -> None:
        for _ in range(2):
            regression(net)
            trainer.step(4)

    net = make()
    trainer = gluon.Trainer(net.collect_params(), optax.adam(0.1))
    steps(net, trainer)
    trainer.save_states(str(tmp_path / "t"))
    net.save_parameters(str(tmp_path / "p"))
    steps(net, trainer)
    again = make()
    again.load_parameters(str(tmp_path / "p"))
    resumed = gluon.Trainer(again.collect_params(), optax.adam(0.1))
    resumed.load_states(str(tmp_path / "t"))
    steps(again, resumed)
    np.testing.assert_allclose(again.weight.data().asnumpy(), net.weight.data().asnumpy(), rtol=1e-6)


def test_optax_object_and_errors() -> None:
    assert isinstance(gluon.Trainer(make().collect_params(), OptaxOptimizer(optax.sgd(0.1))).optimizer, OptaxOptimizer)
    with pytest.raises(TypeError, match="Optax gradient transformation"):
        gluon.Trainer(make().collect_params(), 3)
