"""Automatic mixed precision: matrix products and convolutions in 16 bits, sensitive operators in 32, scaled losses.

Example:
    >>> import dualmx as mx
    >>> from dualmx.contrib import amp
    >>> data = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    >>> amp.convert_symbol(data, "bfloat16").list_outputs()
    ['fc_output_amp_cast_float32_output']
"""

from . import lists, loss_scaler
from .amp import (
    init,
    init_trainer,
    list_conditional_fp32_ops,
    list_fp32_ops,
    list_loss_output_functions,
    list_lp16_fp32_ops,
    list_lp16_ops,
    list_lp16_use_fp32_params,
    list_widest_type_cast,
    scale_loss,
    unscale,
)
from .convert import convert_hybrid_block, convert_model, convert_symbol

__all__ = [
    "convert_hybrid_block", "convert_model", "convert_symbol", "init", "init_trainer", "list_conditional_fp32_ops",
    "list_fp32_ops", "list_loss_output_functions", "list_lp16_fp32_ops", "list_lp16_ops", "list_lp16_use_fp32_params",
    "list_widest_type_cast", "lists", "loss_scaler", "scale_loss", "unscale",
]  # fmt: skip
