"""Python operators of symbols: `x + y` makes an elementwise node without broadcasting, `x + 1` a scalar node."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from ..core.errors import ArgumentTypeError, MXNetError
from ..op.operator_table import BINARY_FUNCTIONS, COMPARISON, SAME_SHAPE_OPS
from ..op.registry import get_op
from .node import SymbolBase, create_entries


class NotImplementedForSymbol(MXNetError):
    """An operation that needs values, called on a symbol, which has none before it is bound."""

    def __init__(self, what: str):
        super().__init__(f"{what} is not implemented for Symbol: it has no values; bind it, or use NDArray")


_OpNames = tuple[str, str]  # of the registry, and the hint from which a node is named


def _operators(function: str, is_comparison: bool) -> tuple[_OpNames, _OpNames, _OpNames]:
    """The operator on symbols, with a scalar on the right, and with a scalar on the left."""
    arrays, right, left = BINARY_FUNCTIONS[function]
    both = SAME_SHAPE_OPS.get(function) or arrays.removeprefix("broadcast")
    # MXNet names nodes of arithmetic "_plusscalar0", those of comparison "_equal_scalar0".
    hints = [name if is_comparison else name.replace("_scalar", "scalar") for name in (right, left)]
    return (both, right.removesuffix("_scalar")), (right, hints[0]), (left, hints[1])


_ARITHMETIC = {
    "add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "mod": "modulo", "pow": "power",
    "maximum": "maximum", "minimum": "minimum", "hypot": "hypot",
}  # fmt: skip
BINARY = {kind: _operators(function, False) for kind, function in _ARITHMETIC.items()}
BINARY |= {kind: _operators(function, True) for kind, (_, function) in COMPARISON.items()}


def is_scalar(value: Any) -> bool:
    """True for scalars that operators of symbols accept."""
    return isinstance(value, (numbers.Number, np.generic))


def binary(kind: str, left: Any, right: Any) -> Any:
    """Combine two operands, at least one of them a symbol, by the operator `kind` of the table `BINARY`.

    Raises:
        ArgumentTypeError: an operand is neither a symbol nor a number.
    """
    both, scalar_right, scalar_left = BINARY[kind]
    symbol = left if isinstance(left, SymbolBase) else right
    other = right if symbol is left else left
    if isinstance(other, SymbolBase):
        (op, hint), inputs, params = both, (left, right), {}
    elif is_scalar(other):
        op, hint = scalar_right if symbol is left else scalar_left
        inputs, params = (symbol,), {"scalar": float(other) if isinstance(other, (bool, np.bool_)) else other}
    else:
        raise ArgumentTypeError(
            f"{kind}: type {type(other)} not supported beside a symbol; expected a symbol or number"
        )
    return type(symbol)(create_entries(get_op(op), inputs, params, hint=hint))
