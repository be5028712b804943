"""Utilities for tests: comparisons, random arrays, checks of values and gradients."""

from . import arrays, compare, files, statistics, symbolic
from .arrays import *
from .compare import *
from .files import *
from .optimizers import compare_optimizer
from .statistics import *
from .symbolic import *

__all__ = ["compare_optimizer"]
__all__ += arrays.__all__
__all__ += compare.__all__
__all__ += files.__all__
__all__ += statistics.__all__
__all__ += symbolic.__all__
