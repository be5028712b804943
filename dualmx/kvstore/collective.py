"""The store whose processes exchange values directly: synchronous, without servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import parallel
from ..ndarray import NDArray, waitall
from ..parallel.world import num_dead
from .local import KVStore


class CollectiveKVStore(KVStore):
    """Key-value store among processes that exchange values without servers; see `parallel.init`.

    A push sums over the devices of each process, then over the processes: what is pushed in one call travels as one
    message per dtype. All processes make the same calls in the same order, and get the same bits; with an optimizer
    each updates its own copy of the stored values.

    Args:
        name: what the store is called.

    Raises:
        MXNetError: the processes cannot be joined, or one of them is gone (any method).
    """

    def __init__(self, name: str):
        parallel.init()
        super().__init__(name)

    @property
    def rank(self) -> int:
        """Number of this process, from 0."""
        return parallel.rank()

    @property
    def num_workers(self) -> int:
        """How many processes there are."""
        return parallel.size()

    def init(self, key: Any, value: Any) -> None:
        """Store initial values: those of rank 0.

        Raises:
            ArgumentError: a key is there already, or of the other type. MXNetError: a process is gone.
        """
        before = set(self._stored)
        super().init(key, value)
        fresh = [k for k in self._stored if k not in before]
        for at in self._alike([self._stored[k] for k in fresh]):
            found = parallel.broadcast([self._stored[fresh[i]] for i in at])
            for i, a in zip(at, found, strict=True):
                self._stored[fresh[i]] = a

    def _sums(self, pairs: Sequence[tuple[Any, list[NDArray]]]) -> list[NDArray]:
        sums = super()._sums(pairs)
        for at in self._alike(sums):
            for i, a in zip(at, parallel.all_reduce([sums[i] for i in at]), strict=True):
                sums[i] = a
        return sums

    @staticmethod
    def _alike(arrays: Sequence[NDArray]) -> list[list[int]]:
        """Numbers of arrays that can travel together: on one context, and dense or not."""
        kinds: dict[Any, list[int]] = {}
        for i, a in enumerate(arrays):
            kinds.setdefault((str(a.context), a.stype), []).append(i)
        return list(kinds.values())

    def barrier(self) -> None:
        """Wait until all processes have called it.

        Raises:
            MXNetError: a process is gone.
        """
        waitall()
        parallel.barrier()

    _barrier = barrier

    def num_dead_node(self, node_id: int = 0, timeout: int = 60) -> int:
        """Return how many other processes are known to have died."""
        return num_dead()


def joined_already() -> bool:
    """True if this process has joined others, so that a `device` store needs no servers."""
    return parallel.size() > 1


__all__ = ["CollectiveKVStore", "joined_already"]
