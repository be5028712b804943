"""The package `onnx`, which is optional."""

from __future__ import annotations

import importlib
from typing import Any

from ...core.errors import MXNetError

OPSET = 13


def onnx() -> Any:
    """Return the package.

    Raises:
        MXNetError: it is not installed.
    """
    try:
        return importlib.import_module("onnx")
    except ImportError as e:
        raise MXNetError(f"contrib.onnx needs the package onnx: pip install 'dualmx[onnx]' ({e})") from None


__all__ = ["OPSET", "onnx"]
