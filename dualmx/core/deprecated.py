"""Deprecated aliases of public names; they warn with the new name."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def former_names(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module that still answers to former names.

    Args:
        module: its name.
        names: former name -> name of today.

    Raises:
        AttributeError: of the result, where the name is neither.

    Example:
        >>> import dualmx.core.deprecated as here
        >>> find = former_names("dualmx.core.deprecated", {"old_names": "former_names"})
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore", DeprecationWarning)
        ...     find("old_names") is here.former_names
        True
    """

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(f"{module}.{name} is called {module}.{names[name]} now", DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], names[name])

    return find


__all__ = ["former_names"]
