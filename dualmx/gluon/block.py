"""Blocks under their customary import path."""

from .base import Block
from .hybrid import HybridBlock
from .symbol_block import SymbolBlock

__all__ = ["Block", "HybridBlock", "SymbolBlock"]
