"""Word vectors under their customary import path."""

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
