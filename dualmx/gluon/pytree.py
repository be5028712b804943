"""Nested inputs as flat lists and back; and the NumPy semantics of results.

dualmx's own blocks compute with classic operators on second handles of their inputs; their results get the inputs'
semantics back. A user's `hybrid_forward` receives arrays and symbols as they are, and uses `F.np` and `F.npx`.
"""

from __future__ import annotations

from typing import Any

from ..core import np_mode
from ..core.errors import ArgumentError, ArgumentTypeError
from ..ndarray import NDArray
from ..symbol import Symbol

# A format is LEAF for one array, NONE for None, the number of outputs of a symbol that has several, or the list of the
# formats of a list's items.
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
        outputs = len(value.list_outputs()) if isinstance(value, Symbol) else 1
        return [value], LEAF if outputs == 1 else outputs
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
        if fmt == NONE:
            return None
        return [build(f) for f in ([LEAF] * fmt if isinstance(fmt, int) else fmt)]

    out = build(fmt)
    if next(rest, None) is not None:
        raise ArgumentError(f"{len(flat)} arrays do not fit the format {fmt}")
    return out


def tree_map(function: Any, value: Any) -> Any:
    """Return nested lists, tuples and dicts with `function` applied to every array and symbol."""
    if isinstance(value, (NDArray, Symbol)):
        return function(value)
    if isinstance(value, dict):
        return {name: tree_map(function, v) for name, v in value.items()}
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(tree_map(function, v) for v in value)
    return value


def is_numpy(value: Any) -> bool:
    """True for an array or symbol with NumPy semantics, or a list that begins with one."""
    first = value[0] if isinstance(value, (list, tuple)) and value else value
    if isinstance(first, NDArray):
        return first.__class__ is not NDArray and not first.is_sparse
    return isinstance(first, Symbol) and first.__class__ is not Symbol


def _numpy(a: Any) -> Any:
    from ..numpy.np_ndarray import as_np_class

    return as_np_class(a) if a.__class__ is NDArray else a.as_np_ndarray() if a.__class__ is Symbol else a


def to_np_class(fresh: Any) -> Any:
    """Give the classic arrays and symbols in a new result, which has no other reader, NumPy semantics."""
    return tree_map(_numpy, fresh)


def to_nd_class(value: Any) -> Any:
    """Return nested arrays and symbols as classic ones on the same values."""
    return tree_map(lambda a: a.as_nd_ndarray() if is_numpy(a) else a, value)


def with_class_of(value: Any, fresh: Any) -> Any:
    """Return a fresh result with the semantics of `value`."""
    return to_np_class(fresh) if is_numpy(value) else fresh


def with_default_class(fresh: Any) -> Any:
    """Return fresh arrays or symbols with the semantics that `npx.set_np()` chose."""
    return to_np_class(fresh) if np_mode.array.get() else fresh
