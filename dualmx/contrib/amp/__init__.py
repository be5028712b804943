"""Automatic mixed precision: matrix products and convolutions in 16 bits, sensitive operators in 32, scaled losses.

Example:
    >>> import dualmx as mx
    >>> from dualmx.contrib import amp
    >>> data = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    >>> amp.convert_symbol(data, "bfloat16").list_outputs()
    ['fc_output_amp_cast_float32_output']
"""

from . import amp, convert, lists, loss_scaler
from .amp import *
from .convert import *

__all__ = ["lists", "loss_scaler"]
__all__ += amp.__all__
__all__ += convert.__all__
