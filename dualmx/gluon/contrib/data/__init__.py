"""Samplers and text datasets."""

from . import text
from .sampler import IntervalSampler

__all__ = ["IntervalSampler", "text"]
