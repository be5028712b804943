"""Process sets: subsets of ranks that run collectives of their own."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from .. import parallel
from ..core.errors import ArgumentError
from ..parallel import jax_distributed
from .background_loop import BackgroundLoop


class ProcessSet:
    """A subset of ranks; usable after `add_process_set` (or `init`), which all processes call with equal arguments.

    Args:
        ranks: numbers of the processes.

    Attributes:
        process_set_id: number of the set, None before it was added; 0 for all processes.
    """

    process_set_id: int | None = None

    def __init__(self, ranks: Sequence[int]):
        self._ranks = sorted(set(ranks))
        self._group: parallel.ProcessGroup | None = None
        self._engine: BackgroundLoop | None = None

    @property
    def ranks(self) -> list[int]:
        """Numbers of the processes."""
        return list(range(parallel.size())) if self.process_set_id == 0 else list(self._ranks)

    def included(self) -> bool:
        """Return whether this process is in the set."""
        return parallel.rank() in self.ranks

    def rank(self) -> int:
        """Return the number of this process in the set, -1 if it is not in it."""
        return self.ranks.index(parallel.rank()) if self.included() else -1

    def size(self) -> int:
        """Return how many processes are in the set."""
        return len(self.ranks)

    def __repr__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"


global_process_set = ProcessSet([])
global_process_set.process_set_id = 0
_sets: list[ProcessSet] = []
_starting = threading.Lock()


def add_process_set(process_set: Any) -> ProcessSet:
    """Make a set usable; all processes call it with the same ranks, in the same order.

    Args:
        process_set: a `ProcessSet` or a list of ranks.

    Raises:
        ArgumentError: the set was added already, or has ranks that are not there.
    """
    one = process_set if isinstance(process_set, ProcessSet) else ProcessSet(process_set)
    if one.process_set_id is not None:
        raise ArgumentError(f"hvd.add_process_set: {one!r} was added already")
    one._group = parallel.new_group(one._ranks)
    _sets.append(one)
    one.process_set_id = len(_sets)
    return one


def remove_process_set(process_set: ProcessSet) -> bool:
    """Make a set unusable; returns whether it was usable."""
    if process_set.process_set_id in (None, 0):
        return False
    _end(process_set)
    process_set.process_set_id = process_set._group = None
    return True


def _end(process_set: ProcessSet) -> None:
    if process_set._engine is not None:
        process_set._engine.stop()
        process_set._engine = None


def remove_all_sets() -> None:
    """Make all sets unusable."""
    for one in _sets:
        remove_process_set(one)
    _sets.clear()
    _end(global_process_set)
    global_process_set._group = None


def init_global_set() -> None:
    """Make the set of all processes usable."""
    if global_process_set._group is None and parallel.size() > 1:
        global_process_set._group = parallel.new_group()


def loop_of(what: str, process_set: Any) -> BackgroundLoop | None:
    """Return what makes the exchanges of a set; None if its process is alone, or if XLA exchanges.

    Raises:
        ArgumentError: not a set, one that was not added, or one without this process.
    """
    group_of(what, process_set)
    group = process_set._group
    if group is None or group.size == 1 or jax_distributed.size() > 1:
        return None
    if group.rank < 0:
        raise ArgumentError(f"hvd.{what}: process {parallel.rank()} is not in {process_set!r}")
    with _starting:
        if process_set._engine is None:
            process_set._engine = BackgroundLoop(group)
        return process_set._engine


def group_of(what: str, process_set: Any) -> parallel.ProcessGroup | None:
    """Return the group of a set, None for all processes.

    Raises:
        ArgumentError: not a set, or one that was not added.
    """
    if not isinstance(process_set, ProcessSet):
        raise ArgumentError(f"hvd.{what}: process_set={process_set!r}: expected a ProcessSet")
    if process_set.process_set_id == 0:
        return None
    if process_set._group is None:
        raise ArgumentError(f"hvd.{what}: {process_set!r} was not added; call hvd.add_process_set first")
    return process_set._group


__all__ = ["ProcessSet", "add_process_set", "global_process_set", "remove_process_set"]
