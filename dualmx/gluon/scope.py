"""Names of blocks: prefixes counted per class, nested by `with block.name_scope():`."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from ..symbol.names import NameManager, Prefix
from .parameter import ParameterDict

if TYPE_CHECKING:
    from .base import Block


class _Current(threading.local):
    def __init__(self) -> None:
        self.scope: NameScope | None = None


_current = _Current()


class NameScope:
    """Blocks and symbols made inside `with scope:` get the prefix of the scope's block.

    Args:
        block: owner; the scope of a block with the empty prefix changes nothing.
    """

    def __init__(self, block: Block):
        self.block = block
        self._counts: dict[str, int] = {}
        self._outer: list[tuple[NameScope | None, Any]] = []

    def __enter__(self) -> NameScope:
        if not self.block._empty_prefix:
            names = Prefix(self.block.prefix)
            names.__enter__()
            self._outer.append((_current.scope, names))
            _current.scope = self
        return self

    def __exit__(self, *exc: Any) -> None:
        if not self.block._empty_prefix:
            _current.scope, names = self._outer.pop()
            names.__exit__(*exc)

    def _next(self, hint: str) -> str:
        count = self._counts.get(hint, 0)
        self._counts[hint] = count + 1
        return f"{hint}{count}_"


def name_block(prefix: str | None, params: ParameterDict | None, hint: str) -> tuple[str, ParameterDict]:
    """Return the full prefix and the parameter dictionary of a new block of kind `hint`."""
    scope = _current.scope
    if prefix is None:
        prefix = scope._next(hint) if scope else NameManager.current.get(None, hint) + "_"
    if params is not None:
        own = ParameterDict(params.prefix, params)
    elif scope is not None:
        own = ParameterDict(scope.block.params.prefix + prefix, scope.block.params._shared)
    else:
        own = ParameterDict(prefix)
    return (scope.block.prefix + prefix if scope else prefix), own
