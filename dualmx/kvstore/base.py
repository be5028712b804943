"""`KVStoreBase`: the interface of stores, and their registry by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from ..core.errors import ArgumentError, ArgumentTypeError, suggest


class KVStoreBase:
    """Interface of key-value stores; a subclass registered with `KVStoreBase.register` is found by its name.

    Example:
        >>> import dualmx as mx
        >>> @mx.kv.KVStoreBase.register
        ... class Doubling(mx.kv.KVStoreBase):
        ...     def broadcast(self, key, value, out, priority=0):
        ...         for o in out if isinstance(out, list) else [out]:
        ...             value.copyto(o)
        >>> type(mx.kv.create("doubling")).__name__
        'Doubling'
    """

    OPTIMIZER = "optimizer"
    kv_registry: ClassVar[dict[str, type[KVStoreBase]]] = {}

    @staticmethod
    def register(klass: type[KVStoreBase]) -> type[KVStoreBase]:
        """Make a store available to `create` under its lower-cased class name; a decorator."""
        if not isinstance(klass, type):
            raise ArgumentTypeError(f"KVStoreBase.register: klass={klass!r}: expected a class")
        KVStoreBase.kv_registry[klass.__name__.lower()] = klass
        return klass

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Store `value` (of rank 0) under `key` and copy it to `out`."""
        raise NotImplementedError(f"{type(self).__name__} must define broadcast")

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Sum `value` over devices and workers, and write the result to `out` (to `value` without one)."""
        raise NotImplementedError(f"{type(self).__name__} must define pushpull")

    def set_optimizer(self, optimizer: Any) -> None:
        """Apply `optimizer` inside the store."""
        raise NotImplementedError(f"{type(self).__name__} has no optimizer")

    def set_gradient_compression(self, compression_params: Mapping[str, Any]) -> None:
        """Compress what is exchanged."""
        raise NotImplementedError(f"{type(self).__name__} has no gradient compression")

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Return whether the store has a capability, such as `"optimizer"`."""
        raise NotImplementedError("a store must define is_capable")

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Write the optimizer's states to a file."""
        raise NotImplementedError(f"{type(self).__name__} has no optimizer")

    def load_optimizer_states(self, fname: str) -> None:
        """Read the optimizer's states from a file."""
        raise NotImplementedError(f"{type(self).__name__} has no optimizer")

    @property
    def type(self) -> str:
        """Name of the store."""
        return type(self).__name__.lower()

    @property
    def rank(self) -> int:
        """Number of this worker, from 0."""
        return 0

    @property
    def num_workers(self) -> int:
        """How many workers share the store."""
        return 1


def has_values(store: Any) -> bool:
    """Whether values are pushed to a store and pulled from it, and not only summed over by `pushpull`."""
    return all(hasattr(store, name) for name in ("init", "push", "pull"))


def updater_of(store: Any) -> Any:
    """Return what applies the optimizer in this process, which stores of MXNet have as `_updater`; None without one."""
    return getattr(store, "_updater", None)


def pushpull_each(store: Any, keys: list[Any], values: list[list[Any]], out: list[list[Any]]) -> None:
    """`pushpull` key by key, the first ones with the highest priority."""
    for i, (key, arrays, results) in enumerate(zip(keys, values, out, strict=True)):
        store.pushpull(key, arrays, out=results, priority=-i)


def pull_all(store: Any, keys: list[Any], out: list[list[Any]]) -> None:
    """Pull the values of keys from a store into arrays of any storage type, a list of them per key."""
    if any(a.is_sparse for arrays in out for a in arrays):
        store.pull(keys, out=out, ignore_sparse=False)
    else:
        store.pull(keys, out=out)


def pull_copies(store: Any, keys: list[Any], copies: list[list[Any]]) -> None:
    """As `pull_all`, for arrays that nothing else writes to; stores that know what has changed fetch no more."""
    if hasattr(store, "pull_changed"):
        store.pull_changed(keys, copies)
    else:
        pull_all(store, keys, copies)


def staleness_of(name: str) -> int | None:
    """The k of `"dist_ssp:k"`, None for any other name.

    Example:
        >>> staleness_of("dist_ssp:3"), staleness_of("dist_async")
        (3, None)
    """
    found = re.fullmatch(r"dist_ssp:(\d{1,9})", name.lower())
    return int(found[1]) if found else None


def check_capability(capability: Any) -> None:
    """Raise `ArgumentError` for a capability that no store has."""
    if str(capability).lower() != KVStoreBase.OPTIMIZER:
        raise ArgumentError(f"kvstore.is_capable: capability={capability!r}: expected 'optimizer'")


def unknown(name: str, known: list[str]) -> ArgumentError:
    """Return the error for an unknown store type."""
    return ArgumentError(f"kvstore.create: name={name!r}: unknown store; {suggest(name, known)}")
