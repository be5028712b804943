"""Image datasets and transforms."""

from __future__ import annotations

from . import datasets, transforms
from .datasets import *

__all__ = ["transforms"]
__all__ += datasets.__all__
