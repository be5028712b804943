"""Operators by the precision they compute in: 16 bits, 32 bits, or that of their inputs.

`symbol_fp16` and `symbol_bf16` have MXNet's names of the lists; both types use the same lists.
"""

from . import symbol_bf16, symbol_fp16
from .symbol_fp16 import CONDITIONAL_FP32_FUNCS as CONDITIONAL
from .symbol_fp16 import FP16_FP32_FUNCS as EITHER
from .symbol_fp16 import FP16_FUNCS as LOW
from .symbol_fp16 import FP32_FUNCS as FULL
from .symbol_fp16 import LOSS_OUTPUT_FUNCTIONS as LOSSES
from .symbol_fp16 import WIDEST_TYPE_CASTS as WIDEST

__all__ = ["CONDITIONAL", "EITHER", "FULL", "LOSSES", "LOW", "WIDEST", "symbol_bf16", "symbol_fp16"]
