"""Primitives of `jax.lax` on NumPy arrays, where no NumPy function computes the same.

What XLA defines and NumPy leaves open is as XLA does it: division by zero and overflow of integers, indices outside.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from ..onednn import numpy_calls
from ..onednn.ffi_handlers import available
from .convolutions import convolution as convolution
from .matmul import dot_general as dot_general
from .matmul import matmul as matmul
from .threefry import fold_in as fold_in
from .threefry import random_bits as random_bits
from .threefry import random_seed as random_seed
from .threefry import random_split as random_split
from .threefry import random_uniform as random_uniform

Sizes = tuple[int, ...]

_MIN_HANDLER_SIZE = 4096  # elements, from which a call of a handler costs little
_MASKS = {2: np.int16, 4: np.int32, 8: np.int64}  # by the size of elements
_PAIRWISE_FROM = 64  # rows that are added naively; float32 sums of more lose bits that XLA keeps


# -- elementwise


def logistic(x: Any, out: Any = None) -> Any:
    """1 / (1 + exp(-x))."""
    one, r = x.dtype.type(1), np.negative(x, out=out)
    if r.ndim == 0:
        return one / (one + np.exp(r))
    np.add(np.exp(r, out=r), one, out=r)
    return np.divide(one, r, out=r)


def rsqrt(x: Any, out: Any = None) -> Any:
    """1 / sqrt(x)."""
    r = np.sqrt(x, out=out)
    return x.dtype.type(1) / r if r.ndim == 0 else np.divide(x.dtype.type(1), r, out=r)


def power(x: Any, y: Any) -> Any:
    """x ** y in the type of x; integers to negative powers are 0, but for those of 1 and -1."""
    if x.dtype.kind not in "iu" or np.asarray(y).dtype.kind == "u":
        return np.power(x, y).astype(x.dtype)  # the exponent may be of another type
    odd = np.where(y % 2 == 0, x.dtype.type(1), x)
    small = np.where(np.abs(x) == 1, odd, x.dtype.type(0))
    return np.where(y < 0, small, np.power(x, np.maximum(y, 0))).astype(x.dtype)


def integer_power(x: Any, n: int) -> Any:
    """x ** n by repeated squares, as XLA computes it."""
    if n < 0:
        return x.dtype.type(1) / integer_power(x, -n)
    result, square = None, x
    while n:
        if n & 1:
            result = square if result is None else result * square
        n >>= 1
        if n:
            square = square * square
    return np.ones_like(x) if result is None else result


def integer_divide(x: Any, y: Any) -> Any:
    """x / y towards zero; all bits are set where y is 0."""
    divisor = np.where(y == 0, x.dtype.type(1), y)
    quotient = x // divisor
    if x.dtype.kind == "i":
        quotient = quotient + ((x % divisor != 0) & ((x < 0) != (divisor < 0)))
    ones = -1 if x.dtype.kind == "i" else np.iinfo(x.dtype).max
    return np.where(y == 0, x.dtype.type(ones), quotient).astype(x.dtype)


def remainder(x: Any, y: Any) -> Any:
    """The remainder with the sign of x; x itself where an integer y is 0."""
    if x.dtype.kind in "iu":
        return np.where(y == 0, x, np.fmod(x, np.where(y == 0, x.dtype.type(1), y))).astype(x.dtype)
    return np.fmod(x, y)


def round_away_from_zero(x: Any) -> Any:
    """The nearest integer; halves go away from zero."""
    integral = np.trunc(x)
    return integral + np.copysign((np.abs(x - integral) >= 0.5).astype(x.dtype), x)


def shift_left(x: Any, y: Any) -> Any:
    """x << y, 0 beyond the width."""
    bits = 8 * x.dtype.itemsize
    wide = np.asarray(y).astype(f"u{x.dtype.itemsize}") >= bits
    return np.where(wide, x.dtype.type(0), np.left_shift(x, np.where(wide, 0, y).astype(x.dtype)))


def shift_right_logical(x: Any, y: Any) -> Any:
    """x >> y, filled with zeros."""
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    by = np.asarray(y).astype(unsigned)
    wide = by >= 8 * x.dtype.itemsize
    shifted = np.right_shift(np.asarray(x).view(unsigned), np.where(wide, unsigned.type(0), by))
    return np.where(wide, unsigned.type(0), shifted).view(x.dtype)


def shift_right_arithmetic(x: Any, y: Any) -> Any:
    """x >> y, filled with the sign."""
    by = np.asarray(y).astype(f"u{x.dtype.itemsize}")
    return np.right_shift(x, np.minimum(by, 8 * x.dtype.itemsize - 1).astype(x.dtype))


def clamp(low: Any, x: Any, high: Any) -> Any:
    """x between two bounds."""
    return np.minimum(np.maximum(x, low), high)


def select(which: Any, *cases: Any) -> Any:
    """The case that `which` names, element by element."""
    if which.dtype == np.bool_:
        return np.where(which, cases[1], cases[0])
    return np.choose(np.clip(which, 0, len(cases) - 1), cases)


def keep(mask: Any, x: Any) -> Any:
    """x where a mask holds, 0 elsewhere: by its bits, since `where` goes wrong at every branch it guesses."""
    if mask.size < _MIN_HANDLER_SIZE or x.dtype.itemsize not in _MASKS or x.shape != mask.shape:
        return np.where(mask, x, x.dtype.type(0))
    if x.dtype.itemsize == 4 and available() and (out := numpy_calls.keep_masked(mask, x)) is not None:
        return out
    return _masked(np.negative(mask.view(np.int8)), x)


def drop(mask: Any, x: Any) -> Any:
    """0 where a mask holds, x elsewhere."""
    if mask.size < _MIN_HANDLER_SIZE or x.dtype.itemsize not in _MASKS or x.shape != mask.shape:
        return np.where(mask, x.dtype.type(0), x)
    return _masked(np.subtract(mask.view(np.int8), np.int8(1)), x)


def _masked(bits: Any, x: Any) -> Any:
    mask = bits.astype(_MASKS[x.dtype.itemsize])
    return np.bitwise_and(mask, x.view(mask.dtype), out=mask).view(x.dtype)


def _special(name: str, x: Any) -> Any:
    """A function of SciPy in the type of its argument; it knows none smaller than float32."""
    import scipy.special  # a dependency of JAX, slow to import

    fn = getattr(scipy.special, name)
    wide = x if x.dtype in (np.float32, np.float64) else x.astype(np.float32)
    return np.asarray(fn(wide)).astype(x.dtype)[()]


def erf(x: Any, out: Any = None) -> Any:
    """The error function."""
    if x.dtype == np.float32 and available():
        return numpy_calls.erf(np.asarray(x), out)  # SciPy takes ten times as long, and 20 ms to import
    return _special("erf", x)


def erfc(x: Any) -> Any:
    """1 - erf(x)."""
    return _special("erfc", x)


def erf_inv(x: Any, out: Any = None) -> Any:
    """The inverse of the error function."""
    if x.dtype == np.float32 and available():
        return numpy_calls.erf_inv(np.asarray(x), out)
    return _special("erfinv", x)


def lgamma(x: Any) -> Any:
    """The logarithm of the gamma function's magnitude."""
    return _special("gammaln", x)


