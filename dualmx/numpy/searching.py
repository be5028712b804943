"""Functions that choose, find, order, count, insert and delete elements."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..core.errors import ArgumentError, ArgumentTypeError, RangeError, UnsupportedError
from ..ndarray.handle import Handle, invoke
from ..ndarray.value_checks import check_later
from ..ndarray.view import array_in_memory
from ..op.registry import OPS
from .call import as_array, axis_of, call_op, call_op_all, cast, is_number, is_symbolic, shape_of
from .indexing import _spec, normalize_index
from .manipulation import concatenate, ravel
from .np_ndarray import as_np_class, ndarray


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Return `x` where `condition` is true, else `y`; without both, the true positions, one array per axis.

    Example:
        >>> import dualmx as mx
        >>> mx.np.where(mx.np.array([1, 0]), 1, mx.np.array([5, 6]))
        array([1., 6.])
    """
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise ArgumentError("where: expected both x and y, or neither")
    if is_number(condition):
        return x if condition else y
    c = as_array(condition, "where", "condition")
    if is_number(x) and is_number(y):
        return call_op("_npi_where_scalar2", c, x=float(x), y=float(y))
    if is_number(x):
        return call_op("_npi_where_lscalar", c, as_array(y, "where", "y"), scalar=float(x))
    if is_number(y):
        return call_op("_npi_where_rscalar", c, as_array(x, "where", "x"), scalar=float(y))
    return call_op("_npi_where", c, as_array(x, "where", "x"), as_array(y, "where", "y"))


def argwhere(a: Any) -> ndarray:
    """Return the int64 coordinates (n, ndim) of the elements that are not 0."""
    return call_op("_npx_nonzero", as_array(a, "argwhere"))


def nonzero(a: Any) -> tuple[ndarray, ...]:
    """Return the int64 positions of the elements that are not 0, one array per axis."""
    x = as_array(a, "nonzero")
    x = x if is_symbolic((x,)) or x.ndim else ravel(x)
    found = argwhere(x)
    return tuple(found[:, i] for i in range(x.ndim))


def flatnonzero(a: Any) -> ndarray:
    """Return the int64 positions in the flattened array of the elements that are not 0."""
    return nonzero(ravel(as_array(a, "flatnonzero")))[0]


def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None) -> ndarray:
    """Return the elements in ascending order along `axis`, or of the flattened array if it is None."""
    x = as_array(a, "sort")
    if order is not None:
        raise ArgumentTypeError("sort: order: arrays have no fields")
    return call_op("sort", x, axis=None if axis is None else axis_of(axis, x, "sort"))


def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None) -> ndarray:
    """Return the int64 positions that put the elements in ascending order along `axis`."""
    x = as_array(a, "argsort")
    if order is not None:
        raise ArgumentTypeError("argsort: order: arrays have no fields")
    return call_op("argsort", x, axis=None if axis is None else axis_of(axis, x, "argsort"), dtype="int64")


def msort(a: Any) -> ndarray:
    """Return the elements in ascending order along the first axis."""
    return sort(a, 0)


def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: Any = None
) -> Any:
    """Return the sorted different elements, and on demand where each occurs first, which one every element is, and how
    often each occurs.

    Example:
        >>> import dualmx as mx
        >>> mx.np.unique(mx.np.array([3, 1, 3]), return_counts=True)
        (array([1., 3.]), array([1, 2], dtype=int64))
    """
    found = call_op_all(
        "_npi_unique", as_array(ar, "unique", "ar"), return_index=return_index, return_inverse=return_inverse,
        return_counts=return_counts, axis=axis,
    )  # fmt: skip
    return found[0] if len(found) == 1 else tuple(found)


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> ndarray:
    """Return how often each integer from 0 on occurs in `x`, or the sums of the weights."""
    a = as_array(x, "bincount", "x")
    if weights is None:
        return call_op("_npi_bincount", a, minlength=minlength)
    return call_op("_npi_bincount", a, as_array(weights, "bincount", "weights"), minlength=minlength, has_weights=True)


