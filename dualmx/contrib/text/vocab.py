"""Vocabularies under their customary import path."""

from ...text import Vocabulary

__all__ = ["Vocabulary"]
