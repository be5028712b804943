"""`RNNParams`: the variables that cells share by name."""

from __future__ import annotations

from typing import Any

from ..namespace import sym
from ..symbol import Symbol


class RNNParams:
    """Makes each variable `prefix + name` once and returns the same one from then on.

    Example:
        >>> params = RNNParams("lstm_")
        >>> params.get("weight") is params.get("weight")
        True
    """

    def __init__(self, prefix: str = ""):
        self._prefix = prefix
        self._params: dict[str, Symbol] = {}

    def get(self, name: str, **kwargs: Any) -> Symbol:
        """Return the variable; `kwargs` go to `sym.var` when it is new."""
        full = self._prefix + name
        if full not in self._params:
            self._params[full] = sym.var(full, **kwargs)
        return self._params[full]
