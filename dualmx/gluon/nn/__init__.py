"""Layers and containers of layers."""

from ..block import Block, HybridBlock, SymbolBlock
from . import activations, basic_layers, containers, conv_layers, normalization, pooling
from .activations import *
from .basic_layers import Dense, Dropout, Embedding, Flatten, HybridLambda, Lambda
from .containers import *
from .conv_layers import Conv1D, Conv1DTranspose, Conv2D, Conv2DTranspose, Conv3D, Conv3DTranspose
from .normalization import *
from .pooling import *

__all__ = [
    "Block", "Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose", "Dense", "Dropout",
    "Embedding", "Flatten", "HybridBlock", "HybridLambda", "Lambda", "SymbolBlock", "activations", "basic_layers",
    "conv_layers",
]  # fmt: skip
__all__ += activations.__all__
__all__ += containers.__all__
__all__ += normalization.__all__
__all__ += pooling.__all__
