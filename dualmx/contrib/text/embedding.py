"""MXNet's import path of word vectors."""

from ...text import embedding
from ...text.embedding import *  # noqa: F403

__all__: list[str] = []
__all__ += embedding.__all__
