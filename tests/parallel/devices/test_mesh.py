"""Arrays cut over a mesh: placement, results, and the exchanges in the compiled programs."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx.compile.events import Listener, listeners
from dualmx.gluon import nn

RNG = np.random.RandomState(0)
X, Y = RNG.randn(8, 16).astype("f"), RNG.randint(0, 8, 8).astype("f")


class Texts(Listener):
    """Collects the HLO of what is compiled."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def compiled(self, event) -> None:
        self.texts.append(event.compiled.as_text())

    def __enter__(self) -> Texts:
        listeners.append(self)
        return self

    def __exit__(self, *exc) -> None:
        listeners.remove(self)

    def count(self, what: str) -> int:
        return max((len(re.findall(rf" {what}(?:-start)?\(", t)) for t in self.texts), default=0)


@pytest.fixture
def mesh():
    return mx.parallel.Mesh({"data": 2, "model": 4})


def test_each_device_holds_its_part(mesh) -> None:
    a = mx.parallel.shard(X, ("data", "model"), mesh)
    assert a.context is mesh and a.sharding == ("data", "model") and a.shape == (8, 16)
    assert {s.data.shape for s in a.buffer.addressable_shards} == {(4, 4)}
    np.testing.assert_array_equal(a.asnumpy(), X)
    assert mx.nd.ones((2, 2), ctx=mesh).sharding == (None, None)
    assert mx.nd.ones((2, 2)).sharding is None
    np.testing.assert_array_equal(a.as_in_context(mx.cpu(3)).asnumpy(), X)
    assert a.copy().sharding == ("data", "model")


def test_operations_on_cut_arrays(mesh) -> None:
    a, b = mx.parallel.shard(X, ("data", None), mesh), mx.parallel.shard(X.T.copy(), (None, "model"), mesh)
    np.testing.assert_allclose((mx.nd.dot(a, b) + 1).asnumpy(), X @ X.T + 1, rtol=1e-5)
    c = a * 2
    c[:2] = 0
    c += 1
    want = X * 2
    want[:2] = 0
    np.testing.assert_allclose(c.asnumpy(), want + 1, rtol=1e-6)
    with mesh:
        assert mx.nd.arange(4).context is mesh
        assert mx.nd.random.uniform(shape=(3,)).asnumpy().shape == (3,)


def test_a_contraction_over_a_cut_axis_is_an_all_reduce(mesh) -> None:
    a, b = mx.parallel.shard(X, (None, "model"), mesh), mx.parallel.shard(X.T.copy(), ("model", None), mesh)
    with Texts() as seen:
        mx.nd.dot(a, b).asnumpy()
    assert seen.count("all-reduce") == 1 and seen.count("all-gather") == 0


def test_a_constraint_gathers(mesh) -> None:
    a = mx.parallel.shard(X, (None, "model"), mesh)
    with Texts() as seen:
        b = mx.nd.contrib.sharding_constraint(a * 3, spec="(None, None)")
        np.testing.assert_allclose(b.asnumpy(), X * 3, rtol=1e-6)
    assert seen.count("all-gather") == 1 and b.sharding == (None, None)
    c = mx.nd.contrib.sharding_constraint(a * 3, spec="('data', None)")
    assert c.sharding == ("data", None)


def network(hybridize: bool = True):
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(32, activation="relu", in_units=16), nn.Dense(8, in_units=32))
    if hybridize:
        net.hybridize()
    return net


def fit(net, ctx, steps: int = 3) -> tuple[list[np.ndarray], Any]:
    values = np.random.RandomState(4)
    for p in net.collect_params().values():
        p.set_data(mx.nd.array(values.randn(*p.shape) * 0.2))
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
    loss_of = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    for _ in range(steps):
        (x,), (y,) = (mx.gluon.utils.split_and_load(mx.nd.array(v), [ctx]) for v in (X, Y))
        with mx.autograd.record():
            loss = loss_of(net(x), y)
        loss.backward()
        trainer.step(len(X))
    return [p.data().asnumpy() for p in net.collect_params().values()], trainer


RULES = [("dense0_weight$", ("model", None)), ("dense0_bias$", ("model",)), ("dense1_weight$", (None, "model"))]


