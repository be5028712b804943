"""The class that type checkers find the fluent methods in; `namespace` attaches the methods themselves.

They read `fluent.pyi` instead once `python -m dualmx.tools.stubs` has written it. Without it, every name may be one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __all__ = ["__getattr__"]
    Fluent: Any = object

    def __getattr__(name: str) -> Any: ...

else:

    class Fluent:
        """A symbol with operators as methods: `x.sum(axis=1)` is `sym.sum(x, axis=1)`."""

        __slots__ = ()
