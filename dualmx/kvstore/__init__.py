"""Key-value stores: one interface for summing gradients over devices and workers."""

from __future__ import annotations

from typing import Any

from ..core.deprecated import former_names
from ..core.errors import ArgumentTypeError
from . import base, kvstore, kvstore_server
from .base import KVStoreBase, has_values, pull_all, pull_copies, pushpull_each, staleness_of, unknown
from .elastic_sampler import ElasticSampler
from .horovod import Horovod, TestStore
from .kvstore_server import KVStoreServer
from .local import KVStore

# Where MXNet has it.
base.TestStore = TestStore  # type: ignore[attr-defined]
LOCAL = (
    "local", "device", "nccl", "local_update_cpu", "local_allreduce_cpu", "local_allreduce_device",
)  # fmt: skip
DISTRIBUTED = (
    "dist", "dist_sync", "dist_async", "dist_sync_device", "dist_device_sync", "dist_async_device",
    "dist_device_async", "dist_mixed", "collective",
)  # fmt: skip


def names() -> list[str]:
    """Return the names that `create` takes."""
    return [*LOCAL, *DISTRIBUTED, *KVStoreBase.kv_registry]


def known(name: str) -> str:
    """Return the name of a store in lower case.

    Raises:
        ArgumentTypeError: not a string. ArgumentError: an unknown name; the text lists the known ones.
    """
    if not isinstance(name, str):
        raise ArgumentTypeError(f"kvstore.create: name={name!r}: expected a string")
    if name.lower() not in names() and staleness_of(name) is None:
        raise unknown(name, names())
    return name.lower()


def is_asynchronous(name: str) -> bool:
    """True for the name of a distributed store that updates at each worker's push."""
    return "async" in name.lower() or staleness_of(name) is not None


def is_distributed(name: str) -> bool:
    """True for the name of a store among several processes."""
    return name.lower() in DISTRIBUTED or "dist" in name.lower() or name.lower() in ("horovod", "byteps")


def create(name: str = "local") -> KVStore | Any:
    """Return a new store.

    Args:
        name: `"local"`, `"device"` or `"nccl"` within this process; `"dist_sync"` (also `"dist"`, `"dist_sync_device"`,
            `"dist_device_sync"`) or `"dist_async"` (also `"dist_async_device"`, `"dist_device_async"`) among the
            processes of a job; `"dist_ssp:k"` for an asynchronous store whose workers are at most k pushes ahead of the
            slowest;
            `"dist_mixed"` where only tables, whose gradients are row_sparse, lie on servers, and the workers sum all
            other values between them; `"collective"` for XLA's own collectives among processes, which
            `"dist_sync_device"` and `"dist_device_sync"` use too once the processes have joined (`parallel.init`); or
            the name of a registered store; upper or lower case.

    Raises:
        ArgumentTypeError: not a string. ArgumentError: an unknown name; the text lists the known ones.
        MXNetError: a distributed store outside of a job, or the job's processes cannot be reached.

    Example:
        >>> store = create("device")
        >>> store.type, store.rank, store.num_workers
        ('device', 0, 1)
    """
    key = known(name)
    if key in KVStoreBase.kv_registry:
        return KVStoreBase.kv_registry[key]()
    if key in LOCAL:
        return KVStore(key)
    from .collective import CollectiveKVStore, is_multi_process

    if key == "collective" or (key in ("dist_sync_device", "dist_device_sync") and is_multi_process()):
        return CollectiveKVStore(key)
    if key == "dist_mixed":
        from .mixed import MixedKVStore

        return MixedKVStore(key)
    from .dist import DistKVStore

    return DistKVStore(key)


__all__ = [
    "ElasticSampler", "Horovod", "KVStore", "KVStoreBase", "KVStoreServer", "TestStore", "base", "create", "has_values",
    "known", "kvstore", "kvstore_server", "names", "pull_all", "pull_copies", "pushpull_each",
]  # fmt: skip

__getattr__ = former_names(__name__, {"keeps_values": "has_values"})
