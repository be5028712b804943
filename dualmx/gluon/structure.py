"""Nested lists of arrays as flat lists plus a format, and back."""

from __future__ import annotations

from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError
from ..ndarray import NDArray
from ..symbol import Symbol

# A format is LEAF for one array, ABSENT for None, or the list of the formats of a list's items.
LEAF, NONE = 0, -1
TreeDef = Any


def flatten(value: Any, error_prefix: str, kinds: Any = (NDArray, Symbol)) -> tuple[list[Any], TreeDef]:
    """Return the arrays in `value` (an array, None, or nested lists of them) and its format.

    Args:
        value: what to flatten.
        where: begins the error message.
        kinds: types that count as arrays.

    Raises:
        ArgumentTypeError: something else is in `value`.
    """
    if isinstance(value, kinds):
        return [value], LEAF
    if value is None:
        return [], NONE
    if isinstance(value, (list, tuple)):
        flat, formats = [], []
        for item in value:
            arrays, fmt = flatten(item, error_prefix, kinds)
            flat += arrays
            formats.append(fmt)
        return flat, formats
    raise ArgumentTypeError(f"{error_prefix}: expected (nested lists of) arrays or symbols, got {type(value).__name__}")


def unflatten(flat: list[Any], fmt: TreeDef) -> Any:
    """Return the arrays of `flat` nested as `fmt` says."""
    rest = iter(flat)

    def build(fmt: TreeDef) -> Any:
        if fmt == LEAF:
            return next(rest)
        return None if fmt == NONE else [build(f) for f in fmt]

    out = build(fmt)
    if next(rest, None) is not None:
        raise ArgumentError(f"{len(flat)} arrays do not fit the format {fmt}")
    return out
