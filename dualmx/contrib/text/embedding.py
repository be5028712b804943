"""MXNet's import path of word vectors."""

from ...text.embedding import (
    CompositeEmbedding,
    CustomEmbedding,
    FastText,
    GloVe,
    TokenEmbedding,
    create,
    get_pretrained_file_names,
    register,
)

__all__ = [
    "CompositeEmbedding",
    "CustomEmbedding",
    "FastText",
    "GloVe",
    "TokenEmbedding",
    "create",
    "get_pretrained_file_names",
    "register",
]
