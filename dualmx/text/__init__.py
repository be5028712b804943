"""Vocabularies and pretrained word vectors from local files; public as `mx.contrib.text`."""

from __future__ import annotations

from .counts import count_tokens_from_str
from .vocabulary import Vocabulary

__all__ = ["Vocabulary", "count_tokens_from_str"]
