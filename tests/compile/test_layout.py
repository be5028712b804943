"""Transposes that move out of the way: equal results, fewer transposes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from dualmx.compile.cpu.transpose_sinking import sink_transposes


def last(x):
    return jnp.moveaxis(x, 1, -1)


def first(x):
    return jnp.moveaxis(x, -1, 1)


def conv(x, w):
    return first(lax.conv_general_dilated(last(x), w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))


def residual(x, w, b):
    y = jax.nn.relu(conv(x, w) + b[:, None, None])
    y = conv(y, w) + x
    return [jnp.tanh(conv(y, w)) * 2.0]


def chain_gradient(x, w, b):
    return list(jax.grad(lambda *a: jnp.sum(residual(*a)[0] ** 2), (0, 1, 2))(x, w, b))


def concatenated(x, w, b):
    y = conv(x, w)
    y = jnp.concatenate([y, jnp.where(y > 0, y, 0.1 * y)], 1)[:, 1:6]
    return [jnp.pad(y, ((0, 0), (0, 0), (1, 1), (0, 2)))]


def reduced(x, w, b):
    y = conv(x, w)
    return [y.mean((2, 3)), y.max(1), y.sum((0, 2, 3)), y.sum((1, 3), keepdims=True)]


def mixed(x, w, b):
    return [conv(x, w) + jnp.ones_like(x) * b[:, None, None], conv(x, w) * x[::-1], conv(x, w).reshape(2, -1)]


def count(fn, *args):
    """Transposes of arrays as large as the data."""

    def inner(jaxpr):
        found = 0
        for eqn in jaxpr.eqns:
            found += eqn.primitive.name == "transpose" and eqn.outvars[0].aval.size >= args[0].size
            found += sum(inner(p.jaxpr) for p in eqn.params.values() if hasattr(p, "jaxpr"))
        return found

    return inner(jax.make_jaxpr(fn)(*args).jaxpr)


@pytest.mark.parametrize(
    ("fn", "left"), [(residual, 2), (chain_gradient, 3), (concatenated, 2), (reduced, 1), (mixed, 6)]
)
def test_same_values_with_fewer_transposes(fn, left):
    rng = np.random.default_rng(0)
    args = [rng.normal(size=s).astype(np.float32) for s in ((2, 4, 9, 8), (3, 3, 4, 4), (4,))]
    for got, want in zip(jax.jit(sink_transposes(fn))(*args), jax.jit(fn)(*args), strict=True):
        np.testing.assert_allclose(got, want, 1e-4, 1e-4)
        assert got.dtype == want.dtype
    assert count(sink_transposes(fn), *args) <= left <= count(fn, *args)


def test_loops_and_random_numbers_pass_through():
    def fn(x):
        y = lax.fori_loop(0, 3, lambda _, y: jnp.transpose(jnp.sin(jnp.transpose(y, (1, 0, 2))), (1, 0, 2)), x)
        noise = jax.random.normal(jax.random.key(0), x.shape)
        return [y + jnp.transpose(jnp.transpose(noise, (2, 0, 1)) * 2, (1, 2, 0))]

    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    np.testing.assert_allclose(jax.jit(sink_transposes(fn))(x)[0], jax.jit(fn)(x)[0], 1e-5, 1e-5)
