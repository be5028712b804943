"""`mx.sym.npx.random`: samplers beyond NumPy's, as nodes."""

from ..numpy.symbol_random import bernoulli, normal_n, uniform_n

__all__ = ["bernoulli", "normal_n", "uniform_n"]
