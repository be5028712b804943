"""Sums over leading axes in two stages: the same sums."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import dualmx as mx
from dualmx import nd
from dualmx.compile.columns import sum_of_rows

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


def test_few_rows_or_odd_ones_keep_one_sum():

    assert sum_of_rows(jnp.ones((64, 4096)), (0,)) is None
    assert sum_of_rows(jnp.ones((4096, 64)), (1,)) is None
    assert sum_of_rows(jnp.ones((1023, 257)), (0,)) is None
    assert np.array_equal(sum_of_rows(jnp.ones((1024, 257)), (0,)), np.full(257, 1024))
