"""Compare arrays with tolerances by dtype; errors show where they differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.dtypes import bfloat16
from ..core.errors import ArgumentError
from ..ndarray import NDArray

_EXACT = [np.dtype(n) for n in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")]


def _table(half: float, brain: float, single: float, double: float) -> dict[np.dtype, float]:
    floats = {np.dtype("float16"): half, bfloat16: brain, np.dtype("float32"): single, np.dtype("float64"): double}
    return {**floats, **dict.fromkeys(_EXACT, 0)}


def default_rtols() -> dict[np.dtype, float]:
    """Return the relative tolerance of each element type."""
    return _table(1e-2, 2e-2, 1e-4, 1e-5)


def default_atols() -> dict[np.dtype, float]:
    """Return the absolute tolerance of each element type."""
    return _table(1e-1, 1e-1, 1e-3, 1e-20)


def default_numeric_eps() -> dict[np.dtype, float]:
    """Return the step of numeric differentiation in each floating-point type: powers of two."""
    return {np.dtype("float16"): 2.0**-6, np.dtype("float32"): 2.0**-9, np.dtype("float64"): 2.0**-14}


def effective_dtype(dat: Any) -> np.dtype:
    """Return the element type whose precision `dat` was computed with."""
    return np.dtype(dat.dtype) if hasattr(dat, "dtype") else np.asarray(dat).dtype


def get_tolerance(dat: Any, tol: Any, default_tol: Mapping[np.dtype, float]) -> float:
    """Return `tol` if it is a number, else what it (or `default_tol` for None) says for the element type of `dat`."""
    if isinstance(tol, (int, float, np.number)):
        return float(tol)
    dtype = effective_dtype(dat)
    table = {np.dtype(k): v for k, v in (default_tol if tol is None else tol).items()}
    return table.get(dtype, default_tol.get(dtype, 0))


def get_tols(x: Any, y: Any, rtol: Any, atol: Any) -> tuple[float, float]:
    """Return the tolerances for comparing `x` and `y`: the wider of both types."""
    pairs = ((rtol, default_rtols()), (atol, default_atols()))
    wide = [max(get_tolerance(x, t, d), get_tolerance(y, t, d)) for t, d in pairs]
    return wide[0], wide[1]


def get_rtol(rtol: float | None = None, dtype: Any = "float64") -> float:
    """Return `rtol`, or the default of a type."""
    return default_rtols()[np.dtype(dtype)] if rtol is None else rtol


def get_atol(atol: float | None = None, dtype: Any = "float64") -> float:
    """Return `atol`, or the default of a type."""
    return default_atols()[np.dtype(dtype)] if atol is None else atol


def get_etol(etol: float | None = None) -> float:
    """Return the fraction of elements that may differ: `etol`, 0 by default."""
    return 0.0 if etol is None else etol


def host(a: Any) -> np.ndarray:
    """Return an NDArray or anything array-like as a NumPy array."""
    return a.asnumpy() if isinstance(a, NDArray) else np.asarray(a)


def _wide(a: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) if a.dtype.kind == "V" or a.dtype.kind == "f" else a


def same(a: Any, b: Any) -> bool:
    """Return whether two arrays have equal shapes and elements."""
    return np.array_equal(host(a), host(b))


def almost_equal(
    a: Any, b: Any, rtol: Any = None, atol: Any = None, equal_nan: bool = False, use_broadcast: bool = True
) -> bool:
    """Return whether |a - b| <= atol + rtol * |b| everywhere, with tolerances by element type by default."""
    rtol, atol = get_tols(a, b, rtol, atol)
    a, b = _wide(host(a)), _wide(host(b))
    if a.shape != b.shape and not use_broadcast:
        return False
    return bool(np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan))


def _report(a: Any, b: Any, rtol: float, atol: float, names: Any, equal_nan: bool, most: int, kept: float = 0) -> str:
    a, b = np.broadcast_arrays(a, b)
    with np.errstate(all="ignore"):
        difference = np.abs(a.astype(np.float64) - b.astype(np.float64))
        error = difference / (atol + rtol * np.abs(b.astype(np.float64)) + 1e-300)
    wrong = ~np.isclose(a.astype(np.float64), b.astype(np.float64), rtol=rtol, atol=atol, equal_nan=equal_nan)
    error = np.where(wrong, np.where(np.isnan(error), np.inf, error), 0.0)
    order = np.argsort(error, axis=None)[::-1][: max(1, min(most, int(wrong.sum())))]
    lines = [
        f"Items are not equal:\nError {error.max():f} exceeds tolerance rtol={rtol:e}, atol={atol:e} "
        f"(mismatch {100 * wrong.mean():f}%" + (f", allowed {100 * kept:f}%" if kept else "") + ")."
    ]
    for k in order:
        at = tuple(int(i) for i in np.unravel_index(k, error.shape))
        lines.append(f"Error {error[at]:f} at {at}: {names[0]}={a[at]:.8f}, {names[1]}={b[at]:.8f}")
    return "\n".join([*lines, f" {names[0]}: {a!r}", f" {names[1]}: {b!r}"])


def assert_almost_equal(
    a: Any,
    b: Any,
    rtol: Any = None,
    atol: Any = None,
    names: Sequence[str] = ("a", "b"),
    equal_nan: bool = False,
    use_broadcast: bool = True,
    mismatches: tuple[int, int] = (10, 10),
) -> None:
    """Require |a - b| <= atol + rtol * |b| everywhere.

    Args:
        a, b: arrays or array-likes of shapes that broadcast (equal ones if `use_broadcast` is false).
        rtol, atol: numbers, dicts by element type, or None for `default_rtols` and `default_atols`.
        names: what to call them in the error.
        equal_nan: NaNs at the same place are equal.
        mismatches: how many differences the error lists (the second number).

    Raises:
        AssertionError: they differ; the text lists the largest differences and where they are.

    Example:
        >>> import numpy as np
        >>> assert_almost_equal(np.array([1.0, 2.0]), np.array([1.0, 2.0 + 1e-9]))
    """
    if almost_equal(a, b, rtol, atol, equal_nan, use_broadcast):
        return
    rtol, atol = get_tols(a, b, rtol, atol)
    a, b = host(a), host(b)
    if not use_broadcast and a.shape != b.shape:
        raise AssertionError(f"shapes differ: {names[0]} {a.shape}, {names[1]} {b.shape}")
    raise AssertionError(_report(a, b, rtol, atol, names, equal_nan, mismatches[1]))


def assert_almost_equal_with_err(
    a: Any,
    b: Any,
    rtol: Any = None,
    atol: Any = None,
    etol: float | None = None,
    names: Sequence[str] = ("a", "b"),
    equal_nan: bool = False,
    mismatches: tuple[int, int] = (10, 10),
) -> None:
    """Like `assert_almost_equal`, but a fraction `etol` of the elements may differ."""
    allowed = get_etol(etol)
    rtol, atol = get_tols(a, b, rtol, atol)
    a, b = host(a), host(b)
    close = np.isclose(_wide(a), _wide(b), rtol=rtol, atol=atol, equal_nan=equal_nan)
    if 1 - close.mean() > allowed:
        raise AssertionError(_report(a, b, rtol, atol, names, equal_nan, mismatches[1], allowed))


def assert_almost_equal_ignore_nan(
    a: Any, b: Any, rtol: Any = None, atol: Any = None, names: Sequence[str] = ("a", "b")
) -> None:
    """Like `assert_almost_equal`, where elements that are NaN in either array do not count."""
    a, b = np.array(host(a)), np.array(host(b))
    hidden = np.isnan(a) | np.isnan(b)
    a[hidden] = b[hidden] = 0
    assert_almost_equal(a, b, rtol, atol, names)


def assert_allclose(a: Any, b: Any, rtol: float = 1e-07, atol: float = 0, equal_nan: bool = True) -> None:
    """Require closeness with NumPy's default tolerances."""
    assert_almost_equal(a, b, rtol, atol, equal_nan=equal_nan)


