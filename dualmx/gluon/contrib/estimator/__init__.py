"""The Estimator: training loops made of a network, a loss, metrics and event handlers."""

from __future__ import annotations

from .batch import BatchProcessor
from .checkpoint import CheckpointHandler, EarlyStoppingHandler
from .estimator import Estimator
from .events import (
    BatchBegin,
    BatchEnd,
    EpochBegin,
    EpochEnd,
    EventHandler,
    GradientUpdateHandler,
    MetricHandler,
    StoppingHandler,
    TrainBegin,
    TrainEnd,
    ValidationHandler,
)
from .log import LoggingHandler

__all__ = [
    "BatchBegin", "BatchEnd", "BatchProcessor", "CheckpointHandler", "EarlyStoppingHandler", "EpochBegin", "EpochEnd",
    "Estimator", "EventHandler", "GradientUpdateHandler", "LoggingHandler", "MetricHandler", "StoppingHandler",
    "TrainBegin", "TrainEnd", "ValidationHandler",
]  # fmt: skip
