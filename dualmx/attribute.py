"""Attributes of symbols by scope."""

from __future__ import annotations

from .symbol.attributes import AttrScope

__all__ = ["AttrScope"]
