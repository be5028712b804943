"""Vocabularies and pretrained word vectors."""

from . import embedding, utils, vocab
from .vocab import Vocabulary

__all__ = ["Vocabulary", "embedding", "utils", "vocab"]
