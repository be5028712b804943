# Written by `python -m dualmx.namespace.stubs`. Generated, so its length has no bound.
"""Types of `mx.sym.random`."""

from collections.abc import Mapping
from typing import Any

from ..core.argcheck import Shape
from ..namespace.symbol_random import exponential as exponential
from ..namespace.symbol_random import gamma as gamma
from ..namespace.symbol_random import generalized_negative_binomial as generalized_negative_binomial
from ..namespace.symbol_random import multinomial as multinomial
from ..namespace.symbol_random import negative_binomial as negative_binomial
from ..namespace.symbol_random import normal as normal
from ..namespace.symbol_random import poisson as poisson
from ..namespace.symbol_random import randint as randint
from ..namespace.symbol_random import randn as randn
from ..namespace.symbol_random import shuffle as shuffle
from ..namespace.symbol_random import uniform as uniform
from .symbol import Symbol

__all__ = [
    "exponential", "exponential_like", "gamma", "gamma_like", "generalized_negative_binomial",
    "generalized_negative_binomial_like", "multinomial", "negative_binomial", "negative_binomial_like", "normal",
    "normal_like", "pdf_dirichlet", "pdf_exponential", "pdf_gamma", "pdf_generalized_negative_binomial",
    "pdf_negative_binomial", "pdf_normal", "pdf_poisson", "pdf_uniform", "poisson", "poisson_like", "randint", "randn",
    "shuffle", "uniform", "uniform_like", "unique_zipfian",
]  # fmt: skip

def exponential_like(
    data: Symbol | None = None,
    lam: float = 1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Samples of the exponential distribution of mean 1 / lam."""

def gamma_like(
    data: Symbol | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Samples of the gamma distribution of shape alpha and scale beta."""

def generalized_negative_binomial_like(
    data: Symbol | None = None,
    mu: float = 1.0,
    alpha: float = 1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Samples of counts with mean mu and variance mu + alpha * mu**2."""

def negative_binomial_like(
    data: Symbol | None = None,
    k: int = 1,
    p: float = 1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Samples of the number of failures before the k-th success, each of probability p."""

def normal_like(
    data: Symbol | None = None,
    loc: float = 0.0,
    scale: float = 1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Samples of the normal distribution, by mean and standard deviation."""

def pdf_dirichlet(
    sample: Symbol | None = None,
    alpha: Symbol | None = None,
    is_log: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Density of samples from the Dirichlet distribution of concentrations alpha, its logarithm with `is_log`."""

def pdf_exponential(
    sample: Symbol | None = None,
    lam: Symbol | None = None,
    is_log: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Density of samples from the exponential distribution: lam * exp(-lam * x), its logarithm with `is_log`."""

def pdf_gamma(
    sample: Symbol | None = None,
    alpha: Symbol | None = None,
    beta: Symbol | None = None,
    is_log: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Density of samples from the gamma distribution of shape alpha and rate beta, its logarithm with `is_log`."""

def pdf_generalized_negative_binomial(
    sample: Symbol | None = None,
    mu: Symbol | None = None,
    alpha: Symbol | None = None,
    is_log: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Density of samples from counts of mean mu and variance mu + alpha * mu**2, its logarithm with `is_log`."""

def pdf_negative_binomial(
    sample: Symbol | None = None,
    k: Symbol | None = None,
    p: Symbol | None = None,
    is_log: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Density of samples from failures before the k-th success of probability p, its logarithm with `is_log`."""

def pdf_normal(
    sample: Symbol | None = None,
    mu: Symbol | None = None,
    sigma: Symbol | None = None,
    is_log: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Density of samples from the normal distribution of mean mu and standard deviation sigma, its logarithm with
    `is_log`.
    """

def pdf_poisson(
    sample: Symbol | None = None,
    lam: Symbol | None = None,
    is_log: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Density of samples from the Poisson distribution: lam**x * exp(-lam) / x!, its logarithm with `is_log`."""

def pdf_uniform(
    sample: Symbol | None = None,
    low: Symbol | None = None,
    high: Symbol | None = None,
    is_log: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Density of samples from the uniform distribution: 1 / (high - low), its logarithm with `is_log`."""

def poisson_like(
    data: Symbol | None = None,
    lam: float = 1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Samples of the Poisson distribution of mean lam."""

def uniform_like(
    data: Symbol | None = None,
    low: float = 0.0,
    high: float = 1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Samples of the uniform distribution on [low, high)."""

def unique_zipfian(
    range_max: int, shape: Shape = (1,), name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Rows of distinct classes, class k with probability (log(k + 2) - log(k + 1)) / log(range_max + 1)."""
