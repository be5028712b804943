"""Python operators of symbols: `x + y` makes an elementwise node without broadcasting, `x + 1` a scalar node."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from ..core.errors import ArgumentTypeError, MXNetError
from ..op.registry import get_op
from .node import SymbolBase, create_entries


class NotImplementedForSymbol(MXNetError):
    """An operation that needs values, called on a symbol, which has none before it is bound."""

    def __init__(self, what: str):
        super().__init__(f"{what} is not implemented for Symbol: it has no values; bind it, or use NDArray")


# Symbol op, op with a scalar on the right, op with the scalar on the left; as (registry name, name hint).
_OpNames = tuple[str, str]


def _commutative_row(both: _OpNames, scalar: _OpNames) -> tuple[_OpNames, _OpNames, _OpNames]:
    """A row of the table for an operator whose operands may change places."""
    return both, scalar, scalar


BINARY: dict[str, tuple[_OpNames, _OpNames, _OpNames]] = {
    "add": (("elemwise_add", "_plus"), ("_plus_scalar", "_plusscalar"), ("_plus_scalar", "_plusscalar")),
    "sub": (("elemwise_sub", "_minus"), ("_minus_scalar", "_minusscalar"), ("_rminus_scalar", "_rminusscalar")),
    "mul": (("elemwise_mul", "_mul"), ("_mul_scalar", "_mulscalar"), ("_mul_scalar", "_mulscalar")),
    "div": (("elemwise_div", "_div"), ("_div_scalar", "_divscalar"), ("_rdiv_scalar", "_rdivscalar")),
    "mod": (("_mod", "_mod"), ("_mod_scalar", "_modscalar"), ("_rmod_scalar", "_rmodscalar")),
    "pow": (("_power", "_power"), ("_power_scalar", "_powerscalar"), ("_rpower_scalar", "_rpowerscalar")),
    "maximum": _commutative_row(("_maximum", "_maximum"), ("_maximum_scalar", "_maximumscalar")),
    "minimum": _commutative_row(("_minimum", "_minimum"), ("_minimum_scalar", "_minimumscalar")),
    "hypot": _commutative_row(("_hypot", "_hypot"), ("_hypot_scalar", "_hypotscalar")),
    "eq": _commutative_row(("_equal", "_equal"), ("_equal_scalar", "_equal_scalar")),
    "ne": _commutative_row(("_not_equal", "_not_equal"), ("_not_equal_scalar", "_not_equal_scalar")),
    "gt": (
        ("_greater", "_greater"),
        ("_greater_scalar", "_greater_scalar"),
        ("_lesser_scalar", "_lesser_scalar"),
    ),
    "ge": (
        ("_greater_equal", "_greater_equal"),
        ("_greater_equal_scalar", "_greater_equal_scalar"),
        ("_lesser_equal_scalar", "_lesser_equal_scalar"),
    ),
    "lt": (
        ("_lesser", "_lesser"),
        ("_lesser_scalar", "_lesser_scalar"),
        ("_greater_scalar", "_greater_scalar"),
    ),
    "le": (
        ("_lesser_equal", "_lesser_equal"),
        ("_lesser_equal_scalar", "_lesser_equal_scalar"),
        ("_greater_equal_scalar", "_greater_equal_scalar"),
    ),
}


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
