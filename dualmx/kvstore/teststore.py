"""A small store for tests of code that works with any store."""

from __future__ import annotations

from typing import Any

from ..core.errors import ArgumentError
from ..ndarray import NDArray
from .base import KVStoreBase


@KVStoreBase.register
class TestStore(KVStoreBase):
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
        for o in listed(out):
            o[:] = value.as_in_context(o.context)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Write the sum of `value`, an array or a list, to `out`, or back to `value` without one."""
        arrays = listed(value)
        total = arrays[0]
        for a in arrays[1:]:
            total = total + a.as_in_context(total.context)
        for o in arrays if out is None else listed(out):
            if o is not total:
                o[:] = total.as_in_context(o.context)

    @staticmethod
    def is_capable(capability: str) -> bool:
        """False: it has no optimizer.

        Raises:
            ArgumentError: an unknown capability.
        """
        if str(capability).lower() != KVStoreBase.OPTIMIZER:
            raise ArgumentError(f"kvstore.is_capable: capability={capability!r}: expected 'optimizer'")
        return False


def listed(value: Any) -> list[NDArray]:
    """Return an array, or several, as a list."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


__all__ = ["TestStore", "listed"]
