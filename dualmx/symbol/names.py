"""Automatic names: `NameManager` counts per kind of node, `Prefix` adds a prefix."""

from __future__ import annotations

import threading
from typing import Any


class _ThreadManager(threading.local):
    def __init__(self) -> None:
        self.stack: list[NameManager] = [NameManager()]


class _CurrentProperty(type):
    @property
    def current(cls) -> NameManager:
        """The innermost name manager of this thread."""
        return _active.stack[-1]


class NameManager(metaclass=_CurrentProperty):
    """Gives nodes without a name the next free one of their kind: `fullyconnected0`, `fullyconnected1`, …

    Managers nest with `with`; each thread has its own, and each manager counts from 0. Gluon's blocks outside any
    name scope share the counters with symbols.

    Example:
        >>> with NameManager() as names:
        ...     names.get(None, "conv"), names.get(None, "conv"), names.get("mine", "conv")
        ('conv0', 'conv1', 'mine')
    """

    def __init__(self) -> None:
        self._counter: dict[str, int] = {}

    def get(self, name: str | None, hint: str) -> str:
        """Return `name` if there is one, else `hint` with the next number of that hint."""
        if name:
            return name
        n = self._counter.get(hint, 0)
        self._counter[hint] = n + 1
        return f"{hint}{n}"

    def __enter__(self) -> NameManager:
        _active.stack.append(self)
        return self

    def __exit__(self, *exc: Any) -> None:
        _active.stack.pop()


class Prefix(NameManager):
    """A name manager that prepends `prefix` to every name of an operator node, explicit names included.

    Example:
        >>> with Prefix("net_") as names:
        ...     names.get(None, "fc"), names.get("head", "fc")
        ('net_fc0', 'net_head')
    """

    def __init__(self, prefix: str):
        super().__init__()
        self._prefix = prefix

    def get(self, name: str | None, hint: str) -> str:
        """Return the prefix followed by the name that a plain manager would give."""
        return self._prefix + super().get(name, hint)


_active = _ThreadManager()
