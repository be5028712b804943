"""Dense, activation, softmax, dropout and sequence operators against MXNet's record and numeric gradients."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dualmx.core.errors import ArgumentError
from dualmx.op.registry import OPS
from tests.goldens.nn_cases import GROUPS, Case
from tests.op.nn_replay import gradients, replay

CASES = [c for g in ("dense", "activation", "softmax", "sequence") for c in GROUPS[g]]
F4 = np.dtype("float32")


def run(op: str, *arrays, train: bool = True, key=None, **params):
    with jax.enable_x64(True):
        return OPS[op].call(train, **params).apply([jnp.asarray(a) for a in arrays], key)


def complete(op: str, shapes, **params):
    call = OPS[op].call(**params)
    return OPS[op].complete(type("P", (), call.params), shapes)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_matches_record(case: Case):
    if case.params.get("act_type") == "selu":
        pytest.skip("MXNet's selu gradient is not the derivative of its selu; see test_gradients")
    replay(case)


@pytest.mark.parametrize(
    ("op", "shapes", "params"),
    [
        ("FullyConnected", [(2, 3), (4, 3), (4,)], {"num_hidden": 4}),
        ("Activation", [(3, 4)], {"act_type": "sigmoid"}),
        ("Activation", [(3, 4)], {"act_type": "softrelu"}),
        ("Activation", [(3, 4)], {"act_type": "softsign"}),
        ("Activation", [(3, 4)], {"act_type": "log_sigmoid"}),
        ("Activation", [(3, 4)], {"act_type": "mish"}),
        ("LeakyReLU", [(3, 4)], {"act_type": "selu"}),
        ("LeakyReLU", [(3, 4)], {"act_type": "elu"}),
        ("LeakyReLU", [(3, 4)], {"act_type": "gelu"}),
        ("LeakyReLU", [(2, 3, 2), (3,)], {"act_type": "prelu"}),
        ("softmax", [(2, 4)], {"temperature": 1.5}),
        ("log_softmax", [(2, 4)], {"axis": 0}),
        ("softmin", [(2, 4)], {}),
        ("SoftmaxActivation", [(2, 3, 2)], {"mode": "channel"}),
        ("SequenceLast", [(3, 2, 2)], {}),
    ],
)
def test_gradients(op, shapes, params):
    gradients(op, shapes, **params)


def test_selu_follows_its_definition():
    x = np.array([-1.0, 2.0], np.float32)
    want = 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))
    np.testing.assert_allclose(run("LeakyReLU", x, act_type="selu")[0], want, 1e-6)


def test_rrelu():
    x = -np.ones(2000, np.float32)
    (still,) = run("LeakyReLU", x, train=False, act_type="rrelu")[:1]
    np.testing.assert_allclose(still, -(0.125 + 0.334) / 2, 1e-6)
    moved, slopes = run("LeakyReLU", x, key=jax.random.key(0), act_type="rrelu")
    assert moved.dtype == slopes.dtype == F4
    assert 0.125 <= float(slopes.min()) < 0.13 and 0.33 < float(slopes.max()) <= 0.334
    np.testing.assert_allclose(moved, -slopes)


@pytest.mark.parametrize("kind", ["relu", "softsign", "softrelu"])
def test_subgradient_at_zero(kind):
    slope = jax.grad(lambda x: OPS["Activation"].call(act_type=kind).apply([x])[0])(jnp.float32(0))
    assert float(slope) == {"relu": 0.0, "softsign": 1.0, "softrelu": 0.5}[kind]


def test_dropout_is_identity_when_predicting():
    x = np.ones((3, 4), np.float32)
    np.testing.assert_array_equal(run("Dropout", x, train=False)[0], x)
    np.testing.assert_array_equal(run("Dropout", x, p=0)[0], x)
    np.testing.assert_array_equal(run("Dropout", x, p=1, key=jax.random.key(0))[0], 0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_dropout_rate_and_scale(p, dtype):
    x = jnp.ones((200, 100), dtype)
    out = run("Dropout", x, key=jax.random.key(3), p=p)[0]
    assert out.dtype == x.dtype
    kept = np.asarray(out.astype("float32")) != 0
    assert abs(kept.mean() - (1 - p)) < 0.015
    np.testing.assert_allclose(np.asarray(out.astype("float32"))[kept], 1 / (1 - p), 1e-2)


def test_dropout_axes_share_the_mask():
    x = np.ones((6, 50), np.float32)
    out = np.asarray(run("Dropout", x, train=False, key=jax.random.key(1), mode="always", axes=(0,))[0])
    assert 0 < (out == 0).mean() < 1
    np.testing.assert_array_equal(out, out[:1].repeat(6, 0))


def test_dropout_gradient_uses_the_same_mask():
    x = jnp.arange(1.0, 40.0)
    call = OPS["Dropout"].call(True)
    out, back = jax.vjp(lambda x: call.apply([x], jax.random.key(0))[0], x)
    np.testing.assert_allclose(back(jnp.ones_like(out))[0], out / x)


def test_softmax_of_an_empty_sequence_is_zero():
    x = np.ones((2, 3), np.float32)
    length = np.array([2, 0], np.int32)
    call = OPS["softmax"].call(use_length=True)
    out, back = jax.vjp(lambda x: call.apply([x, length])[0], jnp.asarray(x))
    np.testing.assert_allclose(out, [[0.5, 0.5, 0], [0, 0, 0]])
    assert np.isfinite(back(jnp.ones_like(out))[0]).all()


def test_softmax_activation_of_instances_is_over_the_last_axis():
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    np.testing.assert_allclose(run("SoftmaxActivation", x)[0], run("softmax", x)[0], 1e-6)


def test_softmax_dtype():
    x = np.ones((2, 3), np.float16)
    assert run("softmax", x)[0].dtype == np.float16
    assert run("softmax", x, dtype="float32")[0].dtype == np.float32
    assert run("log_softmax", x.astype("float32"), dtype="float64")[0].dtype == np.float64


def test_half_precision_sums_in_float32():
    x = np.ones((1, 4096), np.float16)
    w = np.full((1, 4096), 0.3333, np.float16)
    out = run("FullyConnected", x, w, num_hidden=1, no_bias=True)[0]
    assert out.dtype == np.float16
    np.testing.assert_allclose(out, 4096 * float(w[0, 0]), 1e-3)


def test_sequence_last_without_lengths():
    x = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
    np.testing.assert_array_equal(run("SequenceLast", x)[0], x[-1])
    np.testing.assert_array_equal(run("SequenceLast", x, axis=1)[0], x[:, -1])


def test_sequence_ops_keep_the_dtype():
    x = np.arange(12, dtype=np.int32).reshape(3, 2, 2)
    n = np.array([1, 2], np.int32)
    for op in ("SequenceMask", "SequenceLast", "SequenceReverse"):
        assert run(op, x, n, use_sequence_length=True)[0].dtype == np.int32


def test_completes_inputs():
    assert complete("FullyConnected", {"data": (0, 3, 4)}, num_hidden=5) == {"weight": (5, 12), "bias": (5,)}
    assert complete("FullyConnected", {"data": (0, 3, 4)}, num_hidden=5, flatten=False)["weight"] == (5, 4)
    assert complete("FullyConnected", {"data": (2, 0, 4)}, num_hidden=5) == {"bias": (5,)}
    assert complete("FullyConnected", {"data": (2, 0), "weight": (5, 7)}, num_hidden=5)["data"] == (2, 7)
    assert complete("LeakyReLU", {"data": (0, 5, 3)}, act_type="prelu") == {"gamma": (5,)}
    assert complete("SequenceMask", {"data": (0, 5, 3)}, use_sequence_length=True) == {"sequence_length": (5,)}
    assert complete("softmax", {"data": (2, 5, 3)}, use_length=True, axis=1) == {"length": (2, 3)}


@pytest.mark.parametrize(
    ("op", "shapes", "params", "words"),
    [
        ("FullyConnected", [(2, 3), (5, 4), (5,)], {"num_hidden": 5}, "weight has shape (5, 4): expected (5, 3)"),
        ("FullyConnected", [(2, 3), (5, 3), (4,)], {"num_hidden": 5}, "bias has shape (4,): expected (5,)"),
        ("LeakyReLU", [(2, 3), (2,)], {"act_type": "prelu"}, "gamma has shape (2,): expected (1,) or (3,)"),
        ("softmax", [(2, 3)], {"axis": 2}, "axis=2"),
        ("log_softmax", [(2, 3)], {"use_length": True}, "use_length"),
        ("SoftmaxActivation", [(2, 3)], {"mode": "channel"}, "mode='channel'"),
        ("softmax_cross_entropy", [(2, 3), (3,)], {}, "label has shape (3,): expected (2,)"),
        ("Dropout", [(2, 3)], {"axes": (2,)}, "axes=(2,)"),
        (
            "SequenceMask",
            [(2, 3), (2,)],
            {"use_sequence_length": True},
            "sequence_length has shape (2,): expected (3,)",
        ),
        ("SequenceReverse", [(2, 3)], {"axis": 1}, "axis=1: expected 0"),
    ],
)
def test_errors_name_the_argument(op, shapes, params, words):
    with pytest.raises(ArgumentError, match=f"^{op}.*{re.escape(words)}"):
        OPS[op].call(**params).infer(tuple((s, F4) for s in shapes))


def test_integers_are_refused():
    with pytest.raises(ArgumentError, match="Activation: data has dtype int32: expected a floating type"):
        OPS["Activation"].call(act_type="relu").infer((((2,), np.dtype("int32")),))
    with pytest.raises(ArgumentError, match="Dropout: p=1.5"):
        OPS["Dropout"].call(p=1.5)
