"""`LocalStore`: sums gradients over the contexts of one process, and optionally applies the optimizer."""

from __future__ import annotations

from typing import Any

from ..core.errors import ArgumentError
from ..ndarray import NDArray
from ..optimizer import Updater, get_updater


class LocalStore:
    """The in-process key-value store behind `Trainer(kvstore="device")` on several contexts.

    `push` sums the values given for a key; without an optimizer the sum replaces the stored value, otherwise the
    optimizer updates the stored value by it. `pull` copies the stored value out.

    Args:
        name: what `type` returns.
    """

    num_workers = 1
    rank = 0

    def __init__(self, name: str = "device"):
        self.type = name
        self._values: dict[Any, NDArray] = {}
        self._updater: Updater | None = None

    def init(self, keys: list[Any], values: list[NDArray]) -> None:
        """Store initial values; raises `ArgumentError` for a key that exists."""
        for key, value in zip(keys, values, strict=True):
            if key in self._values:
                raise ArgumentError(f"kvstore: key {key!r} is initialized already")
            self._values[key] = value.copy()

    def push(self, keys: list[Any], values: list[list[NDArray]], priority: int = 0) -> None:
        """Sum the arrays given for each key and store, or update by, the sums."""
        sums = [self._sum(key, arrays) for key, arrays in zip(keys, values, strict=True)]
        if self._updater is not None:
            self._updater(keys, sums, [self._values[key] for key in keys])
        else:
            self._values.update(zip(keys, sums, strict=True))

    def _sum(self, key: Any, arrays: list[NDArray]) -> NDArray:
        if key not in self._values:
            raise ArgumentError(f"kvstore: key {key!r} is not initialized")
        ctx = self._values[key].context
        total = arrays[0].as_in_context(ctx)
        for array in arrays[1:]:
            total = total + array.as_in_context(ctx)
        return total

    def pull(self, keys: list[Any], out: list[list[NDArray]], priority: int = 0, ignore_sparse: bool = True) -> None:
        """Copy the stored value of each key into all arrays given for it."""
        for key, arrays in zip(keys, out, strict=True):
            for array in arrays:
                self._values[key].copyto(array)

    def reset(self, key: Any, value: NDArray) -> None:
        """Replace a stored value, updating nothing."""
        self._values[key][:] = value.as_in_context(self._values[key].context)

    def set_optimizer(self, optimizer: Any) -> None:
        """Apply `optimizer` to what is pushed from now on."""
        self._updater = get_updater(optimizer)

    def is_capable(self, capability: str) -> bool:
        """True for `"optimizer"`: updates can happen in the store."""
        return capability == "optimizer"

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Write the optimizer's states to a file."""
        with open(fname, "wb") as f:
            f.write(self._active_updater().get_states(dump_optimizer))

    def load_optimizer_states(self, fname: str) -> None:
        """Read the optimizer's states from a file."""
        with open(fname, "rb") as f:
            self._active_updater().set_states(f.read())

    def _active_updater(self) -> Updater:
        if self._updater is None:
            raise ArgumentError("kvstore: no optimizer is set, so there are no states")
        return self._updater