def assert_exception(f: Callable[..., Any], exception_type: type[BaseException], *args: Any, **kwargs: Any) -> None:
    """Require that `f(*args, **kwargs)` raises `exception_type`."""
    try:
        f(*args, **kwargs)
    except exception_type:
        return
    raise AssertionError(f"{getattr(f, '__name__', f)!r} did not raise {exception_type.__name__}")


def compare_ndarray_tuple(t1: Any, t2: Any, rtol: Any = None, atol: Any = None) -> None:
    """Require that nested tuples of arrays (optimizer states) are almost equal."""
    if t1 is None or t2 is None:
        if t1 is not t2:
            raise AssertionError("one of the states is None, the other is not")
        return
    if isinstance(t1, (list, tuple)):
        for a, b in zip(t1, t2, strict=True):
            compare_ndarray_tuple(a, b, rtol, atol)
        return
    assert_almost_equal(t1, t2, rtol, atol)


def same_array(array1: NDArray, array2: NDArray) -> bool:
    """Return whether writes to one array are seen through the other: one object, or views of one array."""
    before = array1.asnumpy()
    array1[:] = before + np.ones((), before.dtype)
    shared = same(array1, array2)
    array1[:] = before
    return shared and same(array1, array2)


def np_reduce(dat: Any, axis: Any, keepdims: bool, numpy_reduce_func: Callable[..., Any]) -> np.ndarray:
    """Reduce a NumPy array with a function of one axis, such as `numpy.sum`, over an axis, several, or all (None)."""
    found = np.asarray(dat)
    axes = range(found.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    kept = list(found.shape)
    for a in sorted({a % found.ndim for a in axes}, reverse=True):
        found = np.asarray(numpy_reduce_func(found, axis=a))
        kept[a] = 1
    return found.reshape(kept) if keepdims else found


def collapse_sum_like(a: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sum `a` down to `shape`, which broadcasts to that of `a`: the gradient of broadcasting."""
    if len(shape) > a.ndim:
        raise ArgumentError(f"collapse_sum_like: shape={shape}: expected at most {a.ndim} axes")
    a = a.sum(axis=tuple(range(a.ndim - len(shape))))
    axes = tuple(k for k, n in enumerate(shape) if n == 1 and a.shape[k] != 1)
    return a.sum(axis=axes, keepdims=True) if axes else a


__all__ = [
    "almost_equal", "assert_allclose", "assert_almost_equal", "assert_almost_equal_ignore_nan",
    "assert_almost_equal_with_err", "assert_exception", "collapse_sum_like", "compare_ndarray_tuple", "default_atols",
    "default_numeric_eps", "default_rtols", "effective_dtype", "get_atol", "get_etol", "get_rtol", "get_tolerance",
    "get_tols", "np_reduce", "same", "same_array",
]  # fmt: skip
