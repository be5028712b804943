"""Image transforms: blocks on NDArrays, with the same computation in NumPy for data workers."""

from __future__ import annotations

from . import basic, random
from .basic import *
from .random import *

__all__: list[str] = []
__all__ += basic.__all__
__all__ += random.__all__
