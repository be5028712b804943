"""Dtypes: names, MXNet's type flags, NumPy equivalents."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from .errors import ArgumentTypeError, suggest

bfloat16 = ml_dtypes.bfloat16

# MXNet's on-disk and in-symbol type flags (FORMATS: dtype flags).
FLAG_TO_DTYPE: dict[int, np.dtype] = {
    0: np.dtype("float32"),
    1: np.dtype("float64"),
    2: np.dtype("float16"),
    3: np.dtype("uint8"),
    4: np.dtype("int32"),
    5: np.dtype("int8"),
    6: np.dtype("int64"),
    7: np.dtype("bool"),
    8: np.dtype("int16"),
    9: np.dtype("uint16"),
    10: np.dtype("uint32"),
    11: np.dtype("uint64"),
    12: np.dtype(bfloat16),
}
DTYPE_TO_FLAG: dict[np.dtype, int] = {d: f for f, d in FLAG_TO_DTYPE.items()}
NAMES: tuple[str, ...] = tuple(d.name for d in DTYPE_TO_FLAG)
_BY_NAME = {d.name: d for d in DTYPE_TO_FLAG}


def as_dtype(value: Any) -> np.dtype:
    """Return the `numpy.dtype` of `value` (name, NumPy type or dtype, MXNet flag).

    Raises:
        ArgumentTypeError: `value` names no supported element type.
    """
    if isinstance(value, str) and value in _BY_NAME:
        return _BY_NAME[value]
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        if int(value) in FLAG_TO_DTYPE:
            return FLAG_TO_DTYPE[int(value)]
    else:
        given: Any = value
        try:
            dtype = None if given is None else np.dtype(given)
        except TypeError:
            dtype = None
        if dtype is not None and dtype in DTYPE_TO_FLAG:
            return dtype
    raise ArgumentTypeError(f"dtype={value!r}: not a supported element type; {suggest(str(value), NAMES)}")


def is_dtype(value: Any) -> bool:
    """True if `value` names an element type, supported or not."""
    if isinstance(value, str) and value in _BY_NAME:
        return True
    try:
        return np.dtype(value) is not None
    except TypeError:
        return False


def as_numbers(values: np.ndarray, dtype: Any) -> np.ndarray:
    """Return `values` in `dtype`; of text and objects each element is converted, None to NaN, as NumPy does.

    Raises:
        ArgumentTypeError: an element is no number.

    Example:
        >>> as_numbers(np.array([["1", "2.5"]]), "float32"), as_numbers(np.array([True, None]), "float32")
        (array([[1. , 2.5]], dtype=float32), array([ 1., nan], dtype=float32))
    """
    target, kind = as_dtype(dtype), values.dtype.kind
    if kind in "biufV":
        return values.astype(target, copy=False)
    try:
        if kind in "OSU":
            return values.astype(target)
        reason = ""
    except (TypeError, ValueError, OverflowError) as e:
        reason = f": {e}"
    raise ArgumentTypeError(f"array: elements of type {values.dtype} are not numbers{reason}")


def is_float(dtype: np.dtype) -> bool:
    """True for the floating types, bfloat16 included."""
    return dtype.kind == "f" or dtype == bfloat16


def cast_scalars(values: tuple[float, ...], dtype: Any) -> tuple[float, ...]:
    """Convert numbers as an array of `dtype` stores them: integers lose their fractions."""
    return values if is_float(np.dtype(dtype)) else tuple(float(int(v)) for v in values)


def arange_values(start: float, stop: float, step: float, dtype: Any) -> np.ndarray:
    """Numbers from `start` below `stop` at distance `step`; integer dtypes use the integer parts of both.

    float32 is counted in float32, as MXNet does: `start + i * step` meets 0 where that is in reach.

    Example:
        >>> arange_values(0, 3, 1.5, "int32"), arange_values(0, 6, 1.5, "int32")
        (array([0., 1.]), array([0., 1., 2., 3.]))
    """
    counted = np.float32 if np.dtype(dtype) == np.float32 else np.float64
    first, distance = (counted(v) for v in cast_scalars((start, step), dtype))
    return first + distance * np.arange(max(math.ceil((stop - start) / step), 0), dtype=counted)
