"""ONNX export, where MXNet 1.9 has it; `mx.contrib.onnx` imports as well."""

from __future__ import annotations

from .contrib.onnx.export_model import export_model
from .contrib.onnx.export_rules import OPERATORS, OPSET


def get_operator_support(opset_version: int | None = None) -> list[str]:
    """Return the names of the operators that `export_model` can write.

    Args:
        opset_version: that of the reader; before 13, in which files are written, none can be.

    Example:
        >>> "Convolution" in get_operator_support(), get_operator_support(9)
        (True, [])
    """
    return sorted(OPERATORS) if opset_version is None or opset_version >= OPSET else []


__all__ = ["export_model", "get_operator_support"]
