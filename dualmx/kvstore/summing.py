"""What stores that sum and keep nothing have in common."""

from __future__ import annotations

from typing import Any

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


__all__ = ["AllReduceStore", "as_list", "sum_arrays"]
