"""Less common parts of Gluon."""

from . import data, estimator, nn, rnn

__all__ = ["data", "estimator", "nn", "rnn"]
