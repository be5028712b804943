"""Contributed layers."""

from . import basic_layers
from .basic_layers import *
from .sparse_layers import SparseEmbedding

__all__ = ["SparseEmbedding", "basic_layers"]
__all__ += basic_layers.__all__
