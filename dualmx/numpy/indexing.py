"""`x[...]` by NumPy's rules: 0-d results, empty windows, bool masks; contiguous windows are views."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from typing import Any

import numpy as onp

from ..core.errors import ArgumentError, ArgumentTypeError, RangeError
from ..ndarray import indexing as classic
from ..ndarray.handle import assign, check_writable, invoke, invoke_unary, write_view_op
from ..ndarray.interop import array_from_numpy
from ..ndarray.ndarray import NDArray
from ..ndarray.view import copy_window, make_view
from ..op.registry import OPS
from .call import array_from_values
from .np_ndarray import as_np_class, ndarray, second_handle

_INTEGER = (numbers.Integral, onp.integer)


def _is_bool(item: Any) -> bool:
    return isinstance(item, (bool, onp.bool_))


def _is_false(key: Any) -> bool:
    """True for a mask of no axis that lets nothing through."""
    if isinstance(key, (NDArray, onp.ndarray)) and not key.shape and key.dtype == bool:
        return not key.item()
    return _is_bool(key) and not key


def _array_like(item: Any) -> bool:
    return isinstance(item, (list, onp.ndarray, NDArray, range, tuple)) or type(item).__module__.startswith("jax")


def _values(item: Any) -> Any:
    """Return an index array as NumPy values, or the array itself if it is one of integers."""
    if isinstance(item, NDArray):
        if item.aval.dtype.kind == "b":
            return item.asnumpy()
        if item.aval.dtype.kind == "f":
            return item.astype("int64")
        return item
    values = onp.asarray([v.asnumpy() if isinstance(v, NDArray) else v for v in item]
                         if isinstance(item, (list, tuple)) else item)  # fmt: skip
    if not values.size and values.dtype.kind == "f":
        values = values.astype("int64")
    if values.dtype.kind == "f":
        # MXNet's index lists may hold the floats that its arrays are by default.
        values = values.astype("int64")
    if values.dtype.kind not in "biu":
        raise RangeError(f"index array of {values.dtype}: expected integers or bools")
    return values


def _plain(item: Any) -> Any:
    """Return an item of an index as None, an ellipsis, an integer, a slice or an array."""
    if _array_like(item):
        item = _values(item)
    if isinstance(item, onp.ndarray) and item.ndim == 0 and item.dtype == bool:
        item = bool(item)
    if item is True or item is onp.True_:
        return None  # a mask of no axis, which adds one
    if _is_bool(item):
        raise ArgumentError("False among other indices is not supported: use a mask array, or an empty slice")
    if isinstance(item, onp.ndarray) and item.ndim == 0 and item.dtype.kind in "iu":
        return int(item.item())
    return item


def _axes_indexed(item: Any) -> int:
    """How many axes an item indexes."""
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if isinstance(item, onp.ndarray) and item.dtype == bool else 1


def normalize_index(key: Any, shape: tuple[int, ...]) -> list[Any]:
    """Return one item per axis, plus None for new axes: an int, a `range`, or an index array of integers.

    A bool mask of k axes becomes the k index arrays of its True elements.

    Raises:
        RangeError: too many items, an integer out of bounds, or a mask of another shape.
    """
    items = [_plain(i) for i in (key if isinstance(key, tuple) else (key,))]
    used = sum(_axes_indexed(i) for i in items)
    if used > len(shape):
        raise RangeError(f"too many indices for array: array is {len(shape)}-dimensional, but {used} were indexed")
    classic.expand_ellipsis(items, len(shape) - used)
    found: list[Any] = []
    axis = 0
    for item in items:
        if item is None:
            found.append(None)
            continue
        if isinstance(item, onp.ndarray) and item.dtype == bool:
            if item.shape != shape[axis : axis + item.ndim]:
                raise RangeError(
                    f"boolean index did not match indexed array along dimension {axis}: shape {item.shape} for "
                    f"{shape[axis : axis + item.ndim]}"
                )
            found.extend(onp.nonzero(item))
            axis += item.ndim
            continue
        size = shape[axis]
        if isinstance(item, _INTEGER):
            position = int(item)
            if not -size <= position < size:
                raise RangeError(f"index {position} is out of bounds for axis {axis} with size {size}")
            found.append(position % size)
        elif isinstance(item, slice):
            try:
                found.append(classic.slice_range(item, size))
            except TypeError as e:
                raise ArgumentTypeError(f"slice {item} along axis {axis}: {e}") from None
            except ValueError as e:
                raise ArgumentError(f"slice {item} along axis {axis}: {e}") from None
        elif isinstance(item, (onp.ndarray, NDArray)):
            found.append(item)
        else:
            raise ArgumentError(
                f"index {item!r} of type {type(item).__name__} along axis {axis}: only integers, slices, None, ..., "
                f"and integer or bool arrays are indices"
            )
        axis += 1
    return found


def _is_basic(items: list[Any]) -> bool:
    return all(i is None or isinstance(i, (int, range)) for i in items)


def _lens(items: list[Any]) -> Any:
    begin, end, step, squeeze = [], [], [], []
    for axis, item in enumerate(i for i in items if i is not None):
        span = item if isinstance(item, range) else range(item, item + 1)
        begin.append(span.start)
        end.append(span.stop)
        step.append(span.step)
        if not isinstance(item, range):
            squeeze.append(axis)
    return OPS["_basic_slice"].call(
        begin=tuple(begin), end=tuple(end), step=tuple(step), squeeze=tuple(squeeze), zero_dim=True
    )


def _with_new_axes(items: list[Any], shown: NDArray) -> tuple[int, ...] | None:
    """Return the shape with the axes that None items add, None if there are none."""
    if None not in items:
        return None
    lengths = iter(shown.shape)
    return tuple(1 if i is None else next(lengths) for i in items if not isinstance(i, int))


def getitem(self: ndarray, key: Any) -> ndarray:
    """Return `self[key]`: a view for integers, contiguous slices, None and `...`, a copy otherwise."""
    if _is_false(key):
        return self[None][:0]
    items = normalize_index(key, self.shape)
    if not items:
        return second_handle(self, ndarray)
    if not _is_basic(items):
        spec, arrays = _spec(self, items)
        found = as_np_class(invoke(OPS["_advanced_get"].call(spec=spec, num_args=1 + len(arrays)), (self, *arrays))[0])
        # The operator gives (1,) where NumPy gives ().
        return _zero_dim(found) if found.shape == (1,) and _index_arrays_shape(items, arrays) == () else found
    lens = _lens(items)
    if not classic.is_contiguous_window(items, self.shape):
        shown = as_np_class(copy_window(lens, self))
        wide = _with_new_axes(items, shown)
        return shown if wide is None else as_np_class(invoke_unary(OPS["_np_reshape"].call(newshape=wide), shown))
    shown = as_np_class(make_view(self, lens, tuple(len(i) for i in items if isinstance(i, range))))
    wide = _with_new_axes(items, shown)
    return shown if wide is None else as_np_class(make_view(shown, OPS["_np_reshape"].call(newshape=wide), wide))


def _zero_dim(a: ndarray) -> ndarray:
    return as_np_class(invoke_unary(OPS["_np_reshape"].call(newshape=()), a))


def _index_arrays_shape(items: list[Any], arrays: list[NDArray]) -> tuple[int, ...] | None:
    """Return the shape of an indexed result that has only the axes of the index arrays, None if there are more."""
    if any(i is None or isinstance(i, range) for i in items):
        return None
    return onp.broadcast_shapes(*(x.shape for x in arrays))


def _spec(a: ndarray, items: list[Any]) -> tuple[str, list[NDArray]]:
    return classic.advanced_index_spec(a, items, _index_array)


def _index_array(item: Any, size: int, axis: int, like: NDArray) -> NDArray:
    if isinstance(item, NDArray):
        return item
    if item.size and not (-size <= item.min() and item.max() < size):
        bad = item[(item < -size) | (item >= size)].flat[0]
        raise RangeError(f"index {bad} is out of bounds for axis {axis} with size {size}")
    return array_from_numpy(item.astype("int64"), like.context)


def _value(a: ndarray, value: Any) -> NDArray:
    """Return what is assigned as an array on the context of `a`."""
    if isinstance(value, NDArray):
        return value if value.context is a.context else value.as_in_context(a.context)
    try:
        values = onp.asarray(value)
    except ValueError as e:
        raise ArgumentError(f"assignment: value is not a regular array: {e}") from None
    if values.dtype.kind not in "biufV":
        raise ArgumentTypeError(f"assignment: value of type {type(value).__name__}: expected numbers")
    if values.dtype.kind in "iuf" and a.aval.dtype.kind in "iuf":
        with onp.errstate(invalid="ignore", over="ignore"):
            values = values.astype(a.aval.dtype)
    return array_from_values(values, a.context)


def _broadcasts_to(value: NDArray, shape: tuple[int, ...]) -> None:
    lengths = value.shape
    while len(lengths) > len(shape) and lengths[0] == 1:
        lengths = lengths[1:]
    try:
        same = onp.broadcast_shapes(lengths, shape) == shape
    except ValueError:
        same = False
    if not same:
        raise ArgumentError(f"could not broadcast input array from shape {value.shape} into shape {shape}")


def setitem(self: ndarray, key: Any, value: Any) -> None:
    """Write `value`, an array-like that broadcasts to the window, to `self[key]`, cast to the dtype of `self`.

    Raises:
        MXNetError: `self` is part of a recorded graph. ArgumentError: the shapes do not broadcast.
    """
    check_writable(self, "assignment x[...] =")
    if isinstance(key, ndarray) and key.aval.dtype.kind == "b" and key.shape == self.shape and _single(value):
        # One value for a whole mask needs no positions, so nothing is computed here.
        fill = _value(self, value)
        assign(self, invoke(OPS["_npi_where"].call(), (key, _broadcast_value(self, fill), self))[0], "assignment")
        return
    if _is_false(key):
        return
    items = normalize_index(key, self.shape)
    given = _value(self, value)
    if not _is_basic(items):
        spec, arrays = _spec(self, items)
        call = OPS["_advanced_set"].call(spec=spec, num_args=2 + len(arrays))
        assign(self, invoke(call, (self, given, *arrays))[0], "assignment")
        return
    if None in items:
        _broadcasts_to(given, _target_shape(items))
        given = _without_new_axes(given, items)
        items = [i for i in items if i is not None]
    window = tuple(len(i) for i in items if isinstance(i, range))
    _broadcasts_to(given, window)
    if not self.size or 0 in window:
        return
    if window == self.shape and all(i.step > 0 for i in items):
        assign(self, _broadcast_value(self, given), "assignment")
        return
    assign(self, write_view_op(_lens(items), self, given), "assignment")


def _single(value: Any) -> bool:
    return isinstance(value, (int, float, onp.number, onp.bool_)) or isinstance(value, NDArray) and value.size == 1


def _target_shape(items: list[Any]) -> tuple[int, ...]:
    return tuple(1 if i is None else len(i) for i in items if i is None or isinstance(i, range))


def _without_new_axes(value: NDArray, items: list[Any]) -> NDArray:
    """Drop the axes of a value that stand where the window has new axes."""
    shape = _target_shape(items)
    added = [k for k, i in enumerate(i for i in items if i is None or isinstance(i, range)) if i is None]
    extra = max(value.ndim - len(shape), 0)
    lengths = value.shape[extra:]
    ahead = len(shape) - len(lengths)
    kept = tuple(n for k, n in enumerate(lengths) if k + ahead not in added)
    return as_np_class(invoke_unary(OPS["_np_reshape"].call(newshape=kept), value))


def _broadcast_value(a: ndarray, value: NDArray) -> Any:
    """Return `value` broadcast to the shape of `a`, in its dtype."""
    lengths = value.shape
    while len(lengths) > a.ndim:
        lengths = lengths[1:]
    if lengths != value.shape:
        value = invoke_unary(OPS["_np_reshape"].call(newshape=lengths), value)
    if lengths != a.shape:
        value = invoke_unary(OPS["_npi_broadcast_to"].call(shape=a.shape), value)
    return value if value.aval.dtype == a.aval.dtype else invoke_unary(OPS["Cast"].call(dtype=a.aval.dtype.name), value)


def iterate(a: ndarray) -> Iterator[ndarray]:
    """Yield `a[0]`, `a[1]`, …; of a 0-d array nothing, as in MXNet."""
    for i in range(len(a) if a.ndim else 0):
        yield a[i]


def contains(a: ndarray, value: Any) -> bool:
    """Return whether some element equals `value`."""
    return bool((a == value).any())


METHODS = {"__getitem__": getitem, "__setitem__": setitem, "__iter__": iterate, "__contains__": contains}
for _name, _method in METHODS.items():
    setattr(ndarray, _name, _method)
