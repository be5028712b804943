"""The gradient of recurrent weights: one product over all times, equal to the sum of those of each."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dualmx.op.defs import rnn


def step(x, gates, h, c):
    return jnp.tanh(x + gates), None


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("apart", [False, True])
def test_recurrent_weights(reverse, apart):
    rng = np.random.default_rng(0)
    x, bias = (jnp.asarray(rng.normal(size=(7, 3, 4)), jnp.float32) for _ in range(2))
    h, weights = (jnp.asarray(rng.normal(size=(n, 4)), jnp.float32) for n in (3, 4))
    given = bias if apart else None

    def whole(w):
        return (rnn._sweep(step, reverse, x, given, h, None, w)[0] ** 2).sum()

    def by_steps(w):
        return (rnn._swept(step, reverse, None, w, x, given, h, None)[0] ** 2).sum()

    np.testing.assert_allclose(jax.grad(whole)(weights), jax.grad(by_steps)(weights), rtol=2e-5, atol=1e-5)

    def products(function):
        made = jax.make_jaxpr(jax.grad(function))(weights)
        return sum(str(e.params["jaxpr"]).count("dot_general[") for e in made.eqns if e.primitive.name == "scan")

    assert products(whole) == products(by_steps) - 1
