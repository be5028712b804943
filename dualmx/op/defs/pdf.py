"""Probability densities of samples; one distribution per leading index."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from ...core.errors import ArgumentError
from ..registry import op
from ..schema import Tensor
from ..shape_rules import need_float, typed_body

LogDensity = Callable[..., jax.Array]
COUNTS = ("poisson", "negative_binomial", "generalized_negative_binomial")  # no derivative by a whole number


def _uniform(x: jax.Array, low: jax.Array, high: jax.Array) -> jax.Array:
    return -jnp.log(high - low) + jnp.zeros_like(x)


def _normal(x: jax.Array, mu: jax.Array, sigma: jax.Array) -> jax.Array:
    return -0.5 * jnp.square((x - mu) / sigma) - jnp.log(sigma) - 0.5 * jnp.log(jnp.asarray(2 * jnp.pi, x.dtype))


def _exponential(x: jax.Array, lam: jax.Array) -> jax.Array:
    return jnp.log(lam) - lam * x


def _gamma(x: jax.Array, alpha: jax.Array, beta: jax.Array) -> jax.Array:
    return alpha * jnp.log(beta) + (alpha - 1) * jnp.log(x) - beta * x - lax.lgamma(alpha)


def _poisson(x: jax.Array, lam: jax.Array) -> jax.Array:
    return x * jnp.log(lam) - lam - lax.lgamma(x + 1)


def _negative_binomial(x: jax.Array, k: jax.Array, p: jax.Array) -> jax.Array:
    ways = lax.lgamma(x + k) - lax.lgamma(x + 1) - lax.lgamma(k)
    return ways + k * jnp.log(p) + x * jnp.log1p(-p)


def _generalized(x: jax.Array, mu: jax.Array, alpha: jax.Array) -> jax.Array:
    return _negative_binomial(x, 1 / alpha, 1 / (1 + mu * alpha))


def _dirichlet(x: jax.Array, alpha: jax.Array) -> jax.Array:
    norm = lax.lgamma(jnp.sum(alpha, -1)) - jnp.sum(lax.lgamma(alpha), -1)
    return norm + jnp.sum((alpha - 1) * jnp.log(x), -1)


def _register(stem: str, log_density: LogDensity, doc: str, *params: str) -> None:
    name = f"_random_pdf_{stem}"
    event = 1 if stem == "dirichlet" else 0

    def density(*, sample: jax.Array, is_log: bool, **given: jax.Array) -> jax.Array:
        need_float(name, sample=sample, **given)
        values = []
        for n in params:
            lead, tail = given[n].shape[: given[n].ndim - event], given[n].shape[given[n].ndim - event :]
            if lead != sample.shape[: len(lead)] or tail != sample.shape[sample.ndim - event :]:
                raise ArgumentError(
                    f"{name}: {n} has shape {[*lead, *tail]}: expected the leading axes of sample {list(sample.shape)}"
                    + (" and its last one" if event else "")
                )
            values.append(given[n].reshape(lead + (1,) * (sample.ndim - event - len(lead)) + tail))
        y = log_density(lax.stop_gradient(sample) if stem in COUNTS else sample, *values)
        return y if is_log else jnp.exp(y)

    shapes = (
        "sample: (*S, n, K); alpha: (*S, K). The result has shape (*S, n)."
        if event
        else f"sample: (*S, ...), {', '.join(params)}: S. The result has the shape of sample."
    )
    text = f"""Density of samples from {doc}, its logarithm with `is_log`.

    {shapes} All have one floating-point dtype.

    Raises:
        ArgumentError: parameters that do not have the leading axes of `sample`.
    """
    op(name=name, aliases=(name[1:],))(
        typed_body(density, text, {"sample": Tensor, **dict.fromkeys(params, Tensor)}, {"is_log": (bool, False)})
    )


_register("uniform", _uniform, "the uniform distribution: 1 / (high - low)", "low", "high")
_register("normal", _normal, "the normal distribution of mean mu and standard deviation sigma", "mu", "sigma")
_register("exponential", _exponential, "the exponential distribution: lam * exp(-lam * x)", "lam")
_register("gamma", _gamma, "the gamma distribution of shape alpha and rate beta", "alpha", "beta")
_register("poisson", _poisson, "the Poisson distribution: lam**x * exp(-lam) / x!", "lam")
_register("negative_binomial", _negative_binomial, "failures before the k-th success of probability p", "k", "p")
_register(
    "generalized_negative_binomial", _generalized, "counts of mean mu and variance mu + alpha * mu**2", "mu", "alpha"
)
_register("dirichlet", _dirichlet, "the Dirichlet distribution of concentrations alpha", "alpha")
