"""Reduce ops. Values are reduced in the order of ranks, so results are bitwise equal everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import ArgumentError

_UFUNCS: dict[str, Any] = {
    "sum": np.add, "average": np.add, "min": np.minimum, "max": np.maximum, "product": np.multiply,
}  # fmt: skip
OPS = tuple(_UFUNCS)


def accumulation_dtype(dtype: np.dtype) -> np.dtype:
    """Type in which values of a type are combined: 16-bit floats in float32."""
    return np.dtype(np.float32) if dtype.itemsize == 2 and dtype.kind not in "iub" else dtype


def check_op(what: str, op: Any, dtype: np.dtype, prescale: float, postscale: float) -> None:
    """Raise if values of a type cannot be combined that way.

    Raises:
        ArgumentError: an unknown `op`, or one that the type does not allow.
    """
    if op not in _UFUNCS:
        raise ArgumentError(f"{what}: op={op!r}: expected one of {', '.join(OPS)}")
    if dtype.kind == "b" and op in ("sum", "average"):
        raise ArgumentError(f"{what}: op={op!r} of bool values; expected min, max or product, or another dtype")
    if dtype.kind in "iub" and (op == "average" or prescale != 1 or postscale != 1):
        raise ArgumentError(f"{what}: {dtype.name} values are neither averaged nor scaled; cast them to a float type")


def scale(part: np.ndarray, factor: float) -> np.ndarray:
    """Return `factor · part`; the part itself if the factor is 1."""
    return part if factor == 1 else (part.astype(accumulation_dtype(part.dtype)) * factor).astype(part.dtype)


def reduce_values(parts: Sequence[np.ndarray], op: str, postscale: float, out: np.ndarray) -> None:
    """Write what `op` makes of the parts, times `postscale`, into `out`; all have one shape and dtype."""
    kind = accumulation_dtype(out.dtype)
    ufunc = _UFUNCS[op]
    total = out if kind == out.dtype else np.empty(out.shape, kind)
    if len(parts) == 1:
        np.copyto(total, parts[0], casting="unsafe")
    else:
        first = parts[:2] if kind == out.dtype else [p.astype(kind) for p in parts[:2]]
        ufunc(*first, out=total)
        for part in parts[2:]:
            ufunc(total, part if kind == out.dtype else part.astype(kind), out=total)
    if op == "average":
        np.divide(total, kind.type(len(parts)), out=total)
    if postscale != 1:
        np.multiply(total, kind.type(postscale), out=total)
    if total is not out:
        np.copyto(out, total, casting="unsafe")


__all__ = ["OPS", "accumulation_dtype", "check_op", "reduce_values", "scale"]