def histogram(a: Any, bins: Any = 10, range: Any = None, normed: Any = None, weights: Any = None,
              density: Any = None) -> list[ndarray]:  # fmt: skip
    """Return a list: the counts of elements between the bin edges, and the edges.

    Args:
        bins: how many equal bins, or their edges.
        range: lowest and highest edge; by default the extrema of `a`.
    """
    if normed or density or weights is not None:
        raise UnsupportedError("histogram: normed, density and weights are not supported; use NumPy's on a.asnumpy()")
    x = as_array(a, "histogram")
    if isinstance(bins, (ndarray, onp.ndarray, list, tuple)):
        edges = as_array(onp.asarray(bins) if isinstance(bins, (list, tuple)) else bins, "histogram", "bins")
        return call_op_all("_npi_histogram", x, cast(edges, x.dtype))
    if isinstance(bins, str):
        raise UnsupportedError(f"histogram: bins={bins!r}: expected a number or edges")
    if range is None:
        values = x.asnumpy()
        range = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
        range = (range[0] - 0.5, range[1] + 0.5) if range[0] == range[1] else range
    return call_op_all("_npi_histogram", x, bin_cnt=int(bins), range=tuple(float(r) for r in range))


def take(a: Any, indices: Any, axis: Any = None, mode: str = "raise", out: Any = None) -> ndarray:
    """Return the elements of `a` at `indices` along `axis`, or of the flattened array.

    Args:
        mode: what happens to an index outside: "raise", "wrap" or "clip". Negative ones count from the end, except
            with "clip".
    """
    if mode not in ("raise", "wrap", "clip"):
        raise ArgumentError(f"take: mode={mode!r}: expected 'raise', 'wrap' or 'clip'")
    x = as_array(a, "take")
    if axis is None:
        x, axis = call_op("_npx_reshape", x, newshape=(-1,)) if is_symbolic((x,)) else ravel(x), 0
    at = axis_of(axis, x, "take")
    if is_symbolic((x, indices)):
        # What a graph computes is not checked.
        return call_op(
            "take", x, as_array(indices, "take", "indices"), axis=at, mode="clip" if mode == "raise" else mode
        )
    if not isinstance(indices, ndarray):
        indices = as_array(onp.asarray(indices, dtype="int64"), "take", "indices", x)
    found = call_op("take", x, indices, out=out, axis=at, mode="wrap" if mode == "raise" else mode)
    if mode == "raise":
        n = x.shape[at]
        with_sign = indices.detach().astype("int64")
        inside = ((with_sign >= -n) & (with_sign < n)).all() if indices.size else None
        if inside is not None:
            check_later(inside, (found,), RangeError(f"take: an index is out of bounds for axis {at} with size {n}"))
    return found


def take_along_axis(arr: Any, indices: Any, axis: Any) -> ndarray:
    """Return elements along `axis` at positions that differ from slice to slice."""
    x, at = as_array(arr, "take_along_axis", "arr"), as_array(indices, "take_along_axis", "indices")
    if axis is None:
        x, axis = ravel(x), 0
    return call_op("_np_take_along_axis", x, at, axis=axis_of(axis, x, "take_along_axis"))


def _as_positions(obj: Any, n: int, what: str, end: int) -> onp.ndarray:
    """Return the positions that `obj` means along an axis of length n, as an array of ints."""
    if isinstance(obj, slice):
        return onp.arange(*obj.indices(n))
    found = onp.asarray(obj.asnumpy() if isinstance(obj, ndarray) else obj)
    if found.dtype.kind == "b":
        found = onp.flatnonzero(found)
    if found.dtype.kind == "f":
        found = found.astype("int64")
    if found.dtype.kind not in "iu":
        raise ArgumentTypeError(f"{what}: obj={obj!r}: expected an int, a slice or ints")
    if found.size and (found.min() < -n or found.max() >= end):
        raise RangeError(f"{what}: obj={obj!r}: index out of bounds for an axis of length {n}")
    return onp.where(found < 0, found + n, found)


def delete(arr: Any, obj: Any, axis: Any = None) -> ndarray:
    """Return `arr` without the positions `obj` (an int, a slice or ints) along `axis`, or of the flattened array."""
    x = as_array(arr, "delete", "arr")
    if axis is None:
        x, axis = ravel(x), 0
    at = axis_of(axis, x, "delete")
    n = x.shape[at]
    kept = onp.delete(onp.arange(n), _as_positions(obj, n, "delete", n))
    return call_op("_npi_positions", x, at=tuple(kept.tolist()), axis=at)


