"""Strategies: the devices and processes that train a model."""

from . import strategy
from .cluster_resolver import Cluster
from .multi_worker import MultiWorkerMirroredStrategy, ParameterServerStrategy
from .strategy import *

__all__ = ["Cluster", "MultiWorkerMirroredStrategy", "ParameterServerStrategy"]
__all__ += strategy.__all__
