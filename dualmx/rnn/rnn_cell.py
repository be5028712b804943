"""MXNet's import path of the symbolic cells."""

import numpy as np

from . import cell, cell_wrappers, conv_cell
from .cell import *
from .cell_wrappers import *
from .conv_cell import *

# Types that MXNet names here.
numeric_types = (float, int, np.generic)
string_types = (str,)

__all__ = ["numeric_types", "string_types"]
__all__ += cell.__all__
__all__ += cell_wrappers.__all__
__all__ += conv_cell.__all__