def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> ndarray:
    """Return `arr` with `values` before the positions `obj` (an int, a slice or ints) along `axis`, or of the
    flattened array."""
    x = as_array(arr, "insert", "arr")
    if axis is None:
        x, axis = ravel(x), 0
    at = axis_of(axis, x, "insert")
    n = x.shape[at]
    places = _as_positions(obj, n, "insert", n + 1)
    given = cast(as_array(onp.asarray(values), "insert", "values", x) if not isinstance(values, ndarray) else values,
                 x.dtype)  # fmt: skip
    if places.ndim == 0 and given.ndim == x.ndim:
        # One place takes all slices of the values.
        places = onp.repeat(places, given.shape[at])
    elif places.ndim == 0 and given.ndim:
        lead = (1,) * (x.ndim - 1 - given.ndim)
        shape = lead + given.shape if x.ndim > 1 else given.shape
        given = given.reshape((*shape[:at], 1, *shape[at:])) if x.ndim > 1 else given
        places = onp.repeat(places, given.shape[0]) if x.ndim == 1 else places
    places = places.reshape(-1)
    holes = onp.insert(onp.arange(n), places, -1)
    grown = call_op("_npi_positions", x, at=tuple(holes.tolist()), axis=at)
    # Values are told apart in the order in which they were given.
    order = onp.argsort(places, kind="stable")
    spots = onp.empty(len(places), "int64")
    spots[order] = onp.flatnonzero(holes < 0)
    key = (slice(None),) * at + (spots,)
    return _put(grown, key, given)


def _put(a: ndarray, key: tuple[Any, ...], value: ndarray) -> ndarray:
    """Return `a` with `value` at `key`, differentiable in both."""
    spec, arrays = _spec(a, normalize_index(key, a.shape))
    call = OPS["_advanced_set"].call(spec=spec, num_args=2 + len(arrays))
    return as_np_class(invoke(call, (a, value, *arrays))[0])


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> ndarray:
    """Return the differences of neighbours along `axis`, `n` times."""
    x = as_array(a, "diff")
    if n < 0:
        raise ArgumentError(f"diff: n={n}: expected 0 or more")
    at = axis_of(axis, x, "diff")
    parts = [None if p is None else _boundary_value(p, x, at) for p in (prepend, append)]
    if any(p is not None for p in parts):
        x = concatenate([p for p in (parts[0], x, parts[1]) if p is not None], at)
    return call_op("_npi_diff", x, n=n, axis=at)


def _boundary_value(value: Any, x: ndarray, axis: int) -> ndarray:
    if is_number(value):
        shape = tuple(1 if i == axis else n for i, n in enumerate(x.shape))
        return as_array(onp.full(shape, value, x.dtype), "diff", "prepend or append", x)
    return as_array(value, "diff", "prepend or append", x)


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> ndarray:
    """Return the differences of neighbours in the flattened array, with elements before and after them."""
    x = as_array(ary, "ediff1d", "ary")
    arrays: list[ndarray] = [x]
    params: dict[str, Any] = {}
    for name, value in (("to_begin", to_begin), ("to_end", to_end)):
        if is_number(value):
            params[f"{name}_scalar"] = float(value)
        elif value is not None:
            params[f"{name}_arr_given"] = True
            arrays.append(as_array(onp.asarray(value) if isinstance(value, (list, tuple)) else value, "ediff1d", name))
    return call_op("_npi_ediff1d", *arrays, **params)


