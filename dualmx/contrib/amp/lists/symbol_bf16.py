"""Lists for bfloat16: those of float16, since both accumulate in float32."""

from .symbol_fp16 import CONDITIONAL_FP32_FUNCS, FP32_FUNCS, LOSS_OUTPUT_FUNCTIONS, WIDEST_TYPE_CASTS
from .symbol_fp16 import FP16_FP32_FUNCS as BF16_FP32_FUNCS
from .symbol_fp16 import FP16_FUNCS as BF16_FUNCS

# Inputs that stay in float32: no name for those that do not.
BF16_USE_FP32_PARAMS = {
    name: ["", "gamma", "beta", "moving_mean", "moving_var"] for name in ("BatchNormWithReLU", "BatchNorm")
}

__all__ = [
    "BF16_FP32_FUNCS", "BF16_FUNCS", "BF16_USE_FP32_PARAMS", "CONDITIONAL_FP32_FUNCS", "FP32_FUNCS",
    "LOSS_OUTPUT_FUNCTIONS", "WIDEST_TYPE_CASTS",
]  # fmt: skip
