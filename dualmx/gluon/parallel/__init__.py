"""Networks on several devices or in several processes: wrappers and exchanges for training loops of one's own."""

from .data_parallel import DataParallel
from .devices import devices, rest
from .distributed import DistributedDataParallel
from .sync import sync_gradients, sync_initial_weights

__all__ = [
    "DataParallel", "DistributedDataParallel", "devices", "rest", "sync_gradients", "sync_initial_weights",
]  # fmt: skip
