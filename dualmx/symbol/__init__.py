"""Symbols: named expressions over variables, JSON, inference, executors."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # What `namespace` adds; first, so that what is written by hand and imported below hides it. Stubs may be missing.
    from . import _internal, contrib, fluent, image, linalg, op, random, sparse  # noqa: F401  # pyright: ignore
    from .fluent import *  # noqa: F403

from .arithmetic import NotImplementedForSymbol
from .attributes import AttrScope, NameManager, Prefix
from .creation import (
    arange,
    eye,
    full,
    histogram,
    hypot,
    linspace,
    maximum,
    minimum,
    ones,
    pow,
    power,
    split_v2,
    zeros,
)
from .executor import Executor
from .lowering import graph_call
from .symbol import Group, Symbol, Variable, create, fromjson, load, load_json, var

__all__ = [
    "AttrScope",
    "Executor",
    "Group",
    "NameManager",
    "NotImplementedForSymbol",
    "Prefix",
    "Symbol",
    "Variable",
    "arange",
    "create",
    "eye",
    "fromjson",
    "full",
    "graph_call",
    "histogram",
    "hypot",
    "linspace",
    "load",
    "load_json",
    "maximum",
    "minimum",
    "ones",
    "pow",
    "power",
    "split_v2",
    "var",
    "zeros",
]

if TYPE_CHECKING:
    __all__ += fluent.__all__
