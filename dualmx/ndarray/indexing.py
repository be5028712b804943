"""`x[...]` and `x[...] = value`: contiguous windows are views, other basic windows and index arrays are copies."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError, RangeError
from ..op.defs.index import constant, to_spec
from ..op.registry import OPS
from . import value_checks
from .creation import array
from .handle import (
    assign,
    check_writable,
    invoke,
    invoke_binary,
    invoke_nullary,
    invoke_unary,
    write_view,
    write_view_op,
)
from .interop import array_from_numpy
from .ndarray import NDArray
from .recorder import engine, local
from .view import copy_window, make_view


def _integer(item: Any, size: int, axis: int) -> int:
    at = int(item)
    if not -size <= at < size:
        raise RangeError(f"index {at} is out of bounds for axis {axis} with size {size}")
    return at + size if at < 0 else at


def _is_integer(item: Any) -> bool:
    return isinstance(item, (numbers.Integral, np.integer, bool))


def expand_ellipsis(items: list[Any], missing: int) -> None:
    """Put slices of the whole axis for `missing` axes where an index has its ellipsis, or at its end.

    Raises:
        RangeError: two ellipses.
    """
    dots = [k for k, i in enumerate(items) if i is Ellipsis]
    if len(dots) > 1:
        raise RangeError("an index can only have a single ellipsis ('...')")
    at = dots[0] if dots else len(items)
    items[at : at + 1] = [slice(None)] * missing


def normalize_index(index: Any, shape: tuple[int, ...]) -> list[Any]:
    """Return one item per axis (plus None for new axes): an int, a `range`, or an index array.

    Raises:
        RangeError: too many items or an integer out of bounds. ArgumentError: an item of another kind.
    """
    items = list(index) if isinstance(index, tuple) else [index]
    used = sum(i is not None and i is not Ellipsis for i in items)
    if used > len(shape):
        raise RangeError(f"too many indices ({used}) for array with {len(shape)} dimensions")
    expand_ellipsis(items, len(shape) - used)
    found: list[Any] = []
    axis = 0
    for item in items:
        if item is None:
            found.append(None)
            continue
        size = shape[axis]
        if _is_integer(item):
            found.append(_integer(item, size, axis))
        elif isinstance(item, slice):
            try:
                found.append(slice_range(item, size))
            except TypeError:
                raise ArgumentTypeError(f"slice {item} along axis {axis}: expected integers or None") from None
        elif isinstance(item, (list, np.ndarray, NDArray, range)) or (isinstance(item, tuple) and item):
            found.append(item)
        else:
            raise ArgumentError(
                f"index {item!r} of type {type(item).__name__} along axis {axis}: expected an integer, a slice, "
                f"None, ..., a list or an array of integers"
            )
        axis += 1
    return found


def slice_range(item: slice, size: int) -> range:
    """Return the positions that a slice takes; a single one makes a window of step 1, wherever the slice was going."""
    found = range(*item.indices(size))
    return range(found.start, found.start + 1) if len(found) == 1 else found


def _index_array(item: Any, size: int, axis: int, like: NDArray) -> NDArray:
    """Return an index array on the context of `beside`, its bounds checked when its values are at hand."""
    if isinstance(item, NDArray):
        if item._value.dtype.kind not in "iu":
            item = invoke_unary(OPS["Cast"].call(dtype="int32"), item)
        return item
    values = np.asarray(item)
    if values.dtype.kind not in "biuf":
        raise ArgumentError(f"index array of {values.dtype} along axis {axis}: expected integers")
    values = values.astype(np.int64)
    if values.size and not (-size <= values.min() and values.max() < size):
        bad = values[(values < -size) | (values >= size)].flat[0]
        raise RangeError(f"index {bad} is out of bounds for axis {axis} with size {size}")
    return array(values, ctx=like.context, dtype="int32" if size < 2**31 else "int64")


def _slice_call(items: list[Any], shape: tuple[int, ...]) -> Any:
    """Return the `_basic_slice` call of ints and ranges."""
    begin, end, step, squeeze = [], [], [], []
    for axis, item in enumerate(i for i in items if i is not None):
        if isinstance(item, range):
            begin.append(item.start)
            end.append(item.stop)
            step.append(item.step)
        else:
            begin.append(item)
            end.append(item + 1)
            step.append(1)
            squeeze.append(axis)
    return OPS["_basic_slice"].call(begin=tuple(begin), end=tuple(end), step=tuple(step), squeeze=tuple(squeeze))


def is_contiguous_window(items: list[Any], shape: tuple[int, ...]) -> bool:
    """True if the window is one run of memory: length-1 axes, then one stretch, then whole axes."""
    open_run = False
    for item, size in zip((i for i in items if i is not None), shape, strict=True):
        n = len(item) if isinstance(item, range) else 1
        if n == 0 or (isinstance(item, range) and n > 1 and item.step != 1):
            return False
        if open_run and n != size:
            return False
        open_run = open_run or n > 1
    return True


def _with_new_axes(items: list[Any], shown: NDArray) -> tuple[int, ...] | None:
    """Return the shape with the axes that `None` items add, None if there are none."""
    if None not in items:
        return None
    lengths = iter(shown.shape if any(isinstance(i, range) for i in items) else ())
    return tuple(1 if i is None else next(lengths) for i in items if i is None or isinstance(i, range))


def getitem(self: NDArray, key: Any) -> NDArray:
    """Return `self[key]`.

    Integers, contiguous slices, `None` and `...` give views (writes go through to the array); other slices and index
    arrays (lists, NumPy arrays, NDArrays; floats are cut to integers) give copies. An index of every axis gives shape
    (1,).
    """
    items = normalize_index(key, self.shape)
    if not items:
        return make_view(self, OPS["Reshape"].call(shape=self.shape), self.shape) if self.shape else self.copy()
    if any(i is not None and not isinstance(i, (int, range)) for i in items):
        return _advanced_get(self, items)
    for axis, item in enumerate(i for i in items if i is not None):
        if isinstance(item, range) and len(item) == 0 and self.shape[axis]:
            if item.start > item.stop:
                raise RangeError(
                    f"slice of axis {axis} from {item.start} to {item.stop} is empty; begin must be below end"
                )
    lens = _slice_call(items, self.shape)
    if not is_contiguous_window(items, self.shape):
        shown = copy_window(lens, self)
        wide = _with_new_axes(items, shown)
        return shown if wide is None else invoke_unary(OPS["Reshape"].call(shape=wide), shown)
    shown = make_view(self, lens, tuple(len(i) for i in items if isinstance(i, range)) or (1,))
    wide = _with_new_axes(items, shown)
    return shown if wide is None else make_view(shown, OPS["Reshape"].call(shape=wide), wide)


def advanced_index_spec(
    a: NDArray, items: list[Any], index_array: Callable[[Any, int, int, NDArray], NDArray]
) -> tuple[str, list[NDArray]]:
    """Return what the operators of index arrays take: the kinds of the items, and the index arrays.

    Args:
        a: the array that is indexed.
        items: one for each axis, and None for new axes.
        index_array: makes an array of an item, the size and number of its axis, and `a`.
    """
    words: list[Any] = []
    arrays: list[NDArray] = []
    axis = 0
    for item in items:
        if item is None or isinstance(item, (int, range)):
            words.append(item)
        else:
            words.append("a")
            arrays.append(index_array(item, a.shape[axis], axis, a))
        axis += item is not None
    return to_spec(words), arrays


def _advanced_get(a: NDArray, items: list[Any]) -> NDArray:
    spec, arrays = advanced_index_spec(a, items, _index_array)
    call = OPS["_advanced_get"].call(spec=spec, num_args=1 + len(arrays))
    outs = invoke(call, (a, *arrays))
    if any(isinstance(item, NDArray) for item in items):
        value_checks.record_check(value_checks.check_advanced_index, call, (a, *arrays), outs)
    return outs[0]


def setitem(self: NDArray, key: Any, value: Any) -> None:
    """Write `value` (an array broadcastable to the window, or a number) to `self[key]`, cast to the dtype of the array.

    Raises:
        MXNetError: `a` is part of a recorded graph. ArgumentError: the shapes do not broadcast.
    """
    check_writable(self, "assignment x[...] =")
    items = normalize_index(key, self.shape)
    is_number = isinstance(value, (numbers.Number, np.number, np.bool_))
    if not is_number and not isinstance(value, NDArray):
        value = _as_value(self, value)
        is_number = not isinstance(value, NDArray)
    if any(i is not None and not isinstance(i, (int, range)) for i in items):
        spec, arrays = advanced_index_spec(self, items, _index_array)
        given = array(np.full((1,), value), ctx=self.context, dtype=self.dtype) if is_number else value
        call = OPS["_advanced_set"].call(spec=spec, num_args=2 + len(arrays))
        _overwrite_all(self, invoke(call, (self, given, *arrays))[0])
        return
    is_full = all(isinstance(i, range) and len(i) == n and i.step == 1 for i, n in zip(items, self.shape, strict=False))
    if is_full and len(items) == len(self.shape):
        if is_number and not local.recording and not engine.naive:
            _overwrite_all(
                self, array_from_numpy(np.full(self.shape, value).astype(self._value.dtype), self._value.ctx)
            )
        elif is_number:
            fill = OPS["_full"].call(shape=self.shape, value=float(value), dtype=self._value.dtype.name)
            _overwrite_all(self, invoke_nullary(fill, self._value.ctx)[0])
        else:
            _overwrite_all(self, _broadcast(self, value))
        return
    if is_number:
        value = array_from_numpy(constant(float(value), self._value.dtype), self._value.ctx)
    elif value._value.ctx is not self._value.ctx:
        value = value.as_in_context(self.context)
    _overwrite_all(self, write_view_op(_slice_call(items, self.shape), self, value))


def _as_value(a: NDArray, value: Any) -> Any:
    if isinstance(value, (str, bytes, dict, set, type(None))):
        raise ArgumentTypeError(
            f"assignment: value of type {type(value).__name__}: expected a number, an NDArray or an array-like"
        )
    return array(value, ctx=a.context, dtype=a.dtype)


def _broadcast(a: NDArray, value: Any) -> NDArray:
    """Return `value` as an array of the shape, dtype and context of `a`."""
    if value._value.ctx is not a._value.ctx:
        value = value.as_in_context(a.context)
    if value._value.dtype != a._value.dtype:
        value = value.astype(a.dtype)
    if value.shape == a.shape:
        return value
    try:
        fits = np.broadcast_shapes(value.shape, a.shape) == a.shape
    except ValueError:
        fits = False
    extra = value.ndim - a.ndim
    if not fits and not (extra > 0 and value.shape[:extra] == (1,) * extra):
        raise ArgumentError(f"assignment: a value of shape {value.shape} cannot be broadcast to shape {a.shape}")
    call = OPS["_basic_slice_assign"].call(begin=(0,) * a.ndim, end=a.shape, step=(1,) * a.ndim, squeeze=())
    return invoke_binary(call, a, value)


def _overwrite_all(a: NDArray, value: NDArray) -> None:
    """Make `a` hold `value`, through its root if it is a view."""
    x = a._meta
    if x is not None and x.view_base is not None:
        write_view(x.view_base, x.view_ops, value)
    else:
        assign(a, value, "assignment")


def iterate(a: NDArray) -> Iterator[NDArray]:
    """Yield `a[0]`, `a[1]`, …"""
    for i in range(len(a)):
        yield a[i]


for _name, _method in {"__getitem__": getitem, "__setitem__": setitem, "__iter__": iterate}.items():
    setattr(NDArray, _name, _method)
