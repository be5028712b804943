"""The class that type checkers find the fluent methods in; `namespace` attaches the methods themselves."""

from __future__ import annotations


class Fluent:
    """A symbol with operators as methods: `x.sum(axis=1)` is `sym.sum(x, axis=1)`."""

    __slots__ = ()
