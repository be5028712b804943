"""MXNet's import path of `NameManager` and `Prefix`."""

from .symbol.attributes import NameManager, Prefix

__all__ = ["NameManager", "Prefix"]
