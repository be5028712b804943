"""MXNet's import path of `AttrScope`."""

from .symbol.attributes import AttrScope

__all__ = ["AttrScope"]