def digamma(x: Any) -> Any:
    """The derivative of lgamma."""
    return _special("digamma", x)


# -- types


def convert(x: Any, dtype: np.dtype) -> Any:
    """Convert to another type; floats saturate in integers, and NaN becomes 0."""
    x = np.asarray(x)
    if dtype == np.bool_:
        return (x != 0)[()]
    if dtype.kind in "iu" and (x.dtype.kind == "f" or x.dtype == ml_dtypes.bfloat16):
        limits = np.iinfo(dtype)
        y = np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
        above, below = y >= float(limits.max), y <= float(limits.min)
        inside = np.where(above | below, 0.0, y).astype(dtype)
        return np.where(above, limits.max, np.where(below, limits.min, inside)).astype(dtype)[()]
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = x.real
    return x.astype(dtype)[()]


def bitcast(x: Any, dtype: np.dtype) -> Any:
    """The same bytes as another type."""
    x = np.ascontiguousarray(x) if np.ndim(x) else np.asarray(x)
    if x.dtype.itemsize == dtype.itemsize:
        return x.view(dtype)
    if x.dtype.itemsize > dtype.itemsize:
        return x.reshape((*x.shape, 1)).view(dtype)
    return x.view(dtype)[..., 0]


_REDUCED = {(8, 7): ml_dtypes.bfloat16, (5, 10): np.float16, (8, 23): np.float32, (11, 52): np.float64}


