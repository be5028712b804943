"""`Estimator`: a training loop with event handlers."""

from . import event_handler
from .batch_processor import BatchProcessor
from .estimator import Estimator
from .event_handler import *

__all__ = ["BatchProcessor", "Estimator"]
__all__ += event_handler.__all__
