"""MXNet's import path of blocks."""

from .base_block import Block
from .hybrid import HybridBlock
from .symbol_block import SymbolBlock

__all__ = ["Block", "HybridBlock", "SymbolBlock"]
