"""Symbols without inputs, and functions of symbols and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError
from ..op.registry import get_op
from .arithmetic import binary, is_scalar
from .node import SymbolBase
from .symbol import Symbol, create


def _make(op: str, params: Mapping[str, Any], extra: Mapping[str, Any]) -> Symbol:
    extra = dict(extra)
    name, attr = extra.pop("name", None), extra.pop("attr", None)
    return create(get_op(op), (), {**params, **extra}, name, attr)


def zeros(shape: Any, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Return a symbol of zeros of `shape`; a 0 in the shape is a dimension inferred from the graph. float32 by default.

    Example:
        >>> zeros((2, 3)).infer_shape()
        ([], [(2, 3)], [])
    """
    return _make("_zeros", {"shape": shape, "dtype": dtype or "float32"}, kwargs)


def ones(shape: Any, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Return a symbol of ones of `shape`; float32 by default."""
    return _make("_ones", {"shape": shape, "dtype": dtype or "float32"}, kwargs)


def full(shape: Any, val: float, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Return a symbol of `shape` filled with the number `val`; float32 by default."""
    return _make("_full", {"shape": shape, "dtype": dtype or "float32", "value": float(val)}, kwargs)


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: bool = False,
    name: str | None = None,
    dtype: Any = None,
) -> Symbol:
    """Return a symbol of the numbers from `start` to below `stop` (from 0 to below `start` if `stop` is absent).

    Each number is repeated `repeat` times; with `infer_range` the length follows from the graph. float32 by default.
    """
    params = {"start": start, "stop": stop, "step": step, "repeat": repeat, "infer_range": infer_range}
    return _make("_arange", {**params, "dtype": dtype or "float32"}, {"name": name})


def linspace(
    start: float, stop: float, num: int, endpoint: bool = True, name: str | None = None, dtype: Any = None
) -> Symbol:
    """Return a symbol of `num` evenly spaced numbers from `start` to `stop`, without `stop` if not `endpoint`."""
    params = {"start": start, "stop": stop, "num": num, "endpoint": endpoint, "dtype": dtype or "float32"}
    return _make("_linspace", params, {"name": name})


def eye(N: int, M: int = 0, k: int = 0, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Return an (N, M) symbol with ones on diagonal `k` and zeros elsewhere; square if M is 0. float32 by default."""
    return _make("_eye", {"N": N, "M": M, "k": k, "dtype": dtype or "float32"}, kwargs)


def _of_two(kind: str, left: Any, right: Any, of_numbers: Any) -> Any:
    if isinstance(left, SymbolBase) or isinstance(right, SymbolBase):
        return binary(kind, left, right)
    if is_scalar(left) and is_scalar(right):
        return of_numbers(left, right)
    raise ArgumentTypeError(f"{kind}: types {type(left)} and {type(right)} not supported; expected symbols or numbers")


def maximum(left: Any, right: Any) -> Any:
    """Elementwise larger value of two symbols of one shape, or of a symbol and a number."""
    return _of_two("maximum", left, right, max)


def minimum(left: Any, right: Any) -> Any:
    """Elementwise smaller value of two symbols of one shape, or of a symbol and a number."""
    return _of_two("minimum", left, right, min)


def power(base: Any, exp: Any) -> Any:
    """Elementwise `base ** exp` of two symbols of one shape, or of a symbol and a number."""
    return _of_two("pow", base, exp, lambda a, b: a**b)


pow = power


def hypot(left: Any, right: Any) -> Any:
    """Elementwise `sqrt(left² + right²)` of two symbols of one shape, or of a symbol and a number."""
    return _of_two("hypot", left, right, lambda a, b: (a * a + b * b) ** 0.5)


def histogram(a: Symbol, bins: Any = 10, range: Sequence[float] | None = None, **kwargs: Any) -> Symbol:
    """Count the values of `a` in bins; outputs are the counts and the edges.

    Args:
        a: values, any shape.
        bins: a symbol of bin edges, or the number of equal bins within `range`.
        range: lower and upper end, required with a number of bins.

    Raises:
        ArgumentError: `bins` is a number and there is no `range`.
    """
    kwargs = dict(kwargs)
    name, attr = kwargs.pop("name", None), kwargs.pop("attr", None)
    if isinstance(bins, SymbolBase):
        return create(get_op("_histogram"), (), {"data": a, "bins": bins, **kwargs}, name, attr)
    if range is None:
        raise ArgumentError("histogram: range=None: a number of bins needs the range (low, high) that they divide")
    params = {"bin_cnt": bins, "range": tuple(range)}
    return create(get_op("_histogram"), (), {"data": a, **params, **kwargs}, name, attr)


def split_v2(ary: Symbol, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False) -> Symbol:
    """Split along `axis` into equal sections (an int), or at indices (a tuple).

    Raises:
        ArgumentTypeError: `indices_or_sections` is neither an int nor a tuple of ints.
    """
    indices: list[int] = []
    sections = 0
    if isinstance(indices_or_sections, int):
        sections = indices_or_sections
    elif isinstance(indices_or_sections, (tuple, list)):
        indices = [0, *indices_or_sections]
    else:
        raise ArgumentTypeError(
            f"split_v2: indices_or_sections={indices_or_sections!r}: expected an int or a tuple of ints"
        )
    params = {"indices": indices, "axis": axis, "squeeze_axis": squeeze_axis, "sections": sections}
    return create(get_op("_split_v2"), (ary,), params)


__all__ = [
    "arange", "eye", "full", "histogram", "hypot", "linspace", "maximum", "minimum", "ones", "pow", "power", "split_v2",
    "zeros",
]  # fmt: skip
