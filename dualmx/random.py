"""`mx.random`: seeding, and the samplers of `mx.nd.random`."""

from __future__ import annotations

from typing import Any

from .core.context import Context
from .core.rng import rng_streams
from .namespace.random import (
    bernoulli,
    exponential,
    gamma,
    generalized_negative_binomial,
    multinomial,
    negative_binomial,
    normal,
    poisson,
    randint,
    randn,
    shuffle,
    uniform,
)


def seed(seed_state: int, ctx: Any = "all") -> None:
    """Restart the random streams of every context, or of one, from `seed_state`.

    What is drawn depends only on the seed and on how many draws came before, not on when pending operations run.

    Raises:
        MXNetError: `seed_state` is not a finite integer.

    Example:
        >>> seed(7)
        >>> x = mx.nd.random.uniform(shape=(3,))
        >>> seed(7)
        >>> bool((x == mx.nd.random.uniform(shape=(3,))).min())
        True
    """
    rng_streams.seed(seed_state, None if ctx == "all" else Context(ctx))


__all__ = [
    "bernoulli", "exponential", "gamma", "generalized_negative_binomial", "multinomial", "negative_binomial", "normal",
    "poisson", "randint", "randn", "seed", "shuffle", "uniform",
]  # fmt: skip
