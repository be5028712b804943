"""Stores that only all-reduce, as MXNet's Horovod and BytePS stores; the Trainer updates. `TestStore` is for tests."""

from __future__ import annotations

from typing import Any

from .. import parallel
from ..core.errors import ArgumentError
from ..ndarray import NDArray
from .base import KVStoreBase, check_capability


class AllReduceStore(KVStoreBase):
    """A store without values and optimizer: the updates are the Trainer's."""

    @staticmethod
    def is_capable(capability: str) -> bool:
        """False: it has no optimizer.

        Raises:
            ArgumentError: an unknown capability.
        """
        check_capability(capability)
        return False


def as_list(value: Any) -> list[NDArray]:
    """Return an array, or several, as a list."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def sum_arrays(arrays: list[NDArray]) -> NDArray:
    """Return the sum of arrays, on the context of the first; the first itself where it is the only one."""
    total = arrays[0]
    for a in arrays[1:]:
        total = total + a.as_in_context(total.context)
    return total


@KVStoreBase.register
class Horovod(AllReduceStore):
    """Sums over devices and over the processes of the job, which exchange values directly; keeps nothing.

    Example:
        >>> import dualmx as mx
        >>> store = mx.kv.create("horovod")
        >>> x = mx.nd.ones((2,))
        >>> store.pushpull("x", x)
        >>> x.asnumpy().tolist(), store.rank, store.num_workers, store.is_capable("optimizer")
        ([1.0, 1.0], 0, 1, False)
    """

    def __init__(self) -> None:
        parallel.init()

    @property
    def rank(self) -> int:
        """Number of this process, from 0."""
        return parallel.rank()

    @property
    def local_rank(self) -> int:
        """Number of this process on its host."""
        return parallel.local_rank()

    @property
    def num_workers(self) -> int:
        """How many processes there are."""
        return parallel.size()

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Copy the `value` of process 0 to `out`, an array or a list; for a list of keys lists of those.

        Raises:
            ArgumentError: shapes or dtypes differ. MXNetError: a process is gone.
        """
        keys = isinstance(key, (list, tuple))
        for v, o in zip(value, out, strict=True) if keys else [(value, out)]:
            found = parallel.broadcast(as_list(v)[0])
            for target in as_list(o):
                target[:] = found.as_in_context(target.context)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Write the sum of `value`, an array or a list, over all processes to `out`, or back to `value` without one.

        Raises:
            ArgumentError: the processes call different things. MXNetError: a process is gone.
        """
        keys = isinstance(key, (list, tuple))
        groups = [as_list(v) for v in value] if keys else [as_list(value)]
        targets = groups if out is None else [as_list(o) for o in out] if keys else [as_list(out)]
        if len(targets) != len(groups):
            raise ArgumentError(f"kvstore.pushpull: out has {len(targets)} entries for {len(groups)} keys")
        for k, group, into in zip(key if keys else [key], groups, targets, strict=True):
            total = parallel.all_reduce(sum_arrays(group), name=repr(k))
            for o in into:
                o[:] = total.as_in_context(o.context)


@KVStoreBase.register
class BytePS(Horovod):
    """The same by the name of BytePS."""


@KVStoreBase.register
class TestStore(AllReduceStore):
    """Sums over the arrays of a push, and stores nothing: the least that a Trainer needs.

    Example:
        >>> import dualmx as mx
        >>> store = mx.kv.create("teststore")
        >>> values = [mx.nd.ones(2), mx.nd.ones(2) * 2]
        >>> store.pushpull("w", values)
        >>> values[0].asnumpy().tolist()
        [3.0, 3.0]
    """

    __test__ = False  # pytest: no test class

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Copy `value` to `out`, an array or a list."""
        for o in as_list(out):
            o[:] = value.as_in_context(o.context)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Write the sum of `value`, an array or a list, to `out`, or back to `value` without one."""
        arrays = as_list(value)
        total = sum_arrays(arrays)
        for o in arrays if out is None else as_list(out):
            if o is not total:
                o[:] = total.as_in_context(o.context)


__all__ = ["AllReduceStore", "BytePS", "Horovod", "TestStore", "as_list", "sum_arrays"]
