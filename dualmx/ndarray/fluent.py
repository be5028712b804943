"""The class that type checkers find the fluent methods in; `namespace` attaches the methods themselves."""

from __future__ import annotations

from .handle import Handle


class Fluent(Handle):
    """An array with operators as methods: `x.sum(axis=1)` is `nd.sum(x, axis=1)`."""

    __slots__ = ()
