"""Normalization operators against MXNet's record, numeric gradients and closed forms."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import ArgumentError
from dualmx.op.registry import OPS
from tests.goldens.nn_cases import GROUPS, Case
from tests.op.nn_replay import gradients, numeric_gradients, replay

F4 = np.dtype("float32")


def run(op: str, *arrays, train: bool = True, **params):
    with jax.enable_x64(True):
        return OPS[op].call(train, **params).apply([jnp.asarray(a) for a in arrays])


def complete(op: str, shapes, **params):
    call = OPS[op].call(**params)
    return OPS[op].complete(type("P", (), call.params), shapes)


@pytest.mark.parametrize("case", GROUPS["norm"], ids=lambda c: c.name)
def test_matches_record(case: Case):
    replay(case, 1e-4, 1e-4)


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize(("shape", "axis"), [((3, 2, 2, 2), 1), ((4, 3), 1), ((3, 2, 2), -1)])
def test_batch_norm_gradients(train, shape, axis):
    def statistics(fn):
        return lambda x, g, b: fn(x, g, b, jnp.full(g.shape, 0.1), jnp.full(g.shape, 1.5))

    rng = np.random.default_rng(0)
    c = shape[axis]
    args = [rng.normal(size=s) for s in (shape, (c,), (c,))]
    weight, weights = rng.normal(size=shape), [rng.normal(size=a.shape) for a in args]
    call = OPS["BatchNorm"].call(train, fix_gamma=False, axis=axis)
    fn = statistics(lambda *ins: jnp.sum(call.apply(ins)[0] * weight))
    numeric_gradients(fn, args)

    def slope(*ins):
        grads = jax.grad(fn, (0, 1, 2))(*ins)
        return sum(jnp.sum(g * w) for g, w in zip(grads, weights, strict=True))

    numeric_gradients(slope, args, 1e-5)


@pytest.mark.parametrize(
    ("op", "shapes", "params"),
    [
        ("LayerNorm", [(3, 4), (4,), (4,)], {}),
        ("InstanceNorm", [(2, 3, 4), (3,), (3,)], {}),
        ("GroupNorm", [(2, 4, 3), (2,), (2,)], {"num_groups": 2}),
        ("L2Normalization", [(2, 3, 2)], {"mode": "channel"}),
        ("LRN", [(1, 5, 2, 1)], {"nsize": 3, "alpha": 0.3}),
    ],
)
def test_gradients(op, shapes, params):
    gradients(op, shapes, **params)


def test_batch_norm_aux_are_written_only_in_training_on_batch_statistics():
    arrays = [np.ones(s, np.float32) for s in ((2, 3), (3,), (3,), (3,), (3,))]
    for fix_gamma in (True, False):
        # A fixed gamma is written too: it becomes ones.
        outputs = 3 + fix_gamma
        assert len(run("BatchNorm", *arrays, fix_gamma=fix_gamma)) == outputs + 2
        assert len(run("BatchNorm", *arrays, fix_gamma=fix_gamma, train=False)) == outputs
        assert len(run("BatchNorm", *arrays, fix_gamma=fix_gamma, use_global_stats=True)) == outputs


def test_batch_norm_of_half_precision_keeps_float32_statistics():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 3, 8, 8)).astype(np.float16)
    vectors = [np.ones(3, np.float32) for _ in range(4)]
    y, mean, inv, next_mean, _ = run("BatchNorm", x, *vectors, fix_gamma=False)
    assert y.dtype == np.float16 and mean.dtype == inv.dtype == next_mean.dtype == np.float32
    np.testing.assert_allclose(mean, x.astype(np.float64).mean((0, 2, 3)), 1e-4, 1e-6)
    single = run("BatchNorm", x.astype(np.float32), *vectors)[0]
    np.testing.assert_allclose(y.astype(np.float32), single, 2e-3, 2e-3)


def test_batch_norm_variance_does_not_cancel():
    x = (np.random.default_rng(0).normal(size=(100, 2, 4, 4)) + 1000).astype(np.float32)
    _, mean, inv, *_ = run("BatchNorm", x, *[np.ones(2, np.float32) for _ in range(4)], eps=0)
    x = x.astype(np.float64)
    np.testing.assert_allclose(mean, x.mean((0, 2, 3)), 1e-6)
    np.testing.assert_allclose(inv, 1 / x.std((0, 2, 3)), 1e-4)


def test_fixed_gamma_counts_as_one_without_gradient():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5, 3)).astype(np.float32)
    gamma, zero, one = np.full(3, 7, np.float32), np.zeros(3, np.float32), np.ones(3, np.float32)
    call = OPS["BatchNorm"].call(True)
    y, back = jax.vjp(lambda g: call.apply([x, g, zero, zero, one])[0], gamma)
    np.testing.assert_allclose(y.std(0), 1, 1e-2)
    np.testing.assert_array_equal(back(y)[0], 0)


def test_relu_and_sync_variants():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 3, 2)).astype(np.float32)
    vectors = [np.ones(3, np.float32) for _ in range(4)]
    plain = run("BatchNorm", x, *vectors)
    np.testing.assert_allclose(run("_contrib_BatchNormWithReLU", x, *vectors)[0], np.maximum(plain[0], 0))
    for got, want in zip(run("_contrib_SyncBatchNorm", x, *vectors, key="bn"), plain, strict=True):
        np.testing.assert_allclose(got, want)


def test_completes_inputs():
    names = ("gamma", "beta", "moving_mean", "moving_var")
    assert complete("BatchNorm", {"data": (0, 5, 0, 0)}) == dict.fromkeys(names, (5,))
    assert complete("BatchNorm", {"data": (0, 0, 0, 7)}, axis=-1) == dict.fromkeys(names, (7,))
    assert complete("BatchNorm", {"data": (2, 0, 3, 3)}) == {}
    assert complete("LayerNorm", {"data": (0, 0, 7)}) == {"gamma": (7,), "beta": (7,)}
    assert complete("InstanceNorm", {"data": (0, 4, 0)}) == {"gamma": (4,), "beta": (4,)}
    assert complete("GroupNorm", {}, num_groups=3) == {"gamma": (3,), "beta": (3,)}
    call = OPS["BatchNorm"].call()
    kinds = OPS["BatchNorm"].complete_dtype(type("P", (), call.params), {"data": "float16"})
    assert kinds == dict.fromkeys(names, "float32")


def test_vectors_are_their_own_instances():
    found = mx.nd.L2Normalization(mx.nd.array([-2, 3, 0]))
    np.testing.assert_allclose(found.asnumpy(), [-1, 1, 0], rtol=1e-6)


@pytest.mark.parametrize(
    ("op", "shapes", "params", "words"),
    [
        ("BatchNorm", [(2, 3, 4), (4,), (3,), (3,), (3,)], {}, "gamma has shape (4,): expected (3,)"),
        ("BatchNorm", [(2, 3, 4), (3,), (3,), (3,), (2,)], {}, "moving_var has shape (2,): expected (3,)"),
        ("BatchNorm", [(2, 3), (3,), (3,), (3,), (3,)], {"axis": 2}, "axis=2: expected a value in [-2, 2)"),
        ("LayerNorm", [(2, 3), (2,), (3,)], {}, "gamma has shape (2,): expected (3,)"),
        ("InstanceNorm", [(2, 3), (3,), (3,)], {}, "at least 3 axes"),
        ("GroupNorm", [(2, 4, 3), (3,), (3,)], {"num_groups": 3}, "num_groups=3: expected a divisor"),
        ("GroupNorm", [(2, 4, 3), (4,), (4,)], {"num_groups": 2}, "gamma has shape (4,): expected (2,)"),
        ("L2Normalization", [(2, 3)], {"mode": "channel"}, "mode='channel'"),
        ("LRN", [(2, 3, 4)], {"nsize": 3}, "expected (N, C, H, W)"),
    ],
)
def test_errors_name_the_argument(op, shapes, params, words):
    with pytest.raises(ArgumentError, match=f"^{op}.*{re.escape(words)}"):
        OPS[op].call(**params).infer(tuple((s, F4) for s in shapes))


@pytest.mark.parametrize("train", [False, True])
def test_fixed_gamma_is_filled_with_ones(train):
    ones, vectors = np.ones(2), lambda: [mx.nd.array(v) for v in ([3, 4], [0, 0], [0, 0], [1, 1])]
    gamma, *rest = vectors()
    gamma.attach_grad()
    with mx.autograd.record(train_mode=train):
        mx.nd.BatchNorm(mx.nd.ones((4, 2)), gamma, *rest).backward()
    np.testing.assert_array_equal(gamma.asnumpy(), ones)
    np.testing.assert_array_equal(gamma.grad.asnumpy(), 0 * ones)
    exe = mx.sym.BatchNorm(mx.sym.var("x"), name="bn").simple_bind(mx.cpu(), x=(4, 2))
    exe.arg_dict["bn_gamma"][:] = 7
    exe.forward(is_train=train)
    np.testing.assert_array_equal(exe.arg_dict["bn_gamma"].asnumpy(), ones)
    gamma, *rest = vectors()
    mx.nd.BatchNorm(mx.nd.ones((4, 2)), gamma, *rest, fix_gamma=False)
    np.testing.assert_array_equal(gamma.asnumpy(), [3, 4])


def test_hybridized_training_fills_fixed_gamma_with_ones():
    net = mx.gluon.nn.BatchNorm(scale=False, in_channels=2)
    net.initialize()
    net.gamma.set_data(mx.nd.array([3, 4]))
    net.hybridize()
    with mx.autograd.record():
        net(mx.nd.ones((4, 2))).backward()
    np.testing.assert_array_equal(net.gamma.data().asnumpy(), [1, 1])
