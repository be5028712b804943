"""Custom operators in Python: `CustomOp`, `CustomOpProp`, `register`; called as `Custom(..., op_type=name)`."""

from __future__ import annotations

from .ndarray.custom import CustomOp, CustomOpProp, get_all_registered_operators, register
from .symbol.native import NDArrayOp, NumpyOp, PythonOp

__all__ = ["CustomOp", "CustomOpProp", "NDArrayOp", "NumpyOp", "PythonOp", "get_all_registered_operators", "register"]
