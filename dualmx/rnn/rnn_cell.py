"""MXNet's import path of the symbolic cells."""

import numpy as np

from .cell import BaseRNNCell, GRUCell, LSTMCell, RNNCell, RNNParams
from .cell_wrappers import (
    BidirectionalCell,
    DropoutCell,
    FusedRNNCell,
    ModifierCell,
    ResidualCell,
    SequentialRNNCell,
    ZoneoutCell,
)
from .conv_cell import BaseConvRNNCell, ConvGRUCell, ConvLSTMCell, ConvRNNCell

# Types that MXNet names here.
numeric_types = (float, int, np.generic)
string_types = (str,)

__all__ = [
    "BaseConvRNNCell",
    "BaseRNNCell",
    "BidirectionalCell",
    "ConvGRUCell",
    "ConvLSTMCell",
    "ConvRNNCell",
    "DropoutCell",
    "FusedRNNCell",
    "GRUCell",
    "LSTMCell",
    "ModifierCell",
    "RNNCell",
    "RNNParams",
    "ResidualCell",
    "SequentialRNNCell",
    "ZoneoutCell",
    "numeric_types",
    "string_types",
]