@pytest.mark.parametrize("hybridize", [True, False])
def test_training_with_cut_parameters_equals_one_device(mesh, hybridize: bool) -> None:
    plain = network()
    plain.initialize(ctx=mx.cpu(0))
    want, _ = fit(plain, mx.cpu(0))
    net = network(hybridize)
    net.shard(RULES)
    net.initialize(ctx=mesh)
    with Texts() as seen:
        got, trainer = fit(net, mesh)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    assert seen.count("all-reduce") >= 1
    for p in net.collect_params().values():
        spec = p.shard + (None,) * (len(p.shape) - len(p.shard))
        assert p.data().sharding == spec and p.grad().sharding == spec, p.name
    states = trainer.updaters[0].states
    cut = [s.sharding for s in states.values()]
    assert ("model", None) in cut and (None, "model") in cut


def test_after_the_first_steps_nothing_is_compiled(mesh) -> None:
    net = network()
    net.shard(RULES)
    net.initialize(ctx=mesh)
    fit(net, mesh, 3)
    with Texts() as seen:
        fit(net, mesh, 3)
    assert not seen.texts


def test_parts_of_a_model_larger_than_any_device() -> None:
    mesh = mx.parallel.Mesh({"model": 8})
    net = nn.Dense(64, in_units=128, use_bias=False)
    net.shard({"weight": ("model", None)})
    net.initialize(ctx=mesh)
    x = mx.nd.ones((2, 128), ctx=mesh)
    with mx.autograd.record():
        loss = (net(x) ** 2).sum()
    loss.backward()
    whole = 64 * 128 * 4
    for a in (net.weight.data(), net.weight.grad()):
        a.wait_to_read()
        assert {s.data.nbytes for s in a.buffer.addressable_shards} == {whole // 8}


def test_symbols_and_modules_on_a_mesh(mesh) -> None:
    def run(ctx) -> list[np.ndarray]:
        w = mx.sym.var("w", shard=("model", None))
        h = mx.sym.FullyConnected(mx.sym.var("data"), w, num_hidden=8, no_bias=True, name="fc")
        exe: Any = mx.sym.SoftmaxOutput(h, name="softmax").simple_bind(ctx, data=X.shape)
        if ctx is mesh:
            assert exe.arg_dict["w"].sharding == ("model", None)
        exe.arg_dict["w"][:] = mx.nd.array(np.random.RandomState(1).randn(8, 16))
        exe.arg_dict["softmax_label"][:] = mx.nd.array(Y)
        exe.forward(is_train=True, data=mx.nd.array(X))
        exe.backward()
        return [exe.outputs[0].asnumpy(), exe.grad_dict["w"].asnumpy()]

    for a, b in zip(run(mesh), run(mx.cpu(0)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_modules_cut_parameters_and_batches(mesh) -> None:
    def fit_module(ctx) -> tuple[dict, Any]:
        w = mx.sym.var("fc_weight", shard=("model", None))
        with mx.AttrScope(__shard__="('model',)"):
            b = mx.sym.var("fc_bias")
        h = mx.sym.FullyConnected(mx.sym.var("data"), w, b, num_hidden=8, name="fc")
        mod = mx.mod.Module(mx.sym.SoftmaxOutput(h, name="softmax"), context=ctx)
        mod.bind([("data", X.shape)], [("softmax_label", Y.shape)])
        values = np.random.RandomState(2)
        mod.init_params(arg_params={"fc_weight": mx.nd.array(values.randn(8, 16)), "fc_bias": mx.nd.ones((8,))})
        mod.init_optimizer(optimizer="adam")
        for _ in range(3):
            mod.forward_backward(mx.io.DataBatch([mx.nd.array(X)], [mx.nd.array(Y)]))
            mod.update()
        return {n: a.asnumpy() for n, a in mod.get_params()[0].items()}, mod

    with Texts() as seen:
        got, mod = fit_module(mesh)
    want, _ = fit_module(mx.cpu(0))
    for n in want:
        np.testing.assert_allclose(got[n], want[n], rtol=1e-4, atol=1e-6)
    exe = mod._group.execs[0]
    assert exe.arg_dict["data"].sharding == ("data", None) and exe.arg_dict["softmax_label"].sharding == ("data",)
    assert exe.arg_dict["fc_weight"].sharding == exe.grad_dict["fc_weight"].sharding == ("model", None)
    assert exe.arg_dict["fc_bias"].sharding == ("model",)
    assert seen.count("all-reduce") >= 1  # of the gradients, over the axis of the batch


def test_loaded_states_are_cut_as_their_weights(mesh, tmp_path) -> None:
    net = network()
    net.shard(RULES)
    net.initialize(ctx=mesh)
    _, trainer = fit(net, mesh)
    trainer.save_states(str(tmp_path / "states"))
    trainer.load_states(str(tmp_path / "states"))
    fit_once = mx.parallel.shard(X, ("data", None), mesh)
    with mx.autograd.record():
        loss = net(fit_once).sum()
    loss.backward()
    trainer.step(len(X))
    assert ("model", None) in [s.sharding for s in trainer.updaters[0].states.values()]


def test_bytes_per_device(mesh) -> None:
    a, b = mx.parallel.shard(X, ("data", "model"), mesh), mx.nd.ones((4,), ctx=mx.cpu(1))
    found = mx.parallel.device_bytes([a, {"b": (b, None)}], a)
    assert found == {f"cpu:{k}": X.nbytes // 8 + 16 * (k == 1) for k in range(8)}
    net = network()
    net.initialize(ctx=[mx.cpu(0), mx.cpu(3)])
    size = 4 * sum(p.data().size for p in net.collect_params().values())
    assert mx.parallel.device_bytes(net.collect_params()) == {"cpu:0": size, "cpu:3": size}
    with pytest.raises(TypeError, match="device_bytes: a str"):
        mx.parallel.device_bytes("a")


def test_pickles_of_cut_arrays_are_whole(mesh) -> None:
    loaded = pickle.loads(pickle.dumps(mx.parallel.shard(X, ("data", "model"), mesh)))
    assert loaded.context == mx.cpu(0)
    np.testing.assert_array_equal(loaded.asnumpy(), X)


def test_axes_left_open(mesh) -> None:
    a = mx.parallel.shard(X, ("data", None), mesh)
    c = mx.nd.contrib.sharding_constraint(a * 2, spec="(..., 'model')")
    assert c.sharding == ("data", "model")
    assert mx.parallel.shard(np.ones((2, 3, 4), "f"), (..., "model"), mesh).sharding == (None, None, "model")


def test_errors_name_what_cannot_be_cut(mesh) -> None:
    net = network()
    net.initialize(ctx=mesh)
    with pytest.raises(mx.base.MXNetError, match="'net_dense1_weight'.*no axis 'modle'; did you mean 'model'"):
        net.shard([("dense0_weight", ("model", None)), ("dense1_weight", ("modle", None))])
    assert net[0].weight.data().sharding == (None, None)  # all or nothing
    wrong = nn.Dense(6, in_units=4)
    wrong.shard({"weight": ("model", None)})
    with pytest.raises(mx.base.MXNetError, match="_weight': .*axis 0 of shape .6, 4. .* 4 equal parts along 'model'"):
        wrong.initialize(ctx=mesh)
    w = mx.sym.var("w", shard=("rows", None))
    with pytest.raises(mx.base.MXNetError, match="variable 'w': .*no axis 'rows'"):
        mx.sym.FullyConnected(mx.sym.var("x"), w, num_hidden=8, no_bias=True).simple_bind(mesh, x=(4, 4))
    with pytest.raises(mx.base.MXNetError, match="sharding_constraint .*axis 0 of shape"):
        mx.nd.contrib.sharding_constraint(mx.nd.ones((5,), ctx=mesh), spec="('model',)")  # at this line
    wrong_axes: list[Any] = ["data", {"data": "x"}, {"data": 1.5}]
    for axes in wrong_axes:
        with pytest.raises(TypeError, match="Mesh: axes"):
            mx.parallel.Mesh(axes)
    with pytest.raises(TypeError, match="Mesh: devices"):
        mx.parallel.Mesh({"data": 1}, ["gpu"])


def test_wrong_arguments(mesh) -> None:
    with pytest.raises(mx.base.MXNetError, match="equal parts"):
        mx.parallel.shard(np.ones((3, 2)), ("data", None), mesh)
    with pytest.raises(mx.base.MXNetError, match="no axis 'rows'"):
        mx.parallel.shard(X, ("rows", None), mesh)
    with pytest.raises(mx.base.MXNetError, match="used once"):
        mx.parallel.shard(X, ("data", "data"), mesh)
    with pytest.raises(mx.base.MXNetError, match="3 axes for"):
        mx.parallel.shard(X, (None, None, "data"), mesh)
    with pytest.raises(mx.base.MXNetError, match="different devices"):
        mx.parallel.Mesh({"data": 99})
    with pytest.raises(mx.base.MXNetError, match="matches no parameter; the names are net_dense0_weight, net_dense0_b"):
        network().shard({"nothing": ("model",)})
    with pytest.raises(mx.base.MXNetError, match="with mesh"):
        mx.parallel.shard(X, ("data", None))
    assert mx.parallel.Mesh({"data": 2, "model": 4}) is mesh and repr(mesh) == "mesh(data=2, model=4)"
