"""MXNet's import path of recurrent cells."""

import numpy as np

from ..parameter import tensor_types
from . import cell, cell_wrappers
from .cell import *
from .cell_wrappers import *

# Types that MXNet names here.
numeric_types = (float, int, np.generic)
string_types = (str,)

__all__ = ["numeric_types", "string_types", "tensor_types"]
__all__ += cell.__all__
__all__ += cell_wrappers.__all__
