"""MXNet's import path of vocabularies."""

from ...text import Vocabulary

__all__ = ["Vocabulary"]
