"""The store whose sums over processes are XLA collectives: dense, synchronous, without servers."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import ArgumentError
from ..ndarray import NDArray, waitall
from ..parallel import processes
from ..ps import Job
from .dist import DistKVStore
from .local import KVStore

_control: list[DistKVStore] = []


def join(name: str) -> None:
    """Join the processes of the job, if that has not happened.

    In a job of `dualmx-launch` the workers find each other through its scheduler, which also notices when one dies.

    Raises:
        MXNetError: XLA is running already, or nothing tells about a job.
    """
    if processes.size() > 1 or _control:
        return
    if not Job.described():
        processes.init()
        return
    control = DistKVStore("dist_sync")
    where = np.zeros(264, np.int32)
    if control.rank == 0:
        host = Job.from_env().own_host()
        with socket.socket() as s:
            s.bind(("", 0))
            text = f"{host}:{s.getsockname()[1]}".encode()
        where[: len(text)] = list(text)
    found = _of_first(control, where)
    processes.init(bytes(found[found > 0].astype(np.uint8)).decode(), control.num_workers, control.rank)
    _control.append(control)
    processes.watchdogs.append(_gone)


def _of_first(control: DistKVStore, value: np.ndarray) -> np.ndarray:
    """Return the value of rank 0; plain NumPy, because XLA must not have started yet."""
    store, key = control._number, "coordinator"
    control._kv.know(store, key, value.shape, value.dtype)
    if control.rank == 0:
        control._kv.wait(control._kv.put(store, {key: value}))
    control._worker.barrier()
    return control._kv.pull(store, [key]).values()[key]


def _gone() -> str:
    dead = sorted(_control[0]._worker.dead)
    return ", ".join(f"{role} {rank} is dead" for role, rank in dead)


class CollectiveKVStore(KVStore):
    """Key-value store among processes that XLA knows of (`jax.distributed`); see `parallel.init`.

    A push sums over the devices of each process, then over the processes: what is pushed in one call travels as one
    message per dtype. All processes make the same calls in the same order, and get the same bits; with an optimizer
    each updates its own copy of the stored values.

    Args:
        name: what the store is called.

    Raises:
        MXNetError: the processes cannot be joined, or one of them is gone (any method).
    """

    def __init__(self, name: str):
        join(name)
        super().__init__(name)

    @property
    def rank(self) -> int:
        """Number of this process, from 0."""
        return processes.rank()

    @property
    def num_workers(self) -> int:
        """How many processes there are."""
        return processes.size()

    def init(self, key: Any, value: Any) -> None:
        """Store initial values: those of rank 0.

        Raises:
            ArgumentError: a key is there already, or of the other type. MXNetError: a process is gone.
        """
        before = set(self._stored)
        super().init(key, value)
        fresh = [k for k in self._stored if k not in before]
        for k, a in zip(fresh, self._exchanged("broadcast", "init", [self._stored[k] for k in fresh]), strict=True):
            self._stored[k] = a

    def _sums(self, pairs: Sequence[tuple[Any, list[NDArray]]]) -> list[NDArray]:
        return self._exchanged("sum", "push", super()._sums(pairs))

    def _exchanged(self, kind: str, what: str, arrays: Sequence[NDArray]) -> list[NDArray]:
        for a in arrays:
            if a.stype != "default":
                raise ArgumentError(
                    f"kvstore {self._name!r}: {what} of a {a.stype} array; collectives are for dense arrays, use the "
                    f"store 'dist_sync'"
                )
        found: list[NDArray] = list(arrays)
        for ctx in dict.fromkeys(a.context for a in arrays):
            at = [i for i, a in enumerate(arrays) if a.context is ctx]
            results = processes.exchanged(kind, f"kvstore.{what}", [arrays[i] for i in at])
            for i, r in zip(at, results, strict=True):
                found[i] = r
        return found

    def barrier(self) -> None:
        """Wait until all processes have called it.

        Raises:
            MXNetError: a process is gone.
        """
        waitall()
        processes.barrier()

    _barrier = barrier

    def num_dead_node(self, node_id: int = 0, timeout: int = 60) -> int:
        """Return how many other processes are known to have died; see `DistKVStore.num_dead_node`."""
        return _control[0].num_dead_node(node_id, timeout) if _control else 0


def joined_already() -> bool:
    """True if XLA knows of other processes, so that a `device` store needs no servers."""
    return processes.size() > 1


__all__ = ["CollectiveKVStore", "join", "joined_already"]
