"""Recurrent layers over sequences, and cells for one step."""

from . import cell, cell_wrappers, rnn_cell, rnn_layer
from .cell import *
from .cell_wrappers import *
from .rnn_layer import GRU, LSTM, RNN

__all__ = ["GRU", "LSTM", "RNN", "rnn_cell", "rnn_layer"]
__all__ += cell.__all__
__all__ += cell_wrappers.__all__
