"""Custom operators in Python: `CustomOp`, `CustomOpProp`, `register`; call them as `nd.Custom(..., op_type=name)`."""

from __future__ import annotations

from .namespace.custom import CustomOp, CustomOpProp, get_all_registered_operators, register

__all__ = ["CustomOp", "CustomOpProp", "get_all_registered_operators", "register"]
