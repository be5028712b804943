"""Batch normalization by the statistics of all devices."""

from __future__ import annotations

import numpy as np
import pytest

import dualmx as mx
from dualmx.gluon import nn

R = 4
RNG = np.random.RandomState(2)
X, G = RNG.randn(R * 3, 5, 2) + 2, RNG.randn(R * 3, 5, 2)


def run(layer, contexts: list, hybridize: bool):
    layer.cast("float64")
    layer.initialize(ctx=contexts)
    values = np.random.RandomState(0)
    layer.gamma.set_data(mx.nd.array(values.rand(5) + 0.5, dtype="float64"))
    layer.beta.set_data(mx.nd.array(values.randn(5), dtype="float64"))
    if hybridize:
        layer.hybridize()
    xs = mx.gluon.utils.split_and_load(mx.nd.array(X, dtype="float64"), contexts)
    gs = mx.gluon.utils.split_and_load(mx.nd.array(G, dtype="float64"), contexts)
    for x in xs:
        x.attach_grad()
    with mx.autograd.record():
        ys = [layer(x) for x in xs]
    mx.autograd.backward(ys, gs)
    own = [[a.asnumpy() for a in (layer.running_mean.data(c), layer.running_var.data(c))] for c in contexts]
    grads = [sum(a.asnumpy() for a in p.list_grad()) for p in (layer.gamma, layer.beta)]
    joined = [np.concatenate([a.asnumpy() for a in arrays]) for arrays in (ys, [x.grad for x in xs])]
    return joined + grads, own


@pytest.mark.parametrize("hybridize", [False, True])
def test_devices_together_equal_the_whole_batch(hybridize: bool) -> None:
    contexts = [mx.cpu(i) for i in range(R)]
    found, statistics = run(mx.gluon.contrib.nn.SyncBatchNorm(in_channels=5), contexts, hybridize)
    wanted, whole = run(nn.BatchNorm(in_channels=5), [mx.cpu(0)], hybridize)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)
    for own in statistics:
        for a, b in zip(own, whole[0], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_a_batch_may_be_cut_while_recording() -> None:
    """The first context must not record more than the others: they are executed as one program."""
    contexts = [mx.cpu(i) for i in range(R)]
    layer = mx.gluon.contrib.nn.SyncBatchNorm(in_channels=5)
    layer.initialize(ctx=contexts)
    whole = mx.nd.array(X)
    with mx.autograd.record():
        ys = [layer(x) for x in mx.gluon.utils.split_and_load(whole, contexts)]
    mx.autograd.backward(ys)
    out = np.concatenate([y.asnumpy() for y in ys])
    want = (X - X.mean((0, 2), keepdims=True)) / np.sqrt(X.var((0, 2), keepdims=True) + 1e-5)
    np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-5)


def test_one_device_is_plain_batch_norm() -> None:
    found, _ = run(mx.gluon.contrib.nn.SyncBatchNorm(in_channels=5), [mx.cpu(0)], False)
    wanted, _ = run(nn.BatchNorm(in_channels=5), [mx.cpu(0)], False)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_a_network_trains_as_on_one_device() -> None:
    def train(contexts: list, layer) -> list[np.ndarray]:
        net = nn.HybridSequential()
        net.add(nn.Dense(4, in_units=10), layer, nn.Dense(2, in_units=4))
        net.cast("float64")
        net.initialize(ctx=contexts)
        values = np.random.RandomState(0)
        for p in net.collect_params().values():
            if p.grad_req != "null":
                p.set_data(mx.nd.array(values.randn(*p.shape), dtype="float64"))
        net.hybridize()
        trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
        for _ in range(3):
            xs = mx.gluon.utils.split_and_load(mx.nd.array(X, dtype="float64"), contexts)
            with mx.autograd.record():
                losses = [(net(x) ** 2).sum() for x in xs]
            mx.autograd.backward(losses)
            trainer.step(len(X))
        return [p.list_data()[-1].asnumpy() for p in net.collect_params().values()]

    many = train([mx.cpu(i) for i in range(R)], mx.gluon.contrib.nn.SyncBatchNorm(in_channels=4))
    one = train([mx.cpu(0)], nn.BatchNorm(in_channels=4))
    for a, b in zip(many, one, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


def test_number_of_devices_is_known_before_shapes_are() -> None:
    contexts = [mx.cpu(0), mx.cpu(1)]
    layer = mx.gluon.contrib.nn.SyncBatchNorm()
    layer.initialize(ctx=contexts)
    layer.hybridize()
    xs = mx.gluon.utils.split_and_load(X, contexts)
    with mx.autograd.record():
        ys = [layer(x) for x in xs]
    joined = np.concatenate([y.asnumpy() for y in ys])
    np.testing.assert_allclose(joined.mean(axis=(0, 2)), np.zeros(5), atol=1e-5)


def test_prediction_needs_no_other_device() -> None:
    layer = mx.gluon.contrib.nn.SyncBatchNorm(in_channels=5)
    layer.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    assert layer(mx.nd.array(X)).shape == X.shape


def test_a_missing_device_is_an_error() -> None:
    layer = mx.gluon.contrib.nn.SyncBatchNorm(in_channels=5, num_devices=2)
    layer.initialize()
    with mx.autograd.record():
        y = layer(mx.nd.array(X))
    with pytest.raises(mx.base.MXNetError, match="several devices"):
        y.asnumpy()


def test_parts_of_several_shapes_are_an_error() -> None:
    contexts = [mx.cpu(k) for k in range(3)]
    layer = mx.gluon.contrib.nn.SyncBatchNorm(in_channels=5)
    layer.initialize(ctx=contexts)
    with mx.autograd.record():
        ys = [layer(mx.nd.ones((rows, 5), ctx=c)) for rows, c in zip((4, 4, 3), contexts, strict=True)]
    for y in ys:
        with pytest.raises(mx.base.MXNetError, match="of the same shape|the parts must have the same shape"):
            y.asnumpy()


def test_symbol_in_a_module() -> None:
    def run(contexts: list, op, **more) -> list[np.ndarray]:
        net = mx.sym.MakeLoss(op(mx.sym.var("data"), fix_gamma=False, name="bn", **more) ** 3)
        mod = mx.mod.Module(net, label_names=None, context=contexts)
        mod.bind([mx.io.DataDesc("data", X.shape, np.float64)])
        values = {n: mx.nd.ones((5,), dtype="float64") for n in ("bn_gamma", "bn_beta", "bn_moving_var")}
        mod.init_params(arg_params=values, aux_params={**values, "bn_moving_mean": mx.nd.zeros((5,))})
        mod.init_optimizer("local", "sgd", {"learning_rate": 0.01})
        for _ in range(2):
            mod.forward_backward(mx.io.DataBatch([mx.nd.array(X, dtype="float64")]))
            mod.update()
        args, aux = mod.get_params()
        return [args["bn_gamma"].asnumpy(), args["bn_beta"].asnumpy(), aux["bn_moving_mean"].asnumpy()]

    many = run([mx.cpu(i) for i in range(R)], mx.sym.contrib.SyncBatchNorm, ndev=R, key="bn")
    one = run([mx.cpu(0)], mx.sym.BatchNorm)
    for a, b in zip(many, one, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-14)
