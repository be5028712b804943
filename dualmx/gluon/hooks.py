"""Hooks: functions that a block calls around its forward pass."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

_ids = itertools.count()


class HookHandle:
    """Ticket of a registered hook; `detach()` (or leaving a `with`) removes the hook.

    Example:
        >>> import dualmx as mx
        >>> net = mx.gluon.nn.Flatten()
        >>> with net.register_forward_hook(lambda block, inputs, output: print(output.shape)):
        ...     _ = net(mx.nd.ones((2, 3, 4)))
        (2, 12)
    """

    def __init__(self) -> None:
        self._hooks: dict[int, Callable[..., Any]] | None = None
        self._id: int | None = None

    def attach(self, hooks_dict: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        """Register `hook` in `hooks_dict`."""
        if self._hooks is not None:
            raise RuntimeError("this handle already belongs to a hook")
        self._hooks, self._id = hooks_dict, next(_ids)
        hooks_dict[self._id] = hook

    def detach(self) -> None:
        """Remove the hook; a second call does nothing."""
        if self._hooks is not None and self._id is not None:
            self._hooks.pop(self._id, None)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.detach()
