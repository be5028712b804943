"""Sums, means, extrema and their positions, over any axes."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..core.dtypes import as_dtype
from ..core.errors import ArgumentError, UnsupportedError
from .call import as_array, axes_of, axis_of, call_op, call_op_all, is_number, is_symbolic, write_out
from .creation import array, full_like
from .np_ndarray import ndarray


def _name(dtype: Any) -> str | None:
    return None if dtype is None else as_dtype(dtype).name


def _initial(value: Any) -> dict[str, Any]:
    return {} if value is None else {"initial": float(value)}


def _masked(a: ndarray, where: Any, neutral: Any) -> ndarray:
    """Return `a` with `neutral` where the mask is false."""
    if where is True or where is None:
        return a
    return call_op("_npi_where", array(where, dtype="bool"), a, full_like(a, neutral))


def sum(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = None, out: Any = None,
    where: Any = True,
) -> ndarray:  # fmt: skip
    """Return the sum over `axis`, in the dtype of `a` (int64 for bool) unless given.

    Example:
        >>> import dualmx as mx
        >>> mx.np.sum(mx.np.ones((2, 3)), axis=0)
        array([2., 2., 2.])
    """
    x = _masked(as_array(a, "sum"), where, 0)
    axes = axes_of(axis, "sum")
    return call_op("_np_sum", x, out=out, axis=axes, dtype=_name(dtype), keepdims=bool(keepdims), **_initial(initial))


def prod(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None,
    where: Any = True,
) -> ndarray:  # fmt: skip
    """Return the product over `axis`, in the dtype of `a` (int64 for bool) unless given."""
    x = _masked(as_array(a, "prod"), where, 1)
    axes = axes_of(axis, "prod")
    return call_op("_np_prod", x, out=out, axis=axes, dtype=_name(dtype), keepdims=bool(keepdims), **_initial(initial))


product = prod


def mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
    """Return the mean over `axis`: float32 for integers, unless `dtype` is given.

    Example:
        >>> import dualmx as mx
        >>> mx.np.mean(mx.np.array([1, 2], dtype="int32"))
        array(1.5)
    """
    x, axes = as_array(a, "mean"), axes_of(axis, "mean")
    return call_op("_npi_mean", x, out=out, axis=axes, dtype=_name(dtype), keepdims=bool(keepdims))


def std(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: bool = False) -> ndarray:
    """Return the standard deviation over `axis`, divisor n - `ddof`; integers truncate unless `dtype` is given."""
    x, axes = as_array(a, "std"), axes_of(axis, "std")
    return call_op("_npi_std", x, out=out, axis=axes, dtype=_name(dtype), ddof=ddof, keepdims=bool(keepdims))


def var(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: bool = False) -> ndarray:
    """Return the variance over `axis`, divisor n - `ddof`; integers truncate unless `dtype` is given."""
    x, axes = as_array(a, "var"), axes_of(axis, "var")
    return call_op("_npi_var", x, out=out, axis=axes, dtype=_name(dtype), ddof=ddof, keepdims=bool(keepdims))


def max(a: Any, axis: Any = None, keepdims: bool = False, out: Any = None, initial: Any = None) -> ndarray:
    """Return the largest element over `axis`; nan if there is one."""
    x, axes = as_array(a, "max"), axes_of(axis, "max")
    return call_op("_np_max", x, out=out, axis=axes, keepdims=bool(keepdims), **_initial(initial))


def min(a: Any, axis: Any = None, keepdims: bool = False, out: Any = None, initial: Any = None) -> ndarray:
    """Return the smallest element over `axis`; nan if there is one."""
    x, axes = as_array(a, "min"), axes_of(axis, "min")
    return call_op("_np_min", x, out=out, axis=axes, keepdims=bool(keepdims), **_initial(initial))


amax, amin = max, min


def all(a: Any, axis: Any = None, keepdims: bool = False, out: Any = None) -> ndarray:
    """Return whether all elements over `axis` are other than 0, as bool."""
    return call_op("_np_all", as_array(a, "all"), out=out, axis=axes_of(axis, "all"), keepdims=bool(keepdims))


def any(a: Any, axis: Any = None, keepdims: bool = False, out: Any = None) -> ndarray:
    """Return whether some element over `axis` is other than 0, as bool."""
    return call_op("_np_any", as_array(a, "any"), out=out, axis=axes_of(axis, "any"), keepdims=bool(keepdims))


sometrue = any


def alltrue(*args: Any, **kwargs: Any) -> ndarray:
    """Return what `all` returns."""
    return all(*args, **kwargs)


def _extreme_at(name: str, a: Any, axis: Any, out: Any) -> ndarray:
    x = as_array(a, name)
    if axis is not None and (is_symbolic((x,)) or x.ndim):  # the operator knows which axes a 0-d array may be asked for
        axis = axis_of(axis, x, name)
    return call_op(f"_npi_{name}", x, out=out, axis=axis)


def argmax(a: Any, axis: Any = None, out: Any = None) -> ndarray:
    """Return the int64 position of the largest element along `axis`, or in the flattened array; the first of ties."""
    return _extreme_at("argmax", a, axis, out)


def argmin(a: Any, axis: Any = None, out: Any = None) -> ndarray:
    """Return the int64 position of the smallest element along `axis`, or in the flattened array; the first of ties."""
    return _extreme_at("argmin", a, axis, out)


def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> ndarray:
    """Return the running sums along `axis`, or of the flattened array."""
    x = as_array(a, "cumsum")
    at = None if axis is None else axis_of(axis, x, "cumsum")
    return call_op("_np_cumsum", x, out=out, axis=at, dtype=_name(dtype))


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, out: Any = None) -> Any:
    """Return the weighted mean over `axis`, and with `returned` also the sum of the weights.

    Example:
        >>> import dualmx as mx
        >>> mx.np.average(mx.np.arange(3), weights=mx.np.array([1, 1, 2]))
        array(1.25)
    """
    x = as_array(a, "average")
    params = {"axis": axes_of(axis, "average"), "returned": bool(returned), "weighted": weights is not None}
    given = (x,) if weights is None else (x, as_array(weights, "average", "weights", x))
    found = call_op_all("_npi_average", *given, **params)
    mean = write_out(found[0], out, "average")
    return [mean, found[1]] if returned else mean


def _position(q: Any, scale: float, what: str) -> Any:
    """Return q as a percentage: a number, or an array."""
    if is_number(q):
        if not 0 <= q * scale <= 100:
            raise ArgumentError(f"{what}: q={q}: expected a value in [0, {100 / scale:g}]")
        return float(q) * scale
    if isinstance(q, (list, tuple)):
        q = onp.asarray(q, "float64")
    return as_array(q, what, "q") * scale


def _percentile(
    what: str, a: Any, q: Any, scale: float, axis: Any, out: Any, overwrite_input: Any, interpolation: str,
    keepdims: bool,
) -> ndarray:  # fmt: skip
    if overwrite_input:
        raise UnsupportedError(f"{what}: overwrite_input: expected None; the input is never overwritten")
    x, at = as_array(a, what), _position(q, scale, what)
    params = {"axis": axes_of(axis, what), "interpolation": interpolation, "keepdims": bool(keepdims)}
    if isinstance(at, ndarray):
        return call_op("_npi_percentile", x, at, out=out, **params)
    return call_op("_npi_percentile", x, out=out, q_scalar=at, **params)


def percentile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = None, interpolation: str = "linear",
    keepdims: bool = False,
) -> ndarray:  # fmt: skip
    """Return the `q`-th percentiles over `axis`, `q` from 0 to 100, a number or an array."""
    return _percentile("percentile", a, q, 1.0, axis, out, overwrite_input, interpolation, keepdims)


def quantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = None, interpolation: str = "linear",
    keepdims: bool = False,
) -> ndarray:  # fmt: skip
    """Return the `q`-th quantiles over `axis`, `q` from 0 to 1, a number or an array."""
    return _percentile("quantile", a, q, 100.0, axis, out, overwrite_input, interpolation, keepdims)


def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = None, keepdims: bool = False) -> ndarray:
    """Return the median over `axis`."""
    return _percentile("median", a, 50.0, 1.0, axis, out, overwrite_input, "linear", keepdims)


def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
    """Return the largest minus the smallest element over `axis`."""
    x = as_array(a, "ptp")
    return write_out(max(x, axis, keepdims=keepdims) - min(x, axis, keepdims=keepdims), out, "ptp")


def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Return the number of nonzero elements over `axis`: an int for all elements, else an int64 array."""
    found = sum(as_array(a, "count_nonzero") != 0, axis, "int64", keepdims)
    return int(found.item()) if axis is None and not keepdims else found


__all__ = [
    "all", "alltrue", "amax", "amin", "any", "argmax", "argmin", "average", "count_nonzero", "cumsum", "max", "mean",
    "median", "min", "percentile", "prod", "product", "ptp", "quantile", "sometrue", "std", "sum", "var",
]  # fmt: skip
