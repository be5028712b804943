"""Symbols: named expressions over variables, JSON, inference, executors."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # What `namespace` adds; first, so that what is written by hand and imported below hides it. Stubs may be missing.
    from . import _internal, contrib, fluent, image, linalg, op, random, sparse  # noqa: F401  # pyright: ignore
    from .fluent import *

from . import attributes, creation, symbol
from .arithmetic import NotImplementedForSymbol
from .attributes import *
from .creation import *
from .executor import Executor
from .lowering import graph_call
from .symbol import *

__all__ = ["Executor", "NotImplementedForSymbol", "graph_call"]
__all__ += attributes.__all__
__all__ += creation.__all__
__all__ += symbol.__all__

if TYPE_CHECKING:
    __all__ += fluent.__all__
