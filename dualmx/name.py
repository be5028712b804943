"""Automatic names of symbols and blocks."""

from __future__ import annotations

from .symbol.names import NameManager, Prefix

__all__ = ["NameManager", "Prefix"]
