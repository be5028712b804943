"""Annuities: financial functions that NumPy once had, on Python numbers and host arrays.

A payment `pmt` at the end (`when=0`) or the begin (`when=1`) of each of `nper` periods at the interest `rate` satisfies
fv + pv (1 + rate)**nper + pmt (1 + rate when) ((1 + rate)**nper - 1) / rate = 0.
"""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..core.errors import ArgumentError
from .fallback import from_host, to_host


def _begins(when: Any) -> float:
    if when in ("end", "e", 0, "finish"):
        return 0.0
    if when in ("begin", "b", 1, "beginning", "start"):
        return 1.0
    raise ArgumentError(f"when={when!r}: expected 'end' or 'begin'")


def _growth(rate: Any, nper: Any, when: float) -> tuple[Any, Any]:
    """Return how much a unit grows, and how much a payment of 1 per period amounts to."""
    factor = (1.0 + rate) ** nper
    safe = onp.where(rate == 0, 1.0, rate)
    return factor, onp.where(rate == 0, nper, (1 + rate * when) * (factor - 1) / safe)


def _floats(*values: Any) -> list[Any]:
    return [onp.asarray(to_host(v, "financial"), "float64") for v in values]


def _shown(value: Any) -> Any:
    return float(value) if onp.ndim(value) == 0 else from_host(value)


def npv(rate: Any, values: Any) -> Any:
    """Return the net present value of payments: the sum of values[t] / (1 + rate)**t, t from 0 on.

    Example:
        >>> import dualmx as mx
        >>> mx.np.npv(0.5, [-100, 75, 90])
        -10.0
    """
    r, v = _floats(rate, values)
    return _shown((v / (1 + r) ** onp.arange(v.shape[-1])).sum(-1))


def pv(rate: Any, nper: Any, pmt: Any, fv: Any = 0, when: Any = "end") -> Any:
    """Return the present value of `nper` payments `pmt` and a last one `fv`."""
    r, n, p, f = _floats(rate, nper, pmt, fv)
    factor, paid = _growth(r, n, _begins(when))
    return _shown(-(f + p * paid) / factor)


def _payment(r: Any, n: Any, p: Any, f: Any, when: float) -> Any:
    factor, paid = _growth(r, n, when)
    return -(f + p * factor) / paid


def ppmt(rate: Any, per: Any, nper: Any, pv: Any, fv: Any = 0, when: Any = "end") -> Any:
    """Return the part of payment number `per` (from 1) that goes against the principal."""
    r, k, n, p, f = _floats(rate, per, nper, pv, fv)
    begins = _begins(when)
    pmt = _payment(r, n, p, f, begins)
    factor, paid = _growth(r, k - 1, begins)
    # What is owed after the payments before this one bears interest.
    interest = -(p * factor + pmt * paid) * r
    if begins:
        interest = onp.where(k == 1, 0.0, interest / (1 + r))
    return _shown(pmt - interest)


def rate(
    nper: Any, pmt: Any, pv: Any, fv: Any, when: Any = "end", guess: float = 0.1, tol: float = 1e-6, maxiter: int = 100
) -> Any:
    """Return the interest per period, by the secant method from `guess`; nan if it does not converge."""
    n, p, v, f = _floats(nper, pmt, pv, fv)
    begins = _begins(when)

    def balance(r: Any) -> Any:
        factor, paid = _growth(onp.asarray(r), n, begins)
        return f + v * factor + p * paid

    old, new = float(guess), float(guess) * 1.01 + 1e-4
    for _ in range(maxiter):
        low, high = balance(old), balance(new)
        if high == low:
            break
        old, new = new, float(new - high * (new - old) / (high - low))
        if abs(new - old) < tol:
            return new
    return float("nan")


def mirr(values: Any, finance_rate: Any, reinvest_rate: Any) -> Any:
    """Return the modified internal rate of return of payments, at least one of each sign; nan without."""
    (v,) = _floats(values)
    n = v.size
    gains, costs = onp.where(v > 0, v, 0.0), onp.where(v < 0, v, 0.0)
    if n < 2 or not gains.any() or not costs.any():
        return float("nan")
    earned, spent = abs(npv(reinvest_rate, gains)), abs(npv(finance_rate, costs))
    return (earned / spent) ** (1 / (n - 1)) * (1 + reinvest_rate) - 1


__all__ = ["mirr", "npv", "ppmt", "pv", "rate"]
