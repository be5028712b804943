"""Samplers and text datasets."""

from __future__ import annotations

from . import text
from .sampler import IntervalSampler

__all__ = ["IntervalSampler", "text"]