def reduce_precision(x: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    """Round to the numbers of a smaller type."""
    return x.astype(_REDUCED[exponent_bits, mantissa_bits]).astype(x.dtype)


def lowest(dtype: np.dtype) -> Any:
    """The neutral element of the maximum."""
    if dtype.kind == "b":
        return False
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def highest(dtype: np.dtype) -> Any:
    """The neutral element of the minimum."""
    if dtype.kind == "b":
        return True
    return np.iinfo(dtype).max if dtype.kind in "iu" else np.inf


# -- reductions

_HALVES = frozenset({np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)})


def reduce_sum(x: Any, axes: Sizes) -> Any:
    """The sum over axes; long sums are added in pairs along every axis."""
    dtype = x.dtype
    if dtype in _HALVES:
        return reduce_sum(x.astype(np.float32), axes).astype(dtype)
    if dtype.kind in "fc":
        # NumPy adds in pairs along the last axis of memory only.
        for axis in axes:
            if axis != x.ndim - 1 and x.shape[axis] >= _PAIRWISE_FROM:
                x = _fold(x, axis)
    return np.add.reduce(x, axis=axes, dtype=dtype)


def _fold(x: Any, axis: int) -> Any:
    """Add the halves of an axis until it is short."""
    while (n := x.shape[axis]) >= _PAIRWISE_FROM:
        half = n // 2
        total = x[_along(axis, 0, half)] + x[_along(axis, half, 2 * half)]
        if n % 2:
            total[_along(axis, 0, 1)] += x[_along(axis, n - 1, n)]
        x = total
    return x


def _along(axis: int, start: int, stop: int) -> tuple[slice, ...]:
    return (*[slice(None)] * axis, slice(start, stop))


def normalize_batch(x: Any, gamma: Any, beta: Any, eps: Any, axis: int) -> tuple[Any, ...]:
    """x normalized over all axes but one, their mean, biased variance and 1 / sqrt(variance + eps)."""
    rows = _rows(x, axis)
    if available():
        y, mean, var, inv = numpy_calls.normalize_batch(rows, gamma, beta, eps)
    else:
        d, count = rows - rows[0], x.dtype.type(len(rows))  # shifted by a row, so that nothing cancels
        s1 = reduce_sum(d, (0,)) / count
        s2 = reduce_sum(np.multiply(d, d, out=d), (0,)) / count
        mean, var = rows[0] + s1, np.maximum(s2 - s1 * s1, x.dtype.type(0))
        inv = rsqrt(var + eps)
        y = np.subtract(rows, mean, out=d)
        y *= gamma * inv
        y += beta
    return _as_data(y, x, axis), mean, var, inv


def normalize_batch_vjp(x: Any, gamma: Any, mean: Any, inv: Any, dy: Any, axis: int) -> tuple[Any, ...]:
    """The gradients of x, gamma and beta of `normalize_batch` from that of its first result."""
    rows, dy = _rows(x, axis), _rows(dy, axis)
    if available():
        dx, dgamma, dbeta = numpy_calls.normalize_batch_vjp(rows, gamma, mean, inv, dy)
    else:
        centred, slope, count = rows - mean, gamma * inv, x.dtype.type(len(rows))
        dbeta, dgamma = reduce_sum(dy, (0,)), reduce_sum(dy * centred, (0,)) * inv
        dx = dy * slope
        centred *= slope * inv * dgamma / count
        dx -= centred
        dx -= slope * dbeta / count
    return _as_data(dx, x, axis), dgamma, dbeta


