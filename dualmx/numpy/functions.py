"""The functions of `mx.np` by name, for those that call them by NumPy's: its dispatch protocols and `mx.sym.np`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import creation, elementwise, fallback, financial, linalg, manipulation, reductions, searching

FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: function
    for module in (creation, elementwise, financial, linalg, manipulation, reductions, searching)
    for name in module.__all__
    if callable(function := getattr(module, name))
} | elementwise.FUNCTIONS


def find(name: str) -> Any:
    """Return the function called `name`, by NumPy on the host where there is no other; None if there is none."""
    return FUNCTIONS.get(name) or fallback.find(name)


__all__ = ["FUNCTIONS", "find"]
