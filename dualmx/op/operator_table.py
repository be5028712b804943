"""Functions of two operands in classic semantics, from which `mx.nd`, sparse arrays and Python's operators are made."""

from __future__ import annotations

from typing import NamedTuple


class BinaryNames(NamedTuple):
    """Names of the operators on two arrays, with a number on the right, and with a number on the left."""

    arrays: str
    right: str
    left: str


def _names(stem: str, scalar: str = "", reflected: str = "") -> BinaryNames:
    """Return the operators of `broadcast_<stem>`; without `reflected`, the operands may change places."""
    scalar = scalar or stem
    return BinaryNames(f"broadcast_{stem}", f"_{scalar}_scalar", f"_{reflected or scalar}_scalar")


# By the name of the function of `mx.nd`.
BINARY_FUNCTIONS: dict[str, BinaryNames] = {
    "add": _names("add", "plus"),
    "subtract": _names("sub", "minus", "rminus"),
    "multiply": _names("mul"),
    "divide": _names("div", reflected="rdiv"),
    "true_divide": _names("div", reflected="rdiv"),
    "modulo": _names("mod", reflected="rmod"),
    "power": _names("power", reflected="rpower"),
    "maximum": _names("maximum"),
    "minimum": _names("minimum"),
    "hypot": _names("hypot"),
    "equal": _names("equal"),
    "not_equal": _names("not_equal"),
    "greater": _names("greater", reflected="lesser"),
    "greater_equal": _names("greater_equal", reflected="lesser_equal"),
    "lesser": _names("lesser", reflected="greater"),
    "lesser_equal": _names("lesser_equal", reflected="greater_equal"),
    "logical_and": _names("logical_and"),
    "logical_or": _names("logical_or"),
    "logical_xor": _names("logical_xor"),
}

# What computes two arrays of one shape, by the function: what keeps a sparse storage type.
SAME_SHAPE_OPS = {
    "add": "elemwise_add",
    "subtract": "elemwise_sub",
    "multiply": "elemwise_mul",
    "divide": "elemwise_div",
}

# Python's operator, by the stem of its method, and the function that it is.
ARITHMETIC = {
    "add": ("+", "add"),
    "sub": ("-", "subtract"),
    "mul": ("*", "multiply"),
    "truediv": ("/", "true_divide"),
    "mod": ("%", "modulo"),
    "pow": ("**", "power"),
}
COMPARISON = {
    "eq": ("==", "equal"),
    "ne": ("!=", "not_equal"),
    "gt": (">", "greater"),
    "ge": (">=", "greater_equal"),
    "lt": ("<", "lesser"),
    "le": ("<=", "lesser_equal"),
}
