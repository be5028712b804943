"""Output layers: recorded forward and backward, head gradients, second derivatives, label completion."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dualmx.core.errors import ArgumentError
from dualmx.op.registry import OPS
from tests.goldens.nn_cases import GROUPS, Case
from tests.op.nn_replay import numeric_gradients, replay

F4 = np.dtype("float32")


def complete(op: str, shapes, **params):
    call = OPS[op].call(**params)
    return OPS[op].complete(type("P", (), call.params), shapes)


def gradient(op: str, data, label, head, **params):
    call = OPS[op].call(True, **params)
    data = jnp.asarray(data)
    _, back = jax.vjp(lambda x: call.apply([x] if label is None else [x, label])[0], data)
    return back(jnp.asarray(head, data.dtype))[0]


@pytest.mark.parametrize("case", GROUPS["loss"], ids=lambda c: c.name)
def test_matches_record(case: Case):
    replay(case)


@pytest.mark.parametrize(
    ("op", "label"),
    [
        ("SoftmaxOutput", [0, 2, 1]),
        ("LinearRegressionOutput", np.ones((3, 4), np.float32)),
        ("MAERegressionOutput", np.ones((3, 4), np.float32)),
        ("LogisticRegressionOutput", np.ones((3, 4), np.float32)),
        ("MakeLoss", None),
        ("SVMOutput", [0, 2, 1]),
    ],
)
def test_head_gradient_is_ignored(op, label):
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    label = None if label is None else jnp.asarray(label)
    ones, other = (gradient(op, x, label, h * np.ones((3, 4))) for h in (1, 0))
    assert np.abs(ones).max() > 0
    np.testing.assert_array_equal(ones, other)


def test_an_absolute_error_of_zero_has_a_negative_gradient():
    x, label = np.array([[1, -2], [3, 4]], np.float32), jnp.array([[1.0, 1.0], [1.0, 4.0]])
    got = gradient("MAERegressionOutput", x, label, np.ones((2, 2)), grad_scale=3)
    assert got.tolist() == [[-1.5, -1.5], [1.5, -1.5]]


@pytest.mark.parametrize(
    ("shape", "rows"), [((4,), 1), ((4, 1), 4), ((4, 3), 4), ((2, 3, 2), 6), ((1, 5), 1), ((2, 2, 2, 3), 8)]
)
def test_a_loss_is_divided_by_its_rows(shape, rows):
    got = gradient("MakeLoss", np.ones(shape, np.float32), None, np.ones(shape), grad_scale=0.5, normalization="batch")
    np.testing.assert_allclose(got, np.full(shape, 0.5 / rows), rtol=1e-6)


def test_out_grad_multiplies_by_the_head_gradient():
    rng = np.random.default_rng(0)
    x, head = rng.normal(size=(2, 3, 4)).astype(np.float32)
    label = jnp.array([0, 3, 1])
    plain = gradient("SoftmaxOutput", x, label, head)
    np.testing.assert_allclose(gradient("SoftmaxOutput", x, label, head, out_grad=True), plain * head, 1e-6)


@pytest.mark.parametrize(
    ("op", "params", "label"),
    [
        ("SoftmaxOutput", {"smooth_alpha": 0.2}, np.array([0.0, 3, 1])),
        ("SoftmaxOutput", {"out_grad": True}, np.array([0.0, 3, 1])),
        ("LogisticRegressionOutput", {}, np.full((3, 4), 0.3)),
        ("LinearRegressionOutput", {}, np.full((3, 4), 0.3)),
        ("SVMOutput", {}, np.array([0.0, 3, 1])),
    ],
)
def test_the_gradient_is_differentiable(op, params, label):
    rng = np.random.default_rng(0)
    x, weight, head = rng.normal(size=(3, 3, 4))
    call = OPS[op].call(True, **params)

    def slope(x):
        grad = jax.vjp(lambda x: call.apply([x, jnp.asarray(label)])[0], x)[1](jnp.asarray(head))[0]
        return jnp.sum(grad * weight)

    numeric_gradients(slope, [x], 1e-6)


def test_the_label_gets_no_gradient():
    x = jnp.ones((2, 3))
    for op, label in (("SoftmaxOutput", jnp.ones(2)), ("LinearRegressionOutput", jnp.ones((2, 3)))):
        call = OPS[op].call(True)
        y, back = jax.vjp(lambda t, call=call: call.apply([x, t])[0], label)
        np.testing.assert_array_equal(back(y)[0], 0)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_integer_labels(dtype):
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    label = np.array([0, 3, 1])
    with jax.enable_x64(True):
        got = gradient("SoftmaxOutput", x, jnp.asarray(label.astype(dtype)), np.ones_like(x))
    want = gradient("SoftmaxOutput", x, jnp.asarray(label.astype("float32")), np.ones_like(x))
    np.testing.assert_allclose(got, want, 1e-6)


def test_half_precision():
    x = jnp.asarray(np.random.default_rng(0).normal(size=(3, 4)), "float16")
    grad = gradient("SoftmaxOutput", x, jnp.array([0, 3, 1]), jnp.ones_like(x))
    assert grad.dtype == np.float16 and OPS["SoftmaxOutput"].call().apply([x, jnp.zeros(3)])[0].dtype == np.float16


def test_valid_counts_at_least_one():
    x = jnp.ones((2, 3))
    params = {"normalization": "valid", "use_ignore": True, "ignore_label": 1.0}
    np.testing.assert_array_equal(gradient("SoftmaxOutput", x, jnp.ones(2), x, **params), 0)
    np.testing.assert_array_equal(gradient("MakeLoss", -x, None, x, normalization="valid"), 1)


def test_completes_labels():
    assert complete("SoftmaxOutput", {"data": (8, 10)}) == {"label": (8,)}
    assert complete("SoftmaxOutput", {"data": (8, 10, 4, 5)}, multi_output=True) == {"label": (8, 20)}
    assert complete("SoftmaxOutput", {"data": (8, 4, 10)}, preserve_shape=True) == {"label": (8, 4)}
    assert complete("SoftmaxOutput", {"data": (0, 10)}) == {}
    assert complete("LinearRegressionOutput", {"data": (8, 1)}) == {"label": (8,)}
    assert complete("MAERegressionOutput", {"data": (8, 3)}) == {"label": (8, 3)}
    assert complete("SVMOutput", {"data": (8, 3)}) == {"label": (8,)}


@pytest.mark.parametrize(
    ("op", "shapes", "words"),
    [
        ("SoftmaxOutput", [(2, 3), (3,)], "label has shape (3,): expected 2 class numbers"),
        ("SoftmaxOutput", [(2, 3, 4), (2, 3)], "set multi_output"),
        ("LinearRegressionOutput", [(2, 3), (2,)], "label has shape (2,): expected the data's, (2, 3)"),
        ("LogisticRegressionOutput", [(2, 3), (3, 2)], "label has shape (3, 2)"),
        ("SVMOutput", [(2, 3), (3,)], "label has shape (3,): expected (2,)"),
    ],
)
def test_errors_name_the_label(op, shapes, words):
    with pytest.raises(ArgumentError, match=f"^{op}.*{re.escape(words)}"):
        OPS[op].call(True).infer(tuple((s, F4) for s in shapes))
