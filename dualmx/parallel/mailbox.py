"""Mailbox: arrays received from other processes, by rank and tag."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.errors import MXNetError
from .process_group import ProcessGroup


class Handle:
    """Something that was begun: a send, a receive or an exchange.

    Example:
        >>> import dualmx as mx
        >>> handle = mx.parallel.all_reduce(mx.nd.ones((2,)), wait=False)
        >>> handle.wait().asnumpy().tolist()
        [1.0, 1.0]
    """

    def __init__(self, finish: Callable[[], Any], ready: Callable[[], bool]):
        self._finish, self._ready = finish, ready
        self._over = False
        self._result: Any = None

    def is_completed(self) -> bool:
        """Whether `wait` returns, or raises, at once."""
        return self._over or self._ready()

    def wait(self) -> Any:
        """Wait for the end, and return the result: the array of a receive or an exchange.

        Raises:
            MXNetError: the other process is gone.
        """
        if not self._over:
            self._result = self._finish()
            self._over = True
        return self._result


class _PostedReceive:
    def __init__(self, sources: Sequence[int], out: np.ndarray | None):
        self.sources, self.out = sources, out
        self.result: tuple[int, np.ndarray] | None = None


class Mailbox:
    """What a group's members send to each other.

    Args:
        group: the processes.
    """

    def __init__(self, group: ProcessGroup):
        self.group = group
        self._wanted: dict[str, list[_PostedReceive]] = {}
        self._lock = threading.RLock()

    def send(self, x: np.ndarray, to: int, tag: int, what: str) -> None:
        """Send an array; it is buffered at once, whether or not the other process waits for it.

        Raises:
            MXNetError: the process is gone.
        """
        try:
            self.group.send(to, self._channel(tag), {"d": x.dtype.name, "s": list(x.shape)}, x)
        except MXNetError as e:
            raise MXNetError(f"{what}: {e}") from None

    def _channel(self, tag: int) -> str:
        return f"{self.group.name}:mail:{tag}"

    def post_receive(self, sources: Sequence[int], tag: int, out: np.ndarray | None) -> _PostedReceive:
        """Begin to receive; what arrives goes to whom began first."""
        one = _PostedReceive(sources, out)
        with self._lock:
            self._wanted.setdefault(self._channel(tag), []).append(one)
        return one

    def can_complete(self, one: _PostedReceive, tag: int) -> bool:
        """Whether `complete_receive` returns at once."""
        peers = self.group.peers
        assert peers is not None
        return one.result is not None or peers.can_receive(
            self._channel(tag), [self.group.ranks[s] for s in one.sources]
        )

    def complete_receive(self, one: _PostedReceive, tag: int, what: str) -> tuple[int, np.ndarray]:
        """Wait until an array has arrived; return its sender and the array.

        Raises:
            ArgumentError: it does not fit. MXNetError: the sender is gone.
        """
        channel = self._channel(tag)
        with self._lock:
            waiting = self._wanted[channel]
            while one.result is None:
                # Those who began earlier with one of these senders come first.
                first = next(w for w in waiting if set(w.sources) & set(one.sources))
                sources = [s for s in one.sources if s in first.sources]
                try:
                    first.result = self.group.receive(sources, channel, what, None, first.out)
                finally:
                    waiting.remove(first)
            return one.result


__all__ = ["Handle", "Mailbox"]
