"""Elementwise functions of two operands, each an array or a number: `nd.maximum(x, 2)`, `nd.power(2, x)`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ..ndarray.handle import invoke_binary, invoke_unary
from ..ndarray.ndarray import NDArray
from ..ndarray.operators import ScalarCalls
from ..op.operator_table import BINARY_FUNCTIONS, SAME_SHAPE_OPS
from ..op.registry import OPS
from ..sparse import BaseSparseNDArray
from ..sparse.operators import pair
from . import nd_functions
from .generate import as_input

# What each function does on two numbers.
SCALAR_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "true_divide": operator.truediv,
    "modulo": operator.mod,
    "power": operator.pow,
    "maximum": max,
    "minimum": min,
    "hypot": math.hypot,
    "equal": lambda a, b: int(a == b),
    "not_equal": lambda a, b: int(a != b),
    "greater": lambda a, b: int(a > b),
    "greater_equal": lambda a, b: int(a >= b),
    "lesser": lambda a, b: int(a < b),
    "lesser_equal": lambda a, b: int(a <= b),
    "logical_and": lambda a, b: int(bool(a) and bool(b)),
    "logical_or": lambda a, b: int(bool(a) or bool(b)),
    "logical_xor": lambda a, b: int(bool(a) != bool(b)),
}


def binary_function(name: str, arrays: str, right: str, left: str, equal: str | None = None) -> Callable[..., Any]:
    """Return the function `name(lhs, rhs)`; sparse operands of equal shape are computed by `equal`."""
    call, on_numbers = OPS[arrays].call(), SCALAR_FUNCTIONS[name]
    with_right, with_left = ScalarCalls(right), ScalarCalls(left)

    def on_sparse(lhs: Any, rhs: Any) -> Any:
        if not isinstance(lhs, NDArray):
            return pair(equal or arrays, arrays, left)(rhs, lhs)
        return pair(equal or arrays, arrays, right)(lhs, rhs)

    def on_any(lhs: Any, rhs: Any) -> Any:
        number = (int, float, bool)
        if isinstance(lhs, number) and isinstance(rhs, number):
            return on_numbers(lhs, rhs)
        if isinstance(lhs, BaseSparseNDArray) or isinstance(rhs, BaseSparseNDArray):
            return on_sparse(lhs, rhs)
        if isinstance(rhs, number):
            return invoke_unary(with_right[rhs], as_input(lhs, call.op, "lhs", None))
        if isinstance(lhs, number):
            return invoke_unary(with_left[lhs], as_input(rhs, call.op, "rhs", None))
        a = as_input(lhs, call.op, "lhs", rhs if isinstance(rhs, NDArray) else None)
        return invoke_binary(call, a, as_input(rhs, call.op, "rhs", a))

    function: Any = on_any
    if name == "power":
        function = lambda base, exp: on_any(base, exp)  # noqa: E731  (MXNet's names of the operands)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Element-wise `{name}` with broadcasting; each operand is an NDArray or a number (cast to its dtype).\n\n"
        f"Raises:\n    MXNetError: the shapes do not broadcast, or the dtypes differ.\n"
    )
    return function


def populate(top: ModuleType) -> None:
    """Put the functions into the array namespace and that of sparse arrays, where they keep storage types."""
    for name, (arrays, right, left) in BINARY_FUNCTIONS.items():
        setattr(top, name, binary_function(name, arrays, right, left))
    for name, equal in SAME_SHAPE_OPS.items():
        setattr(top.sparse, name, binary_function(name, *BINARY_FUNCTIONS[name], equal))
    nd_functions.populate_sparse(top)
