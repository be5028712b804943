"""Sums and extremes in two stages: the same ones."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dualmx as mx
from dualmx import nd
from dualmx.compile.cpu.two_stage_reductions import two_stage_reduction

SHAPES = [((8, 64, 300), (0, 1)), ((1026, 130), 0), ((1021, 257), 0), ((4, 33, 16, 64), (0, 1, 2)), ((70, 2000), 0)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64"])
@pytest.mark.parametrize("shape,axis", SHAPES)
def test_sums_over_leading_axes(shape, axis, dtype):
    values = np.random.default_rng(0).integers(-3, 4, shape)
    got = nd.sum(nd.array(values, dtype=dtype), axis=axis)
    assert got.dtype == np.dtype(dtype)
    assert np.array_equal(got.asnumpy(), values.sum(axis))


@pytest.mark.parametrize("layout_axis", [1, 3])
def test_statistics_and_gradients_of_channels(layout_axis):
    shape = (16, 24, 24, 24)
    rng = np.random.default_rng(1)
    x, head = rng.normal(3, 2, shape), rng.normal(size=shape)
    others = tuple(i for i in range(4) if i != layout_axis)
    data, gamma, beta = nd.array(x, dtype="float64"), nd.ones((24,), dtype="float64"), nd.zeros((24,), dtype="float64")
    for v in (data, gamma, beta):
        v.attach_grad()
    statistics = [nd.zeros((24,), dtype="float64"), nd.ones((24,), dtype="float64")]
    with mx.autograd.record():
        y = nd.BatchNorm(data, gamma, beta, *statistics, fix_gamma=False, axis=layout_axis, eps=1e-5)
    y.backward(nd.array(head, dtype="float64"))
    normal = (x - x.mean(others, keepdims=True)) / np.sqrt(x.var(others, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y.asnumpy(), normal, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(beta.grad.asnumpy(), head.sum(others), rtol=1e-10)
    np.testing.assert_allclose(gamma.grad.asnumpy(), (head * normal).sum(others), rtol=1e-9)


@pytest.mark.parametrize("shape,axis", [((70, 2000), 1), ((3, 4, 30, 24), (2, 3)), ((5, 1016), -1), ((40, 1001), 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
def test_reductions_over_trailing_axes(shape, axis, dtype):
    values = np.random.default_rng(0).integers(-3, 4, shape)
    x = nd.array(values, dtype=dtype)
    for name in ("sum", "max", "min"):
        got = getattr(nd, name)(x, axis=axis)
        assert got.dtype == np.dtype(dtype)
        assert np.array_equal(got.asnumpy(), getattr(values, name)(axis))


def test_what_is_no_number_stays_none_in_rows():
    values = np.zeros((64, 512), np.float32)
    values[3, 100], values[5, 7], values[6] = np.nan, np.inf, -np.inf
    x = nd.array(values)
    assert np.array_equal(nd.max(x, axis=1).asnumpy(), values.max(1), equal_nan=True)
    assert np.array_equal(nd.min(x, axis=1).asnumpy(), values.min(1), equal_nan=True)
    assert np.array_equal(nd.sum(x, axis=1).asnumpy(), values.sum(1), equal_nan=True)


def test_softmax_and_its_gradient_in_rows():
    rng = np.random.default_rng(2)
    values, head = rng.normal(0, 3, (96, 400)), rng.normal(size=(96, 400))
    x = nd.array(values, dtype="float64")
    x.attach_grad()
    with mx.autograd.record():
        y = nd.softmax(x)
    y.backward(nd.array(head, dtype="float64"))
    share = np.exp(values - values.max(1, keepdims=True))
    share /= share.sum(1, keepdims=True)
    np.testing.assert_allclose(y.asnumpy(), share, rtol=1e-12)
    want = share * (head - (head * share).sum(1, keepdims=True))
    np.testing.assert_allclose(x.grad.asnumpy(), want, rtol=1e-9, atol=1e-14)


def reductions(x, axes, name="reduce_sum"):
    """How many reductions a program for `x` takes."""
    made = two_stage_reduction(name, x, axes)
    return 1 if made is None else str(jax.make_jaxpr(lambda v: two_stage_reduction(name, v, axes))(x)).count(name + "[")


@pytest.mark.slow
def test_where_two_stages_are_taken():
    assert reductions(jnp.ones((64, 4096)), (0,)) == 1
    assert reductions(jnp.ones((1023, 257)), (0,)) == 1
    assert reductions(jnp.ones((1024, 257)), (0,)) == 2
    assert reductions(jnp.ones((1024, 257)), (0,), "reduce_max") == 1
    assert reductions(jnp.ones((4096, 64)), (1,), "reduce_max") == 2
    assert reductions(jnp.ones((8, 16, 8, 8)), (2, 3)) == 2
    assert reductions(jnp.ones((4096, 65)), (1,)) == 1
    assert reductions(jnp.ones((16, 64)), (1,)) == 1
    assert reductions(jnp.ones((4096, 64), int), (1,)) == 1
