"""MXNet's import path of recurrent cells."""

import numpy as np

from ..parameter import tensor_types
from .cell import GRUCell, HybridRecurrentCell, LSTMCell, RecurrentCell, RNNCell
from .cell_wrappers import (
    BidirectionalCell,
    DropoutCell,
    HybridSequentialRNNCell,
    ModifierCell,
    ResidualCell,
    SequentialRNNCell,
    ZoneoutCell,
)

# Types that MXNet names here.
numeric_types = (float, int, np.generic)
string_types = (str,)

__all__ = [
    "BidirectionalCell",
    "DropoutCell",
    "GRUCell",
    "HybridRecurrentCell",
    "HybridSequentialRNNCell",
    "LSTMCell",
    "ModifierCell",
    "RNNCell",
    "RecurrentCell",
    "ResidualCell",
    "SequentialRNNCell",
    "ZoneoutCell",
    "numeric_types",
    "string_types",
    "tensor_types",
]
