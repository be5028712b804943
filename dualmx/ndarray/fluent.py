"""The class that type checkers find the fluent methods in; `namespace` attaches the methods themselves.

They read `fluent.pyi` instead once `python -m dualmx.tools.stubs` has written it. Without it, every name may be one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .handle import Handle

if TYPE_CHECKING:
    __all__ = ["__getattr__"]

    def __getattr__(name: str) -> Any: ...


class Fluent(Handle):
    """An array with operators as methods: `x.sum(axis=1)` is `nd.sum(x, axis=1)`."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
