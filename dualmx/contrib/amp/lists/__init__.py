"""Which operators compute in 16 bits, which in 32, and which in whatever they are given, under mixed precision.

`symbol_fp16` and `symbol_bf16` have MXNet's names of the lists; both types follow the same ones.
"""

from . import symbol_bf16, symbol_fp16
from .symbol_fp16 import CONDITIONAL_FP32_FUNCS as CONDITIONAL
from .symbol_fp16 import FP16_FP32_FUNCS as EITHER
from .symbol_fp16 import FP16_FUNCS as LOW
from .symbol_fp16 import FP32_FUNCS as FULL
from .symbol_fp16 import LOSS_OUTPUT_FUNCTIONS as LOSSES
from .symbol_fp16 import WIDEST_TYPE_CASTS as WIDEST

__all__ = ["CONDITIONAL", "EITHER", "FULL", "LOSSES", "LOW", "WIDEST", "symbol_bf16", "symbol_fp16"]