def max_pool(x: Any, first: int, kernel: Sizes, stride: Sizes, low: Sizes, count: Sizes) -> Any:
    """The maxima of windows, `count` of them along spatial axes, the first of which is `first`.

    `low` is the padding in front, which holds the least finite number, as that behind does.
    """
    if available() and first == 1 and x.ndim == 4:
        return numpy_calls.max_pool(x, count, (*kernel, *stride, *low))
    padded, _ = _padded(x, first, kernel, stride, low, count)
    return functools.reduce(np.maximum, [padded[at] for at in _windows(first, kernel, stride, count)])


def max_pool_vjp(x: Any, y: Any, dy: Any, first: int, kernel: Sizes, stride: Sizes, low: Sizes) -> Any:
    """The gradient of x from that of y, the maxima of its windows; the first maximum of each receives it."""
    if available() and first == 1 and x.ndim == 4:
        return numpy_calls.max_pool_vjp(x, y, dy, (*kernel, *stride, *low))
    count = y.shape[first : first + len(kernel)]
    padded, inner = _padded(x, first, kernel, stride, low, count)
    total, left = np.zeros(padded.shape, x.dtype), np.ones(y.shape, bool)
    for at in _windows(first, kernel, stride, count):
        hit = (padded[at] == y) & left
        left &= ~hit
        total[at] += np.where(hit, dy, x.dtype.type(0))
    return total[inner]


def _padded(
    x: Any, first: int, kernel: Sizes, stride: Sizes, low: Sizes, count: Sizes
) -> tuple[Any, tuple[slice, ...]]:
    """x with what its windows reach beyond it, and where x is there."""
    shape = list(x.shape)
    for i, (k, s, p, n) in enumerate(zip(kernel, stride, low, count, strict=True), first):
        shape[i] = max((n - 1) * s + k, p + x.shape[i])
    inner = (*[slice(None)] * first, *[slice(p, p + x.shape[i]) for i, p in enumerate(low, first)])
    padded = np.full(shape, np.finfo(x.dtype).min, x.dtype)
    padded[inner] = x
    return padded, inner


def _windows(first: int, kernel: Sizes, stride: Sizes, count: Sizes) -> Iterator[tuple[slice, ...]]:
    """Where the windows have their first elements, their second ones, and so on."""
    for at in itertools.product(*map(range, kernel)):
        axes = zip(at, count, stride, strict=True)
        yield (*[slice(None)] * first, *[slice(a, a + (n - 1) * s + 1, s) for a, n, s in axes])


def _rows(x: Any, axis: int) -> Any:
    """Elements by channels, which lie on an axis, in one piece of memory."""
    last = np.moveaxis(x, axis, -1)
    return numpy_calls.dense(last.reshape(math.prod(last.shape[:-1]), last.shape[-1]))


def _as_data(rows: Any, x: Any, axis: int) -> Any:
    """The inverse of `_rows` for data like x."""
    return np.moveaxis(rows.reshape(*x.shape[:axis], *x.shape[axis + 1 :], x.shape[axis]), -1, axis)


def reduce_prod(x: Any, axes: Sizes) -> Any:
    """The product over axes."""
    if x.dtype in _HALVES:
        return np.multiply.reduce(x.astype(np.float32), axis=axes).astype(x.dtype)
    return np.multiply.reduce(x, axis=axes, dtype=x.dtype)


def reduce_extreme(ufunc: Any, x: Any, axes: Sizes, neutral: Any) -> Any:
    """Maximum or minimum over axes, which may be empty."""
    if any(x.shape[a] == 0 for a in axes):
        return np.full([n for i, n in enumerate(x.shape) if i not in axes], neutral, x.dtype)
    return ufunc.reduce(x, axis=axes)


def accumulate(ufunc: Any, x: Any, axis: int, reverse: bool) -> Any:
    """Running totals along an axis."""
    total = ufunc.accumulate(np.flip(x, axis) if reverse else x, axis=axis, dtype=x.dtype)
    return np.flip(total, axis) if reverse else total


