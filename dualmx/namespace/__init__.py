"""The front ends `nd` and `sym`, generated from the operator registry."""

from __future__ import annotations

from .. import ndarray as nd
from .. import symbol as sym
from ..ndarray.array import NDArray
from ..ndarray.trace import engine
from ..op import defs as _defs
from ..op.defs.scalar import DYNAMIC
from ..op.registry import OPS
from . import array_functions, composed, methods, pairs, random_functions, symbol_functions

engine.dynamic_twin.update(DYNAMIC)
array_functions.populate(nd, OPS)
pairs.populate(nd)
random_functions.populate(nd)
composed.populate(nd)
methods.install(NDArray, nd)
symbol_functions.populate(sym)

__all__ = ["nd", "sym"]
