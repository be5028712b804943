"""Metrics: running averages of how predictions agree with labels."""

from . import base, classification, composite, likelihood, regression
from .base import *
from .classification import *
from .composite import *
from .likelihood import *
from .regression import *

__all__: list[str] = []
__all__ += base.__all__
__all__ += classification.__all__
__all__ += composite.__all__
__all__ += likelihood.__all__
__all__ += regression.__all__
