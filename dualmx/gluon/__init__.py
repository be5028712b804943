"""Gluon: imperative networks, their parameters, losses and training."""

from . import block, bridge, contrib, data, loss, model_zoo, nn, parallel, parameter, rnn, trainer, utils
from .block import Block, HybridBlock, SymbolBlock
from .parameter import Constant, DeferredInitializationError, Parameter, ParameterDict, tensor_types
from .trainer import Trainer

__all__ = [
    "Block",
    "Constant",
    "DeferredInitializationError",
    "HybridBlock",
    "Parameter",
    "ParameterDict",
    "SymbolBlock",
    "Trainer",
    "block",
    "bridge",
    "contrib",
    "data",
    "loss",
    "model_zoo",
    "nn",
    "parallel",
    "parameter",
    "rnn",
    "tensor_types",
    "trainer",
    "utils",
]
