"""MXNet's import path of `NameManager` and `Prefix`."""

from __future__ import annotations

from .symbol.attributes import NameManager, Prefix

__all__ = ["NameManager", "Prefix"]
