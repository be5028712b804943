"""Bridges to Flax, Optax and JAX, imported on first use.

`FlaxBlock` runs a Flax module as a block. `functional` turns a block or symbol into a pure function of a tree of
parameters. `OptaxOptimizer` trains Gluon parameters with an Optax gradient transformation.
"""

from .flax_block import FlaxBlock
from .functional import functional
from .optax_optimizer import OptaxOptimizer

__all__ = ["FlaxBlock", "OptaxOptimizer", "functional"]
