"""Log likelihood of marked self-exciting point processes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ...core.errors import ArgumentError
from ..registry import op
from ..schema import Tensor, UntypedTensor
from ..spatial import check_float, check_shape


@op(outputs=2, output_names=("output", "out_state"))
def _contrib_hawkesll(
    lda: Tensor,
    alpha: Tensor,
    beta: Tensor,
    state: Tensor,
    lags: Tensor,
    marks: UntypedTensor,
    valid_length: Tensor,
    max_time: Tensor,
) -> tuple[jax.Array, jax.Array]:
    """Log likelihood of Hawkes processes with exponential decay, one for each of K marks.

    The intensity of mark k is lda_k + alpha_k · beta_k · Σ exp(-beta_k (t - t_i)) over its earlier events; the result
    is Σ log(intensity at the events) - ∫ intensity up to max_time. `state` holds the sums at time 0, such as those
    returned for an earlier interval. The first `valid_length` of `lags` (times since the event before) and `marks`
    count.
    Shapes: lda, state (N, K), alpha, beta (K,), lags, marks (N, T), valid_length, max_time (N,) -> (N,), (N, K).
    Gradients go to lda, alpha and beta.
    """
    name = "_contrib_hawkesll"
    check_float(name, lda)
    if lda.ndim != 2 or lags.ndim != 2:
        raise ArgumentError(f"{name}: lda {lda.shape}, lags {lags.shape}: expected (N, K) and (N, T)")
    n, k = lda.shape
    for what, given, want in (
        ("alpha", alpha, (k,)), ("beta", beta, (k,)), ("state", state, (n, k)), ("lags", lags, (n, lags.shape[1])),
        ("marks", marks, lags.shape), ("valid_length", valid_length, (n,)), ("max_time", max_time, (n,)),
    ):  # fmt: skip
        check_shape(name, what, given.shape, want, f"lda {lda.shape}, lags {lags.shape}")
    state, lags, valid_length, max_time = map(lax.stop_gradient, (state, lags, valid_length, max_time))
    marks = marks.astype(jnp.int32)

    def one(
        mu: jax.Array, memory: jax.Array, lags: jax.Array, marks: jax.Array, length: jax.Array, end: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        def step(carry: Any, event: Any) -> tuple[Any, None]:
            total, memory, last, now = carry
            lag, mark, index = event
            then = now + lag
            gap = then - last[mark]
            decay = jnp.exp(-beta[mark] * gap)
            rate = mu[mark] + alpha[mark] * beta[mark] * memory[mark] * decay
            spent = mu[mark] * gap + alpha[mark] * memory[mark] * (1 - decay)
            live = index < length
            after = total + jnp.log(jnp.where(live, rate, 1)) - spent
            new = memory.at[mark].set(1 + memory[mark] * decay), last.at[mark].set(then)
            carry = jnp.where(live, after, total), jnp.where(live, new[0], memory), jnp.where(live, new[1], last)
            return (*carry, jnp.where(live, then, now)), None

        zero = jnp.zeros((), mu.dtype)
        order = jnp.arange(lags.shape[0], dtype=jnp.int32).astype(mu.dtype)
        start = zero, memory, jnp.zeros_like(memory), zero
        (total, memory, last, _), _ = lax.scan(step, start, (lags, marks, order))
        gap = end - last
        decay = jnp.exp(-beta * gap)
        return total - jnp.sum(mu * gap + alpha * memory * (1 - decay)), decay * memory

    return jax.vmap(one)(lda, state, lags, marks, valid_length, max_time)
