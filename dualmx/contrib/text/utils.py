"""MXNet's import path of token counting."""

from ...text import count_tokens_from_str

__all__ = ["count_tokens_from_str"]
