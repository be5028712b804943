"""Vocabularies and pretrained word vectors from local files; public as `mx.contrib.text`."""

from .vocabulary import Vocabulary, count_tokens_from_str

__all__ = ["Vocabulary", "count_tokens_from_str"]
