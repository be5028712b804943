"""Products with operands that repeat themselves, which XLA's library reads past their end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from jax import make_jaxpr
from jax import numpy as jnp

import dualmx as mx
from dualmx.compile.cpu.xla_workarounds import has_broadcast_dot

draw = np.random.default_rng(0)
X, COLUMN = draw.standard_normal((6, 5)).astype(np.float32), draw.standard_normal((5, 1)).astype(np.float32)

OPERANDS: dict[str, tuple[Callable[[], mx.nd.NDArray], np.ndarray]] = {
    "a number": (lambda: mx.nd.broadcast_to(mx.nd.array([[0.3]]), (5, 12)), np.full((5, 12), 0.3)),
    "a column": (lambda: mx.nd.broadcast_to(mx.nd.array(COLUMN), (5, 12)), np.repeat(COLUMN, 12, 1)),
    "parts of numbers": (
        lambda: mx.nd.concat(
            mx.nd.broadcast_to(mx.nd.array([0.3]), (60,)), mx.nd.broadcast_to(mx.nd.array([0.7]), (9,)), dim=0
        )[:60].reshape((5, 12)),
        np.full((5, 12), 0.3),
    ),
    "what is computed from numbers": (
        lambda: mx.nd.exp(mx.nd.broadcast_to(mx.nd.array([[0.3]]), (5, 12))) * 2, np.full((5, 12), np.exp(0.3) * 2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERANDS)
def test_an_operand_that_repeats_itself(name: str) -> None:
    make, values = OPERANDS[name]
    for _ in range(3):
        found = mx.nd.dot(
            mx.nd.array(X), make()
        ).asnumpy()  # an assertion would hold the operand, which makes it a result
        assert np.allclose(found, X @ values, rtol=1e-5, atol=1e-5)


def test_gradient_through_a_mean_of_columns() -> None:
    w = mx.nd.array(draw.standard_normal((5, 12)))
    w.attach_grad()
    with mx.autograd.record():
        y = (mx.nd.dot(mx.nd.array(X), w).mean(axis=1) ** 2).sum()
    y.backward()
    rows = 2 * (X @ w.asnumpy()).mean(1) / 12
    assert np.allclose(w.grad.asnumpy(), X.T @ np.repeat(rows[:, None], 12, 1), rtol=1e-4, atol=1e-5)


def test_recurrent_layers_whose_weights_are_made_in_the_same_program() -> None:
    mx.npx.set_np()
    try:
        for layer in (mx.gluon.rnn.GRU(4, input_size=5), mx.gluon.rnn.LSTM(4), mx.gluon.rnn.RNN(4, bidirectional=True)):
            layer.initialize(mx.init.Constant(0.1))
            x = mx.np.ones((3, 2, 5))
            first = layer(x).asnumpy()
            assert np.array_equal(first, layer(x).asnumpy()) and 0 < first.min() < first.max() < 1
    finally:
        mx.npx.reset_np()


def test_which_programs_are_meant() -> None:
    x, w, s = jnp.ones((6, 5)), jnp.ones((5, 12)), jnp.float32(0.3)

    def multiplies(function: Callable[..., object], *args: object) -> bool:
        return has_broadcast_dot(make_jaxpr(function)(*args).jaxpr)

    assert not multiplies(lambda x, w, s: jnp.maximum(x @ (w * s) + s, 0) @ w.T, x, w, s)
    assert not multiplies(lambda x, w: (x - x.mean(1, keepdims=True)) @ w, x, w)
    assert multiplies(lambda x, s: x @ jnp.broadcast_to(s, (5, 12)), x, s)

    from jax import jit, lax

    def loop(x: jnp.ndarray, w: jnp.ndarray, steps: int) -> object:
        start = jnp.zeros((6, 5))
        return lax.scan(lambda h, _: (jnp.tanh(h @ w @ w.T), None), start, None, length=steps)[0]

    assert not multiplies(lambda x, w: loop(x, w, 3), x, w)  # only the first state repeats itself
    assert multiplies(lambda x, w: loop(x, w, 1), x, w)
    assert multiplies(lambda x, s: loop(x, jnp.broadcast_to(s, (5, 12)), 3), x, s)
    assert multiplies(lambda x, s: jit(lambda w: x @ w)(jnp.broadcast_to(s, (5, 12))), x, s)
    assert multiplies(lambda x, s: x @ jit(lambda s: jnp.broadcast_to(s, (5, 12)))(s), x, s)

    def until(x: jnp.ndarray, s: jnp.ndarray) -> object:
        spread = jnp.broadcast_to(s, (5, 5))
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] @ spread), (0, x))

    assert multiplies(until, x, s)
