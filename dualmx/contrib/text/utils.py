"""Counting tokens under its customary import path."""

from ...text import count_tokens_from_str

__all__ = ["count_tokens_from_str"]
