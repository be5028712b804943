"""MXNet's `mx.rnn`: recurrent cells over symbols, bucketed sentences, checkpoints."""

from . import io, rnn, rnn_cell
from .io import BucketSentenceIter, encode_sentences
from .rnn import *
from .rnn_cell import *

__all__ = ["BucketSentenceIter", "encode_sentences", "io", "rnn", "rnn_cell"]
__all__ += rnn.__all__
__all__ += rnn_cell.__all__
