"""Strategies: the devices and processes that train a model."""

from .cluster_resolver import Cluster
from .multi_worker import MultiWorkerMirroredStrategy, ParameterServerStrategy
from .strategy import (
    InputContext,
    MirroredStrategy,
    OneDeviceStrategy,
    PerReplica,
    ReduceOp,
    ReplicaContext,
    Strategy,
    get_replica_context,
    get_strategy,
    has_strategy,
)

__all__ = [
    "Cluster", "InputContext", "MirroredStrategy", "MultiWorkerMirroredStrategy", "OneDeviceStrategy",
    "ParameterServerStrategy", "PerReplica", "ReduceOp", "ReplicaContext", "Strategy", "get_replica_context",
    "get_strategy", "has_strategy",
]  # fmt: skip
