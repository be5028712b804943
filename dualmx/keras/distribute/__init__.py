"""Strategies: on which devices and in which processes a model is trained."""

from .cluster import Cluster
from .strategy import MirroredStrategy, OneDeviceStrategy, Strategy, get_strategy, has_strategy
from .workers import MultiWorkerMirroredStrategy, ParameterServerStrategy

__all__ = [
    "Cluster", "MirroredStrategy", "MultiWorkerMirroredStrategy", "OneDeviceStrategy", "ParameterServerStrategy",
    "Strategy", "get_strategy", "has_strategy",
]  # fmt: skip
