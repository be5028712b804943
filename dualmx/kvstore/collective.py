"""Store over collectives: synchronous, without servers."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from typing import Any

from .. import parallel
from ..ndarray import NDArray, waitall
from ..ndarray.execute_joint import ProcessRunner
from ..optimizer import Optimizer
from ..parallel import jax_distributed
from ..parallel.collectives import check_same_call
from ..parallel.world import group_of, num_dead
from .local import KVStore


class _XlaProcesses:
    """All processes that XLA has joined."""

    def same_on_all(self, text: str) -> bool:
        """Whether all processes say the same."""
        digest = hashlib.sha256(text.encode()).hexdigest()
        return len(set(parallel.all_gather_object(digest))) == 1 and text != "no"

    def run(self, work: Any) -> Any:
        """Run a program of all processes, and wait for its results.

        Raises:
            MXNetError: a process is gone.
        """
        return jax_distributed.run_with_timeout(work, "Trainer.step")


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
            ArgumentError: a key is there already, or of the other type, or the processes have other keys or shapes.
            MXNetError: a process is gone.
        """
        before = set(self._stored)
        if self.num_workers > 1:
            pairs = self._initial(key, value, self._stored)
            _check_same_call("init", [group[0] for _, group in pairs], keys=_named([k for k, _ in pairs]))
        super().init(key, value)
        fresh = [k for k in self._stored if k not in before]
        for at in self._groups([self._stored[k] for k in fresh]):
            found = parallel.broadcast([self._stored[fresh[i]] for i in at])
            for i, a in zip(at, found, strict=True):
                self._stored[fresh[i]] = a

    def _sums(self, pairs: Sequence[tuple[Any, list[NDArray]]]) -> list[NDArray]:
        sums = super()._sums(pairs)
        for at in self._groups(sums):
            name = _named([pairs[i][0] for i in at])
            for i, a in zip(at, parallel.all_reduce([sums[i] for i in at], name=name), strict=True):
                sums[i] = a
        return sums

    def set_optimizer(self, optimizer: Optimizer) -> None:
        """Update the stored values by `optimizer` at each push, equally in every process; all of them call it.

        Raises:
            ArgumentTypeError: no Optimizer. ArgumentError: the processes have different ones. MXNetError: one is gone.
        """
        if self.num_workers > 1:
            _check_same_call("set_optimizer", [], optimizer=type(optimizer).__name__)
        super().set_optimizer(optimizer)

    @property
    def xla_processes(self) -> ProcessRunner | None:
        """The other processes, if XLA exchanges values with them inside of compiled steps; None otherwise."""
        return _XlaProcesses() if parallel.size() == jax_distributed.size() > 1 else None

    def update_together(self, keys: Sequence[Any], grads: Any, weights: Any) -> bool:
        """Like `push` of gradients and `pull` of the updated weights, as one program on all devices of all processes.

        Args:
            keys: initialized keys.
            grads, weights: for each key a list with one array per context.

        Returns:
            Whether it was done, the same in all processes: they must have recorded the same.
        """
        everywhere = self.xla_processes
        if everywhere is None or self._replicas is None or self._compression is not None:
            return False
        if any(k not in self._stored for k in keys) or not self._replicas.step(keys, grads, weights, everywhere):
            return False
        self._aliased_values.update((k, arrays[0]) for k, arrays in zip(keys, weights, strict=True))
        return True

    @staticmethod
    def _groups(arrays: Sequence[NDArray]) -> list[list[int]]:
        """Return indices of arrays that can be fused: on one context, and all dense or all sparse."""
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

    def num_dead_node(self, timeout: int = 60, node_id: int = 0) -> int:
        """Return how many other processes are known to have died."""
        return num_dead()


def _named(keys: Sequence[Any]) -> str:
    """Keys in a few words, by which processes see whether they mean the same ones."""
    shown = ", ".join(map(repr, keys[:4]))
    return shown if len(keys) <= 4 else f"{shown} and {len(keys) - 4} more ({zlib.crc32(repr(keys).encode()):08x})"


def _check_same_call(call: str, arrays: Sequence[NDArray], **more: str) -> None:
    """Raise `ArgumentError` in all processes if they do not make the same call."""
    what = f"kvstore.{call}"
    group = group_of(None, what)
    group.run_in_order(lambda: check_same_call(group, what, call, arrays, **more))


def is_multi_process() -> bool:
    """True if this process has joined others, so that a `device` store needs no servers."""
    return parallel.size() > 1


__all__ = ["CollectiveKVStore", "is_multi_process"]
