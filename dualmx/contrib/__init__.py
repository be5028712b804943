"""Contributed parts of MXNet's API: mixed precision, text, quantization, ONNX, logging."""

from ..core.module_alias import lazy_names as _lazy_names

_ROOMS = (
    "amp", "autograd", "io", "onnx", "quantization", "safetensors", "stablehlo", "svrg_optimization", "tensorboard",
    "text",
)  # fmt: skip

__getattr__, __dir__ = _lazy_names(
    __name__,
    {
        **{name: f"contrib.{name}" for name in _ROOMS},
        "quant": "contrib.quantization",  # MXNet's second name
        **dict.fromkeys(("nd", "ndarray"), "ndarray:contrib"),
        **dict.fromkeys(("sym", "symbol"), "symbol:contrib"),
    },
)
