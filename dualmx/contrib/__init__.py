"""Contributed parts of MXNet's API: mixed precision, text, quantization, ONNX, logging."""

from __future__ import annotations

import importlib
from typing import Any

_ROOMS = (
    "amp", "autograd", "io", "onnx", "quantization", "safetensors", "stablehlo", "svrg_optimization", "tensorboard",
    "text",
)  # fmt: skip
_ALIASES = {"nd": "ndarray", "ndarray": "ndarray", "sym": "symbol", "symbol": "symbol"}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f".{name}", __name__)
    if name == "quant":  # MXNet's second name
        return importlib.import_module(".quantization", __name__)
    if name in _ALIASES:
        return importlib.import_module(f"..{_ALIASES[name]}", __name__).contrib
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ROOMS, *_ALIASES})