def polyval(p: Any, x: Any) -> ndarray:
    """Return the value at `x` of the polynomial with coefficients `p`, that of the highest power first."""
    return call_op("_npi_polyval", as_array(p, "polyval", "p"), as_array(x, "polyval", "x", p))


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Return the piecewise linear function through the points (`xp`, `fp`) at `x`, as float64."""
    points = [as_array(onp.asarray(v) if isinstance(v, (list, tuple)) or is_number(v) else v, "interp", n)
              for v, n in ((x, "x"), (xp, "xp"), (fp, "fp"))]  # fmt: skip
    if period is not None:
        period = abs(float(period))
        points[0], points[1] = points[0].astype("float64") % period, points[1].astype("float64") % period
        order = argsort(points[1])
        known, level = points[1][order], points[2].astype("float64")[order]
        points[1] = concatenate([known[-1:] - period, known, known[:1] + period])
        points[2] = concatenate([level[-1:], level, level[:1]])
    ends = {k: float(v) for k, v in (("left", left), ("right", right)) if v is not None and period is None}
    return call_op("_npi_interp", *points, **ends)


def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    """Return the coordinates, one int64 array per axis, of flat positions in an array of `shape`."""
    if order != "C":
        raise UnsupportedError(f"unravel_index: order={order!r}: only 'C' is supported")
    x = as_array(onp.asarray(indices) if not isinstance(indices, ndarray) else indices, "unravel_index", "indices")
    if x.aval.dtype.kind not in "iu":
        raise ArgumentTypeError("unravel_index: indices: expected integers")
    lengths = shape_of(shape, "unravel_index")
    found = call_op("unravel_index", cast(ravel(x), "int64"), shape=lengths)
    return tuple(found[i].reshape(x.shape) for i in range(len(lengths)))


def diag_indices_from(arr: Any) -> tuple[ndarray, ...]:
    """Return the positions of the main diagonal of a square array, one int64 array per axis."""
    x = as_array(arr, "diag_indices_from", "arr")
    if x.ndim < 2 or len(set(x.shape)) != 1:
        raise ArgumentError(f"diag_indices_from: arr has shape {x.shape}: expected equal lengths, at least two axes")
    return tuple(as_array(onp.arange(x.shape[0]), "diag_indices_from") for _ in x.shape)


def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Return where |a - b| <= atol + rtol * |b|, as bool."""
    if is_number(a) and is_number(b):
        return onp.isclose(a, b, rtol, atol, equal_nan)
    x, y = (_wide(v, n) for v, n in ((a, "a"), (b, "b")))
    close = ((abs(x - y) <= abs(y) * rtol + atol) & (abs(y) != float("inf"))) | (x == y)
    return close | ((x != x) & (y != y)) if equal_nan else close


def _wide(value: Any, name: str) -> ndarray:
    """Return an argument of `isclose` as a floating-point array."""
    x = as_array(onp.asarray(value, "float64") if not isinstance(value, ndarray) else value, "isclose", name)
    return x if x.aval.dtype.kind == "f" else cast(x, "float64")


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Return whether |a - b| <= atol + rtol * |b| everywhere."""
    return bool(onp.all(_to_numpy(isclose(a, b, rtol, atol, equal_nan))))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Return whether two arrays have one shape and equal elements."""
    return bool(onp.array_equal(_to_numpy(a1), _to_numpy(a2), equal_nan))


def array_equiv(a1: Any, a2: Any) -> bool:
    """Return whether two arrays broadcast to one shape with equal elements."""
    return bool(onp.array_equiv(_to_numpy(a1), _to_numpy(a2)))


def _to_numpy(a: Any) -> Any:
    return a.asnumpy() if isinstance(a, ndarray) else a


def shares_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    """Return whether writing to one array can change the other: they are one, or views of one."""
    if not isinstance(a, Handle) or not isinstance(b, Handle):
        return bool(onp.shares_memory(a, b)) if isinstance(a, onp.ndarray) and isinstance(b, onp.ndarray) else False
    return array_in_memory(a) is array_in_memory(b)


may_share_memory = shares_memory


def shape(a: Any) -> tuple[int, ...]:
    """Return the length of each axis."""
    return a.shape if isinstance(a, ndarray) else onp.shape(a)


def ndim(a: Any) -> int:
    """Return the number of axes."""
    return a.ndim if isinstance(a, ndarray) else onp.ndim(a)


def size(a: Any, axis: Any = None) -> int:
    """Return the number of elements, of one axis if it is given."""
    if not isinstance(a, ndarray):
        return onp.size(a, axis)
    return a.size if axis is None else a.shape[axis_of(axis, a, "size")]


__all__ = [
    "allclose", "argsort", "argwhere", "array_equal", "array_equiv", "bincount", "delete", "diag_indices_from", "diff",
    "ediff1d", "flatnonzero", "histogram", "insert", "interp", "isclose", "may_share_memory", "msort", "ndim",
    "nonzero", "polyval", "shape", "shares_memory", "size", "sort", "take", "take_along_axis", "unique",
    "unravel_index", "where",
]  # fmt: skip