def sort(operands: Sequence[Any], axis: int, num_keys: int) -> tuple[Any, ...]:
    """Sort arrays together by the first `num_keys` of them; equal ones keep their order."""
    if len(operands) == 1:
        return (np.sort(operands[0], axis=axis, kind="stable"),)
    keys = operands[:num_keys]
    order = np.argsort(keys[0], axis=axis, kind="stable") if num_keys == 1 else np.lexsort(keys[::-1], axis=axis)
    return tuple(np.take_along_axis(o, order, axis) for o in operands)


def top_k(x: Any, k: int, axis: int) -> tuple[Any, Any]:
    """The k largest elements along an axis, and where they are; of equal ones the first."""
    x = np.moveaxis(x, axis, -1)
    descending = ~x if x.dtype.kind in "iub" else -x
    at = np.argsort(descending, axis=-1, kind="stable")[..., :k]
    return np.moveaxis(np.take_along_axis(x, at, -1), -1, axis), np.moveaxis(at.astype(np.int32), -1, axis)


def reduce_window(
    ufunc: Any, x: Any, first: Any, size: Sizes, stride: Sizes, padding: Any, base: Sizes, dilation: Sizes
) -> Any:
    """Combine the elements of windows."""
    if any(p != (0, 0) for p in padding) or any(b != 1 for b in base):
        x = pad(x, first, [(low, high, b - 1) for (low, high), b in zip(padding, base, strict=True)])
    count = [(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(x.shape, size, stride, dilation, strict=True)]
    total = None
    for offset in itertools.product(*map(range, size)):
        at = zip(offset, dilation, count, stride, strict=True)
        part = x[tuple([slice(o * d, o * d + (n - 1) * s + 1, s) for o, d, n, s in at])]
        total = part.copy() if total is None else ufunc(total, part, out=total)
    return total


# -- shapes and indices


def iota(dtype: np.dtype, shape: Sizes, axis: int) -> Any:
    """Positions along an axis."""
    line = np.arange(shape[axis], dtype=dtype)
    return np.broadcast_to(line.reshape([-1 if a == axis else 1 for a in range(len(shape))]), shape)


@functools.lru_cache(maxsize=4096)
def _inside(shape: Sizes, config: Sequence[Sizes]) -> tuple[Sizes, tuple[slice, ...], tuple[slice, ...]]:
    """The shape after padding, which part of an array is left, and where it lies then."""
    sizes, source, target = [], [], []
    for n, (low, high, between) in zip(shape, config, strict=True):
        step = between + 1
        size = max(low + high + n + max(n - 1, 0) * between, 0)
        start = max(0, -(low // step)) if low < 0 else 0
        stop = min(n, (size - 1 - low) // step + 1)
        sizes.append(size)
        source.append(slice(start, stop))
        target.append(slice(low + start * step, low + max(stop - 1, 0) * step + 1, step))
    return tuple(sizes), tuple(source), tuple(target)


def pad(x: Any, value: Any, config: Sequence[Sizes]) -> Any:
    """Put `value` before, after and between the elements; negative numbers cut."""
    shape, source, target = _inside(x.shape, config)
    out = np.empty(shape, x.dtype)
    out[...] = value
    if all(s.stop > s.start for s in source):
        out[target] = x[source]
    return out


def add_inside(total: Any, x: Any, config: Sequence[Sizes], out: Any = None) -> Any:
    """Add x with zeros around it."""
    out = np.array(total) if out is None else out
    _, source, target = _inside(x.shape, config)
    if all(s.stop > s.start for s in source):
        out[target] += x[source]
    return out


def _starts(shape: Sizes, starts: Sequence[Any], sizes: Sizes) -> tuple[slice, ...]:
    """The part of a shape that begins at `starts`, moved inside."""
    at = [min(max(int(s), 0), n - k) for s, n, k in zip(starts, shape, sizes, strict=True)]
    return tuple([slice(a, a + k) for a, k in zip(at, sizes, strict=True)])


def dynamic_slice(x: Any, starts: Sequence[Any], sizes: Sizes) -> Any:
    """A part of x."""
    return x[_starts(x.shape, starts, sizes)]


def dynamic_update_slice(x: Any, update: Any, starts: Sequence[Any]) -> Any:
    """x with a part replaced."""
    out = np.array(x)
    out[_starts(x.shape, starts, update.shape)] = update
    return out


def _window_indices(
    shape: Sizes, indices: Any, sizes: Sizes, rank: int, offset_axes: Sizes, window: Sequence[int],
    start_map: Sizes, batching: Sizes, index_batching: Sizes, clip: bool,
) -> tuple[list[Any], Any]:  # fmt: skip
    """Index arrays, over the axes of a result of `rank`, of the elements of windows of `shape`.

    Returns them with the places whose window lies inside, None if all are moved inside.
    """
    indices = np.asarray(indices)
    batch_axes = [a for a in range(rank) if a not in offset_axes]

    def over_batch(values: Any) -> Any:
        size = [1] * rank
        for axis, n in zip(batch_axes, values.shape, strict=True):
            size[axis] = n
        return values.reshape(size)

    inside, found = None, []
    for axis, n in enumerate(shape):
        if axis in start_map:
            at = indices[..., start_map.index(axis)].astype(np.int64)
            top = n - sizes[axis]
            if not clip:
                good = (at >= 0) & (at <= top)
                inside = good if inside is None else inside & good
            at = np.clip(at, 0, max(top, 0))
        else:
            at = np.zeros((1,) * (indices.ndim - 1), np.int64)
            if axis in batching:
                along = index_batching[batching.index(axis)]
                at = np.arange(n).reshape([-1 if a == along else 1 for a in range(indices.ndim - 1)])
        at = over_batch(at)
        if axis in window:
            place = offset_axes[window.index(axis)]
            at = at + np.arange(sizes[axis]).reshape([-1 if a == place else 1 for a in range(rank)])
        found.append(at)
    return found, None if inside is None else over_batch(inside)


def _one_window(
    shape: Sizes, start: Any, sizes: Sequence[int], start_map: Sizes, clip: bool
) -> tuple[slice, ...] | None:
    """The part of a shape that begins at `start`; None if it is not inside and is not moved there."""
    begin = [0] * len(shape)
    for axis, at in zip(start_map, start, strict=True):
        top = shape[axis] - sizes[axis]
        begin[axis] = min(max(int(at), 0), top)
        if not clip and begin[axis] != at:
            return None
    return tuple([slice(b, b + n) for b, n in zip(begin, sizes, strict=True)])


def gather(x: Any, indices: Any, shape: Sizes, sizes: Sizes, numbers: Any, mode: str, fill: Any) -> Any:
    """Parts of x at indices; those outside are moved inside or filled."""
    if indices.ndim == 1 and not numbers.operand_batching_dims:
        part = _one_window(x.shape, indices, sizes, numbers.start_index_map, mode != "fill")
        return np.full(shape, fill, x.dtype) if part is None else x[part].reshape(shape)
    rank = len(shape)
    window = [a for a in range(x.ndim) if a not in numbers.collapsed_slice_dims + numbers.operand_batching_dims]
    takes_rows = (
        numbers.collapsed_slice_dims == numbers.start_index_map == (0,)
        and not numbers.operand_batching_dims
        and sizes[1:] == x.shape[1:]
        and numbers.offset_dims == tuple(range(rank - x.ndim + 1, rank))
    )
    if takes_rows and x.shape[0]:
        at = np.asarray(indices)[..., 0]
        bad = (at < 0) | (at >= x.shape[0])
        if not bad.any():
            return x[at]
        rows = x[np.clip(at, 0, x.shape[0] - 1)]
        if mode == "fill":
            rows[bad] = fill
        return rows
    found, inside = _window_indices(
        x.shape, indices, sizes, rank, numbers.offset_dims, window, numbers.start_index_map,
        numbers.operand_batching_dims, numbers.start_indices_batching_dims, mode != "fill",
    )  # fmt: skip
    result = np.broadcast_to(x[tuple(found)] if found else x, shape)
    if inside is not None and not inside.all():
        result = np.where(inside, result, x.dtype.type(fill))
    return result


_SCATTERS = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum, "sub": np.subtract}


def scatter(x: Any, indices: Any, updates: Any, numbers: Any, mode: str, how: str) -> Any:
    """x with parts at indices replaced or combined; those outside are moved inside or dropped."""
    rank, out = updates.ndim, np.array(x)
    window = [a for a in range(x.ndim) if a not in numbers.inserted_window_dims + numbers.operand_batching_dims]
    adds_rows = (
        how == "add"
        and mode == "drop"
        and numbers.inserted_window_dims == numbers.scatter_dims_to_operand_dims == (0,)
        and not numbers.operand_batching_dims
        and numbers.update_window_dims == tuple(range(rank - x.ndim + 1, rank))
        and x.ndim == 2
    )
    if adds_rows:
        _add_rows(out, np.asarray(indices)[..., 0].reshape(-1), updates.reshape(-1, x.shape[1]))
        return out
    sizes = [1] * x.ndim
    for axis, place in zip(window, numbers.update_window_dims, strict=True):
        sizes[axis] = updates.shape[place]
    if indices.ndim == 1 and not numbers.operand_batching_dims:
        part = _one_window(x.shape, indices, sizes, numbers.scatter_dims_to_operand_dims, mode == "clip")
        if part is not None:
            one = updates.reshape(sizes)
            out[part] = one if how == "set" else _SCATTERS[how](out[part], one)
        return out
    found, inside = _window_indices(
        x.shape, indices, tuple(sizes), rank, numbers.update_window_dims, window,
        numbers.scatter_dims_to_operand_dims, numbers.operand_batching_dims, numbers.scatter_indices_batching_dims,
        mode == "clip",
    )  # fmt: skip
    at: Any = tuple(np.broadcast_arrays(*found, np.empty(updates.shape, bool))[:-1]) if found else ()
    if inside is not None and not inside.all():
        kept = np.broadcast_to(inside, updates.shape)
        at, updates = tuple([a[kept] for a in at]), updates[kept]
    if how == "set":
        out[at] = updates
    else:
        _SCATTERS[how].at(out, at, updates)
    return out


def _add_rows(out: Any, at: Any, rows: Any) -> None:
    """Add rows to those of `out`: in groups of equal places, since `np.add.at` takes one element at a time."""
    good = (at >= 0) & (at < out.shape[0])
    if not good.all():
        at, rows = at[good], rows[good]
    if not len(at):
        return
    order = np.argsort(at, kind="stable")
    ordered = at[order]
    first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    out[ordered[first]] += np.add.reduceat(rows[order], first, axis=0)


# -- matrices, by the LAPACK that jaxlib calls too


def _each_matrix(fn: Callable[..., tuple[Any, ...]], *arrays: Any) -> tuple[Any, ...]:
    """The results of a function of matrices, for each of stacks of them."""
    batch = arrays[0].shape[:-2]
    if not batch:
        return fn(*arrays)
    stacks = [a.reshape((-1, *a.shape[-2:])) for a in arrays]
    if not len(stacks[0]):  # of no matrix the results have the shapes of one
        like = fn(*[np.ones(a.shape[-2:], a.dtype) + np.eye(*a.shape[-2:], dtype=a.dtype) for a in arrays])
        return tuple([np.empty((*batch, *r.shape), r.dtype) for r in like])
    results = [fn(*one) for one in zip(*stacks, strict=True)]
    return tuple([np.stack(parts).reshape((*batch, *parts[0].shape)) for parts in zip(*results, strict=True)])


def cholesky(x: Any) -> Any:
    """The lower Cholesky factor of the symmetric part; NaN where there is none."""

    def one(matrix: Any) -> tuple[Any]:
        try:
            return (np.linalg.cholesky(matrix),)
        except np.linalg.LinAlgError:
            return (np.full_like(matrix, np.nan),)

    return _each_matrix(one, (x + np.swapaxes(x, -1, -2)) * x.dtype.type(0.5))[0]


def lu(x: Any) -> tuple[Any, Any, Any]:
    """Both factors in one matrix, the pivots, and the permutation that they make."""
    from scipy.linalg import lapack

    def one(matrix: Any) -> tuple[Any, Any, Any]:
        (getrf,) = lapack.get_lapack_funcs(("getrf",), (matrix,))
        factors, pivots, _ = getrf(matrix)
        order = np.arange(matrix.shape[0], dtype=np.int32)
        for row, other in enumerate(pivots):
            order[[row, other]] = order[[other, row]]
        return factors, pivots.astype(np.int32), order

    return _each_matrix(one, x)


def triangular_solve(
    a: Any, b: Any, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool
) -> Any:
    """The solution x of op(a) x = b, or of x op(a) = b."""
    from scipy.linalg import blas

    def one(a: Any, b: Any) -> tuple[Any]:
        # LAPACK's trtrs would leave b as it is where a is singular; this yields what is not finite, as XLA does.
        (trsm,) = blas.get_blas_funcs(("trsm",), (a, b))
        a = a.conj() if conjugate_a and not transpose_a else a
        how = (2 if conjugate_a else 1) if transpose_a else 0
        return (trsm(1.0, a, b, side=not left_side, lower=lower, trans_a=how, diag=unit_diagonal),)

    return _each_matrix(one, a, b)[0]


def qr(x: Any, full_matrices: bool) -> tuple[Any, Any]:
    """The orthogonal and the upper triangular factor."""
    q, r = np.linalg.qr(x, "complete" if full_matrices else "reduced")
    return q, r


def svd(x: Any, full_matrices: bool, compute_uv: bool) -> tuple[Any, ...]:
    """Singular values, and with `compute_uv` the vectors of both sides."""
    if not compute_uv:
        return (np.linalg.svd(x, full_matrices, False),)
    u, values, vt = np.linalg.svd(x, full_matrices)
    return values, u, vt


def eigh(x: Any, lower: bool) -> tuple[Any, Any]:
    """Eigenvectors and ascending eigenvalues of a symmetric matrix."""
    values, vectors = np.linalg.eigh(x, "L" if lower else "U")
    return vectors, values


def fft(x: Any, kind: str, lengths: Sizes) -> Any:
    """The transform over the last axes; `kind` is `FFT`, `IFFT`, `RFFT` or `IRFFT`."""
    axes = tuple(range(-len(lengths), 0))
    transform = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn, "IRFFT": np.fft.irfftn}[kind]
    wide = x.dtype in (np.float64, np.complex128)
    result = transform(x, lengths, axes)
    if kind == "IRFFT":
        return result.astype(np.float64 if wide else np.float32, copy=False)
    return result.astype(np.complex128 if wide else np.complex64, copy=False)


# -- control flow

Fn = Callable[..., tuple[Any, ...]]


def while_loop(test: Fn, body: Fn, test_consts: Any, body_consts: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
    """Repeat a body as long as a test holds."""
    while test(*test_consts, *state)[0]:
        state = body(*body_consts, *state)
    return state


def scan(
    body: Fn, length: int, reverse: bool, consts: Any, carry: tuple[Any, ...], stacked: Any, results: Any
) -> tuple[Any, ...]:
    """Repeat a body along the first axis of `stacked`, and stack what it yields besides the carry."""
    out = [np.empty((length, *shape), dtype) for shape, dtype in results]
    for i in range(length - 1, -1, -1) if reverse else range(length):
        values = body(*consts, *carry, *[x[i] for x in stacked])
        carry = values[: len(carry)]
        for y, value in zip(out, values[len(carry) :], strict=True):
            y[i] = value
    return (*carry, *out)


def branch(which: Any, branches: Sequence[Fn], args: Any) -> tuple[Any, ...]:
    """One of several functions."""
    return branches[min(max(int(which), 0), len(branches) - 1)](*args)
