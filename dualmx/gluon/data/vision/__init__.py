"""Image datasets and transforms."""

from . import datasets, transforms
from .datasets import *

__all__ = ["transforms"]
__all__ += datasets.__all__
