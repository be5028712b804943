"""Blocks on arrays with NumPy semantics: what their inputs, outputs and parameters are.

Dualmx's own blocks compute with classic operators on second handles of their inputs; what they return gets NumPy
semantics again. A user's `hybrid_forward` receives the arrays as they are, and `F.np` and `F.npx`.
"""

from __future__ import annotations

from typing import Any

from .. import numpy as _np
from .. import numpy_extension as _npx
from ..namespace import nd
from ..ndarray import NDArray
from ..numpy.array import alias, ndarray
from .hybrid import HybridBlock
from .nn import HybridLambda
from .semantics import mapped

_OWN = __name__.rpartition(".")[0] + "."


class Functions:
    """The front end `F` of a user's block: `mx.nd`, with `np` and `npx`."""

    np, npx = _np, _npx

    def __getattr__(self, name: str) -> Any:
        return getattr(nd, name)


FUNCTIONS = Functions()


def _classic(a: Any) -> Any:
    return alias(a, NDArray) if isinstance(a, ndarray) else a


def classic(value: Any) -> Any:
    """Return nested arrays as classic ones on the same values."""
    return mapped(_classic, value)


def is_own(block: Any) -> bool:
    """True if the block and all its descendants compute with dualmx's own code, for which classic operators serve."""
    methods = type(block).hybrid_forward, type(block).forward
    own = all(m.__module__.startswith(_OWN) for m in methods) and not isinstance(block, HybridLambda)
    return own and all(isinstance(child, HybridBlock) and is_own(child) for child in block._children.values())
