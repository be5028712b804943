"""Less common parts of Gluon."""

from . import nn

__all__ = ["nn"]
