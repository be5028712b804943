"""Strategies: on which devices and in which processes a model is trained."""

from .cluster import Cluster
from .strategy import MirroredStrategy, Strategy, get_strategy
from .workers import MultiWorkerMirroredStrategy, ParameterServerStrategy

__all__ = [
    "Cluster", "MirroredStrategy", "MultiWorkerMirroredStrategy", "ParameterServerStrategy", "Strategy", "get_strategy",
]  # fmt: skip
