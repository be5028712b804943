"""Strategies: the devices and processes that train a model."""

from .cluster_resolver import Cluster
from .multi_worker import MultiWorkerMirroredStrategy, ParameterServerStrategy
from .replica_context import InputContext, PerReplica, ReduceOp, ReplicaContext, get_replica_context
from .strategy import MirroredStrategy, OneDeviceStrategy, Strategy, get_strategy, has_strategy

__all__ = [
    "Cluster", "InputContext", "MirroredStrategy", "MultiWorkerMirroredStrategy", "OneDeviceStrategy",
    "ParameterServerStrategy", "PerReplica", "ReduceOp", "ReplicaContext", "Strategy", "get_replica_context",
    "get_strategy", "has_strategy",
]  # fmt: skip
