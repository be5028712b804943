"""A small store for tests of code that works with any store."""

from __future__ import annotations

from typing import Any

from .base import KVStoreBase
from .summing import AllReduceStore, as_list, sum_arrays


@KVStoreBase.register
class TestStore(AllReduceStore):
    """Sums over the arrays that it is given, and keeps nothing: the least that a Trainer needs of a store.

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


__all__ = ["TestStore"]
