"""Classic arrays or arrays with NumPy semantics: results get what their inputs have."""

from __future__ import annotations

from typing import Any

from ..core import np_mode
from ..ndarray import NDArray


def mapped(function: Any, value: Any) -> Any:
    """Return nested lists and tuples of arrays with `function` applied to every array."""
    if isinstance(value, NDArray):
        return function(value)
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(mapped(function, v) for v in value)
    return value


def is_numpy(value: Any) -> bool:
    """True for an array with NumPy semantics, or a list that begins with one."""
    first = value[0] if isinstance(value, (list, tuple)) and value else value
    return isinstance(first, NDArray) and first.__class__ is not NDArray and not first.is_sparse


def as_numpy(fresh: Any) -> Any:
    """Give the classic arrays in a fresh result, which nothing else holds, NumPy semantics."""
    from ..numpy.array import wrap

    return mapped(lambda a: wrap(a) if a.__class__ is NDArray else a, fresh)


def like(value: Any, fresh: Any) -> Any:
    """Return a fresh result of arrays with the semantics of `value`."""
    return as_numpy(fresh) if is_numpy(value) else fresh


def as_chosen(fresh: Any) -> Any:
    """Return fresh arrays with the semantics that `npx.set_np()` chose."""
    return as_numpy(fresh) if np_mode.array.get() else fresh
