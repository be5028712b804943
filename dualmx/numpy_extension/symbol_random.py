"""Random numbers beyond NumPy as nodes: `mx.sym.npx.random`."""

from __future__ import annotations

from ..numpy.symbol_random import bernoulli, normal_n, uniform_n

__all__ = ["bernoulli", "normal_n", "uniform_n"]
