"""Checks and types of arguments of functions that no operator schema describes."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Sequence
from types import FunctionType
from typing import Any, TypeAlias

import numpy as np

from .context import Context
from .errors import ArgumentError, ArgumentTypeError


def number(what: str, name: str, value: Any) -> Any:
    """Return `value` if it is a real number (Python's or NumPy's); of an array without axes, the number in it.

    Raises:
        ArgumentTypeError: it is not; the text names the function, the argument and the value.
    """
    if type(value) is int or type(value) is float or isinstance(value, numbers.Real):
        return value
    if hasattr(value, "dtype") and getattr(value, "ndim", None) == 0:
        # Read here: what is computed late could become part of the program that waits for the number.
        return value.item() if hasattr(value, "asnumpy") else value
    raise ArgumentTypeError(f"{what}: {name}={value!r}: expected a number")


def integer(what: str, name: str, value: Any, low: int | None = None) -> int:
    """Return `value` as an int of at least `low`.

    Raises:
        ArgumentTypeError: it is no integer. ArgumentError: it is below `low`.
    """
    try:
        found = operator.index(value)
    except TypeError:
        if isinstance(value, (float, str)) or not hasattr(value, "__int__"):
            raise ArgumentTypeError(f"{what}: {name}={value!r}: expected an integer") from None
        found = int(value)
    if low is not None and found < low:
        raise ArgumentError(f"{what}: {name}={value!r}: expected an integer of {low} or more")
    return found


def require_instance(what: str, name: str, value: Any, kind: type | tuple[type, ...], expected: str) -> Any:
    """Return `value` if it is a `kind`; `ArgumentTypeError` says what was expected otherwise."""
    if isinstance(value, kind):
        return value
    raise ArgumentTypeError(f"{what}: {name} of type {type(value).__name__}: expected {expected}")


def context(value: Any) -> Context:
    """Return a context from a `Context` or a text like `"cpu"` or `"gpu(1)"`.

    Raises:
        ArgumentError: neither.
    """
    if isinstance(value, Context):
        return value
    return Context.parse(value) if isinstance(value, str) and "(" in value else Context(value)


Shape: TypeAlias = int | Sequence[int]
"""Lengths, one per axis, or the only one."""

Axes: TypeAlias = int | Sequence[int] | None
"""Axis numbers; usually `None` means all axes."""

Holes: TypeAlias = int | Sequence[int | None] | None
"""Positions, one per axis, `None` where the axis is not cut."""

Floats: TypeAlias = float | Sequence[float]
"""Numbers, or the only one."""

DType: TypeAlias = str | type | np.dtype[Any] | int
"""An element type: its name, a NumPy type or dtype, or MXNet's number of it."""


def defaults_of(function: Any) -> dict[str, Any]:
    """Return the defaults of a Python function's positional parameters by name."""
    code, values = function.__code__, function.__defaults__ or ()
    return dict(zip(code.co_varnames[code.co_argcount - len(values) : code.co_argcount], values, strict=True))


def with_defaults(function: Any, name: str, **changed: Any) -> Any:
    """Return a copy of a Python function, called `name`, in which some positional parameters have other defaults.

    A copy and no wrapper: its signature is what users read, and a call costs no more.
    """
    values = tuple({**defaults_of(function), **changed}.values())
    made = FunctionType(function.__code__, function.__globals__, function.__name__, values, function.__closure__)
    made.__qualname__, made.__doc__, made.__annotations__ = name, function.__doc__, function.__annotations__
    return made
