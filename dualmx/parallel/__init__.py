"""Sharded arrays on device meshes, and collectives between processes."""

from ..compile.devices import Mesh
from ..core.deprecated import former_names
from ..ndarray.sharding import shard
from . import rpc
from .collectives import all_gather, all_reduce, barrier, broadcast, join
from .device_memory import device_bytes
from .mailbox import Handle
from .p2p import RecvHandle, irecv, isend, recv, send
from .partition_rules import match_partition_rules
from .pipeline import Schedule
from .process_group import ProcessGroup
from .scatter_gather import all_gather_object, all_to_all, broadcast_object, gather, reduce, reduce_scatter, scatter
from .world import (
    cross_rank,
    cross_size,
    init,
    is_initialized,
    local_rank,
    local_size,
    new_group,
    rank,
    shutdown,
    size,
)

__all__ = [
    "Handle", "Mesh", "ProcessGroup", "RecvHandle", "Schedule", "all_gather", "all_gather_object", "all_reduce",
    "all_to_all", "barrier", "broadcast", "broadcast_object", "cross_rank", "cross_size", "device_bytes", "gather",
    "init", "irecv", "is_initialized", "isend", "join", "local_rank", "local_size", "match_partition_rules",
    "new_group", "rank", "recv", "reduce", "reduce_scatter", "rpc", "scatter", "send", "shard", "shutdown", "size",
]  # fmt: skip

__getattr__ = former_names(
    __name__, {"Group": "ProcessGroup", "Receipt": "RecvHandle", "match_rules": "match_partition_rules"}
)
