"""Bridges to Flax and Optax, which are imported only when used.

`FlaxBlock` runs a Flax module as a block, `functional` turns a block or a symbol into a pure function of a tree of
parameters, and `OptaxOptimizer` trains Gluon parameters with an Optax gradient transformation.
"""

from .flax_block import FlaxBlock
from .functional import functional
from .optax_optimizer import OptaxOptimizer

__all__ = ["FlaxBlock", "OptaxOptimizer", "functional"]
