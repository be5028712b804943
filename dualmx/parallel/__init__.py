"""Arrays cut over meshes of devices, and processes that compute together by XLA's collectives."""

from ..compile.mesh import Mesh
from ..ndarray.placement import shard
from .memory import device_bytes
from .processes import all_gather, all_reduce, barrier, broadcast, init, rank, size
from .rules import match_rules

__all__ = [
    "Mesh", "all_gather", "all_reduce", "barrier", "broadcast", "device_bytes", "init", "match_rules", "rank", "shard",
    "size",
]  # fmt: skip
