"""Less common parts of Gluon."""

from . import nn, rnn

__all__ = ["nn", "rnn"]
