"""MXNet's import path of `AttrScope`."""

from __future__ import annotations

from .symbol.attributes import AttrScope

__all__ = ["AttrScope"]
