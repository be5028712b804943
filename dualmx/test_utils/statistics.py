"""Check random samplers by their moments and histograms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.errors import ArgumentError
from .compare import host


def gen_buckets_probs_with_ppf(
    ppf: Callable[[float], float], nbuckets: int
) -> tuple[list[tuple[float, float]], list[float]]:
    """Return `nbuckets` intervals of equal probability of a distribution given by its quantile function."""
    if nbuckets < 1:
        raise ArgumentError(f"gen_buckets_probs_with_ppf: nbuckets={nbuckets}: expected 1 or more")
    edges = [ppf(k / nbuckets) for k in range(nbuckets + 1)]
    return list(zip(edges, edges[1:], strict=False)), [1 / nbuckets] * nbuckets


def _draws(generator: Callable[[int], Any], nsamples: int) -> np.ndarray:
    found = host(generator(nsamples)).reshape(-1)
    if len(found) != nsamples:
        raise ArgumentError(f"generator({nsamples}) gave {len(found)} samples")
    return found.astype(np.float64)


def mean_check(generator: Callable[[int], Any], mu: float, sigma: float, nsamples: int = 1_000_000) -> bool:
    """Return whether the mean of samples lies within three standard errors of `mu`."""
    return bool(abs(_draws(generator, nsamples).mean() - mu) < 3 * sigma / np.sqrt(nsamples))


def var_check(generator: Callable[[int], Any], sigma: float, nsamples: int = 1_000_000) -> bool:
    """Return whether the variance of samples lies within three standard errors (of normal ones) of `sigma` ** 2."""
    variance = _draws(generator, nsamples).var(ddof=1)
    return bool(abs(variance - sigma**2) < 3 * np.sqrt(2 * sigma**4 / (nsamples - 1)))


def chi_square_check(
    generator: Callable[[int], Any], buckets: Sequence[Any], probs: Sequence[float], nsamples: int = 1_000_000
) -> tuple[float, np.ndarray, np.ndarray]:
    """Compare a histogram of samples with the expected one (needs SciPy).

    Args:
        generator: `generator(n)` returns `n` samples.
        buckets: values, or (low, high) intervals in ascending order.
        probs: probability of each bucket.
        nsamples: number of samples.

    Returns:
        The p-value of the chi-square test, the observed and the expected counts.
    """
    import scipy.stats  # type: ignore[import-untyped]

    if len(buckets) != len(probs) or not np.isclose(sum(probs), 1):
        raise ArgumentError("chi_square_check: expected one probability for each bucket, 1 together")
    found = _draws(generator, nsamples)
    if isinstance(buckets[0], (list, tuple)):
        counts = np.array([((found >= low) & (found < high)).sum() for low, high in buckets])
    else:
        counts = np.array([(found == value).sum() for value in buckets])
    expected = np.asarray(probs, np.float64) * nsamples
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return float(scipy.stats.chi2.sf(statistic, len(buckets) - 1)), counts, expected


def verify_generator(
    generator: Callable[[int], Any],
    buckets: Sequence[Any],
    probs: Sequence[float],
    nsamples: int = 1_000_000,
    nrepeat: int = 5,
    success_rate: float = 0.2,
    alpha: float = 0.05,
) -> list[float]:
    """Require that enough of several chi-square tests have a p-value above `alpha`; returns the p-values."""
    found = [chi_square_check(generator, buckets, probs, nsamples)[0] for _ in range(nrepeat)]
    passed = sum(p > alpha for p in found)
    if passed < nrepeat * success_rate:
        raise AssertionError(f"{passed} of {nrepeat} chi-square tests passed; p-values {found}, alpha={alpha}")
    return found


__all__ = ["chi_square_check", "gen_buckets_probs_with_ppf", "mean_check", "var_check", "verify_generator"]
