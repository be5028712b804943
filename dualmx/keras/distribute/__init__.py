"""Strategies: on which devices and in which processes a model is trained."""

from .cluster import Cluster
from .replicas import InputContext, PerReplica, ReduceOp, ReplicaContext, get_replica_context
from .strategy import MirroredStrategy, OneDeviceStrategy, Strategy, get_strategy, has_strategy
from .workers import MultiWorkerMirroredStrategy, ParameterServerStrategy

__all__ = [
    "Cluster", "InputContext", "MirroredStrategy", "MultiWorkerMirroredStrategy", "OneDeviceStrategy",
    "ParameterServerStrategy", "PerReplica", "ReduceOp", "ReplicaContext", "Strategy", "get_replica_context",
    "get_strategy", "has_strategy",
]  # fmt: skip
