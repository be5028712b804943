# Written by `python -m dualmx.namespace.stubs`. Generated, so its length has no bound.
"""Types of `mx.nd.random`."""

from collections.abc import Sequence
from typing import TypeAlias

import jax
import numpy as np

from ..core.argcheck import Shape
from ..core.context import Context
from ..namespace.random import bernoulli as bernoulli
from ..namespace.random import exponential as exponential
from ..namespace.random import gamma as gamma
from ..namespace.random import generalized_negative_binomial as generalized_negative_binomial
from ..namespace.random import multinomial as multinomial
from ..namespace.random import negative_binomial as negative_binomial
from ..namespace.random import normal as normal
from ..namespace.random import poisson as poisson
from ..namespace.random import randint as randint
from ..namespace.random import randn as randn
from ..namespace.random import shuffle as shuffle
from ..namespace.random import uniform as uniform
from .ndarray import NDArray

__all__ = [
    "bernoulli", "exponential", "exponential_like", "gamma", "gamma_like", "generalized_negative_binomial",
    "generalized_negative_binomial_like", "multinomial", "negative_binomial", "negative_binomial_like", "normal",
    "normal_like", "pdf_dirichlet", "pdf_exponential", "pdf_gamma", "pdf_generalized_negative_binomial",
    "pdf_negative_binomial", "pdf_normal", "pdf_poisson", "pdf_uniform", "poisson", "poisson_like", "randint", "randn",
    "shuffle", "uniform", "uniform_like", "unique_zipfian",
]  # fmt: skip

_Array: TypeAlias = NDArray | np.ndarray | jax.Array

def exponential_like(
    data: _Array, lam: float = 1.0, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Samples of the exponential distribution of mean 1 / lam."""

def gamma_like(
    data: _Array,
    alpha: float = 1.0,
    beta: float = 1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Samples of the gamma distribution of shape alpha and scale beta."""

def generalized_negative_binomial_like(
    data: _Array,
    mu: float = 1.0,
    alpha: float = 1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Samples of counts with mean mu and variance mu + alpha * mu**2."""

def negative_binomial_like(
    data: _Array, k: int = 1, p: float = 1.0, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Samples of the number of failures before the k-th success, each of probability p."""

def normal_like(
    data: _Array,
    loc: float = 0.0,
    scale: float = 1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Samples of the normal distribution, by mean and standard deviation."""

def pdf_dirichlet(
    sample: _Array,
    alpha: _Array,
    is_log: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Density of samples from the Dirichlet distribution of concentrations alpha, its logarithm with `is_log`."""

def pdf_exponential(
    sample: _Array,
    lam: _Array,
    is_log: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Density of samples from the exponential distribution: lam * exp(-lam * x), its logarithm with `is_log`."""

def pdf_gamma(
    sample: _Array,
    alpha: _Array,
    beta: _Array,
    is_log: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Density of samples from the gamma distribution of shape alpha and rate beta, its logarithm with `is_log`."""

def pdf_generalized_negative_binomial(
    sample: _Array,
    mu: _Array,
    alpha: _Array,
    is_log: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Density of samples from counts of mean mu and variance mu + alpha * mu**2, its logarithm with `is_log`."""

def pdf_negative_binomial(
    sample: _Array,
    k: _Array,
    p: _Array,
    is_log: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Density of samples from failures before the k-th success of probability p, its logarithm with `is_log`."""

def pdf_normal(
    sample: _Array,
    mu: _Array,
    sigma: _Array,
    is_log: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Density of samples from the normal distribution of mean mu and standard deviation sigma, its logarithm with
    `is_log`.
    """

def pdf_poisson(
    sample: _Array,
    lam: _Array,
    is_log: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Density of samples from the Poisson distribution: lam**x * exp(-lam) / x!, its logarithm with `is_log`."""

def pdf_uniform(
    sample: _Array,
    low: _Array,
    high: _Array,
    is_log: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Density of samples from the uniform distribution: 1 / (high - low), its logarithm with `is_log`."""

def poisson_like(
    data: _Array, lam: float = 1.0, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Samples of the Poisson distribution of mean lam."""

def uniform_like(
    data: _Array,
    low: float = 0.0,
    high: float = 1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Samples of the uniform distribution on [low, high)."""

def unique_zipfian(
    range_max: int,
    shape: Shape = (1,),
    ctx: Context | str | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> list[NDArray]:
    """Rows of distinct classes, class k with probability (log(k + 2) - log(k + 1)) / log(range_max + 1)."""
