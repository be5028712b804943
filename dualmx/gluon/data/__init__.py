"""Datasets, samplers and the `DataLoader`."""

from . import dataset, sampler, vision
from .batchify import default_batchify_fn, default_mp_batchify_fn
from .dataloader import DataLoader
from .dataset import *
from .sampler import *

__all__ = ["DataLoader", "default_batchify_fn", "default_mp_batchify_fn", "vision"]
__all__ += dataset.__all__
__all__ += sampler.__all__
