"""Search, sort, count, insert and delete elements; and the operators of `mx.npx` without a classic form."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.dtypes import is_float
from ...core.errors import ArgumentError
from ..registry import op
from ..schema import ABSENT, Count, OptionalTensor, Shape, Tensor, UntypedTensor, When
from ..shape_rules import convert, one_axis
from ..traits import CONSTANT, Traits
from .binary import common
from .index import as_index
from .linalg import pinv
from .reduce import OneAxis
from .shape import _split_v2


def _broadcast_all(name: str, *arrays: jax.Array) -> list[jax.Array]:
    try:
        return jnp.broadcast_arrays(*arrays)
    except ValueError:
        raise ArgumentError(f"{name}: shapes {[a.shape for a in arrays]} do not broadcast") from None


@op()
def _npi_where(condition: UntypedTensor, x: UntypedTensor, y: UntypedTensor) -> jax.Array:
    """Choose `x` where `condition` is not 0, else `y`; the shapes broadcast, mixed dtypes become a common one."""
    dtype = common(x.dtype, y.dtype)
    chosen, x, y = _broadcast_all("_npi_where", condition != 0, x.astype(dtype), y.astype(dtype))
    return jnp.where(chosen, x, y)


@op()
def _npi_where_lscalar(condition: UntypedTensor, x: Tensor, *, scalar: float = 0.0) -> jax.Array:
    """Choose `scalar` where `condition` is not 0, else `x`, in the dtype of `x`."""
    chosen, x = _broadcast_all("_npi_where_lscalar", condition != 0, x)
    return jnp.where(chosen, convert(jnp.asarray(scalar, jnp.float64), x.dtype), x)


@op()
def _npi_where_rscalar(condition: UntypedTensor, y: Tensor, *, scalar: float = 0.0) -> jax.Array:
    """Choose `y` where `condition` is not 0, else `scalar`, in the dtype of `y`."""
    chosen, y = _broadcast_all("_npi_where_rscalar", condition != 0, y)
    return jnp.where(chosen, y, convert(jnp.asarray(scalar, jnp.float64), y.dtype))


@op()
def _npi_where_scalar2(condition: UntypedTensor, *, x: float = 0.0, y: float = 0.0) -> jax.Array:
    """Choose `x` where `condition` is not 0, else `y`, as float32."""
    return jnp.where(condition != 0, jnp.float32(x), jnp.float32(y))


@op(dynamic=True)
def _npx_nonzero(x: UntypedTensor) -> jax.Array:
    """Coordinates (n, ndim), int64, of the elements that are not 0, in order; computed at once.

    A 0-d array counts as one of shape (1,).
    """
    return jnp.stack(jnp.nonzero(jnp.atleast_1d(x)), -1).astype(jnp.int64)


def _unique_count(p: Any) -> int:
    return 1 + p.return_index + p.return_inverse + p.return_counts


@op(dynamic=True, outputs=_unique_count)
def _npi_unique(
    data: Tensor,
    *,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: OneAxis = None,
) -> tuple[jax.Array, ...]:
    """Sorted different elements (or slices along `axis`), and on demand, as int64: where each occurs first, which one
    every element is, how often each occurs; computed at once."""
    found = np.unique(np.asarray(data), return_index, return_inverse, return_counts, axis)
    if not isinstance(found, tuple):
        return (jnp.asarray(found),)
    first, *rest = found
    return (jnp.asarray(first), *(jnp.asarray(r.reshape(-1).astype(np.int64)) for r in rest))


@op(dynamic=True)
def _npi_bincount(
    data: UntypedTensor,
    weights: Annotated[UntypedTensor, When("has_weights", True)] = ABSENT,
    *,
    minlength: Count = 0,
    has_weights: bool = False,
) -> jax.Array:
    """How often each whole number from 0 on occurs in a vector, or the sum of its weights; computed at once.

    data: (n,) of integers; weights: (n,). The result has `max(data) + 1` elements, at least `minlength`, in the dtype
    of the weights or else of the data.
    """
    numbers = np.asarray(data)
    if numbers.ndim != 1 or numbers.dtype.kind not in "biu":
        raise ArgumentError(
            f"_npi_bincount: data is {numbers.dtype}{list(numbers.shape)}: expected a vector of integers"
        )
    if numbers.size and numbers.min() < 0:
        raise ArgumentError(f"_npi_bincount: data holds {numbers.min()}: expected numbers of 0 or more")
    given = None if weights is None else np.asarray(weights)
    if given is not None and given.shape != numbers.shape:
        raise ArgumentError(f"_npi_bincount: weights has shape {given.shape}: expected {numbers.shape}")
    dtype = numbers.dtype if given is None else given.dtype
    return jnp.asarray(np.bincount(numbers, given, minlength).astype(dtype))


@op()
def _npi_diff(a: Tensor, *, n: Count = 1, axis: int = -1) -> jax.Array:
    """Differences of neighbours along `axis`, `n` times; the axis becomes `n` shorter."""
    axis = one_axis(axis, a.ndim)
    for _ in range(n):
        low = jax.lax.slice_in_dim(a, 0, max(a.shape[axis] - 1, 0), axis=axis)
        high = jax.lax.slice_in_dim(a, min(1, a.shape[axis]), None, axis=axis)
        a = high != low if a.dtype == jnp.bool_ else high - low
    return a


@op()
def _npi_ediff1d(
    input1: Tensor,
    input2: Annotated[UntypedTensor, When("to_begin_arr_given", True)] = ABSENT,
    input3: Annotated[UntypedTensor, When("to_end_arr_given", True)] = ABSENT,
    *,
    to_begin_arr_given: bool = False,
    to_end_arr_given: bool = False,
    to_begin_scalar: float | None = None,
    to_end_scalar: float | None = None,
) -> jax.Array:
    """Differences of neighbours in the flattened array, with elements before and after them; dtype of the array."""
    flat = input1.reshape(-1)
    parts = [flat[1:] - flat[:-1]]
    for given, number, at in ((input2, to_begin_scalar, 0), (input3, to_end_scalar, len(parts))):
        if given is not None:
            parts.insert(at and len(parts), given.reshape(-1).astype(flat.dtype))
        elif number is not None:
            parts.insert(at and len(parts), jnp.full((1,), number).astype(flat.dtype))
    return jnp.concatenate(parts)


@op()
def _npi_polyval(p: UntypedTensor, x: UntypedTensor) -> jax.Array:
    """Value at `x` of the polynomial with coefficients `p`, that of the highest power first."""
    if p.ndim != 1:
        raise ArgumentError(f"_npi_polyval: p has shape {p.shape}: expected a vector of coefficients")
    dtype = common(p.dtype, x.dtype)
    value = jnp.zeros(x.shape, dtype)
    for k in range(p.shape[0]):
        value = value * x.astype(dtype) + p[k].astype(dtype)
    return value


@op()
def _np_take_along_axis(arr: Tensor, indices: UntypedTensor, *, axis: int = 0) -> jax.Array:
    """Read elements along `axis` at positions that differ from slice to slice; negative ones count from the end."""
    if indices.ndim != arr.ndim:
        raise ArgumentError(f"_np_take_along_axis: shapes {arr.shape} and {indices.shape}: expected equally many axes")
    return jnp.take_along_axis(arr, as_index(indices), one_axis(axis, arr.ndim))


@op()
def _npi_interp(
    x: UntypedTensor, xp: UntypedTensor, fp: UntypedTensor, *, left: float | None = None, right: float | None = None
) -> jax.Array:
    """Piecewise linear function through the points (`xp`, `fp`) at `x`, in float64; xp ascends."""
    wide = [a.astype(jnp.float64) for a in (x, xp, fp)]
    if xp.ndim != 1 or xp.shape != fp.shape or not xp.shape[0]:
        raise ArgumentError(f"_npi_interp: xp has shape {xp.shape}, fp {fp.shape}: expected equal vectors")
    return jnp.interp(*wide, left=left, right=right)


@op()
def _npi_positions(data: Tensor, *, at: Shape, axis: int = 0) -> jax.Array:
    """Slices of `data` along `axis` at fixed positions; a position of -1 gives zeros."""
    axis = one_axis(axis, data.ndim)
    index = np.asarray(at, np.int64)
    found = jnp.take(data, np.maximum(index, 0), axis=axis)
    if not (index < 0).any():
        return found
    hole = (index < 0).reshape([-1 if i == axis else 1 for i in range(data.ndim)])
    return jnp.where(hole, jnp.zeros((), data.dtype), found)


@op(dynamic=True, traits=Traits(is_mask_selection=True))
def _contrib_boolean_mask(data: Tensor, index: UntypedTensor, *, axis: int = 0) -> jax.Array:
    """Select the slices of `data` along `axis` whose element of `index` is not 0; computed at once.

    Shapes: data (…, n, …), index (n,) of any dtype. Gradients go to the selected slices of `data`.
    """
    return jnp.take(data, np.flatnonzero(np.asarray(index)), axis=one_axis(axis, data.ndim))


IndexType = Literal["float32", "float16", "float64", "int32", "int64", "uint8"]


def _order(data: jax.Array, axis: int, k: int, ascending: bool) -> jax.Array:
    """Positions (int32) of the first `k` elements in order along `axis`; equal elements keep their order."""
    data = lax.stop_gradient(data)
    if k == data.shape[axis]:
        return jnp.argsort(data, axis, stable=True, descending=not ascending).astype(jnp.int32)
    if data.dtype == np.bool_:
        data = data.astype(jnp.uint8)
    if ascending:
        data = -data if is_float(np.dtype(data.dtype)) else ~data
    return jnp.moveaxis(lax.top_k(jnp.moveaxis(data, axis, -1), k)[1], -1, axis).astype(jnp.int32)


def _flatten_unless_axis(data: jax.Array, axis: int | None) -> tuple[jax.Array, int]:
    return (data.reshape(-1), 0) if axis is None else (data, one_axis(axis, data.ndim))


def _pair(p: Any) -> int:
    return 2 if p.ret_typ == "both" else 1


@op(aliases=("_npx_topk",), outputs=_pair, method="topk")
def topk(
    data: Tensor,
    *,
    axis: int | None = -1,
    k: int = 1,
    ret_typ: Literal["indices", "value", "both", "mask"] = "indices",
    is_ascend: bool = False,
    dtype: IndexType = "float32",
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """Find the `k` largest (`is_ascend`: smallest) elements along `axis`, of the flattened array without `axis`.

    `ret_typ`: `indices` their positions as `dtype`, `value` the elements, `both` values then positions, `mask` an
    array like `data` with 1 at the found elements and 0 elsewhere. Shapes: the length of `axis` becomes `k`; without
    axis (k,). `k` below 1 means all. Of equal elements the first come first.
    """
    source, at = _flatten_unless_axis(data, axis)
    n = source.shape[at]
    if k > n:
        raise ArgumentError(f"k={k}: expected at most {n}, the length of axis {axis}")
    found = _order(source, at, k if k >= 1 else n, is_ascend)
    if ret_typ == "indices":
        return found.astype(dtype)
    if ret_typ == "mask":
        zeros = jnp.zeros(source.shape, data.dtype)
        return jnp.put_along_axis(zeros, found, jnp.ones((), data.dtype), at, inplace=False).reshape(data.shape)
    values = jnp.take_along_axis(source, found, at)
    return values if ret_typ == "value" else (values, found.astype(dtype))


@op(aliases=("_npi_sort",), output_names=("output0",), method="sort")
def sort(data: Tensor, *, axis: int | None = -1, is_ascend: bool = True) -> jax.Array:
    """Sort along `axis`, or the flattened array without `axis`."""
    source, at = _flatten_unless_axis(data, axis)
    if is_ascend:
        return jnp.sort(source, at, stable=True)
    # Reversed twice, so that the gradients of equal elements keep their order.
    return jnp.flip(jnp.sort(jnp.flip(source, at), at, stable=True), at)


@op(aliases=("_npi_argsort",), traits=CONSTANT, method="argsort")
def argsort(data: Tensor, *, axis: int | None = -1, is_ascend: bool = True, dtype: IndexType = "float32") -> jax.Array:
    """Positions, as `dtype`, that sort along `axis` (of the flattened array without `axis`); equal elements keep
    their order."""
    source, at = _flatten_unless_axis(data, axis)
    return _order(source, at, source.shape[at], is_ascend).astype(dtype)


OptInt = int | None


def _at(name: str, n: int, start: OptInt, stop: OptInt, step: OptInt, int_ind: OptInt, end: int) -> np.ndarray:
    """The positions that an int or a slice names along an axis of length `n`."""
    if int_ind is None:
        return np.arange(n)[slice(start, stop, step)]
    if not -n <= int_ind < end:
        raise ArgumentError(f"{name}: int_ind={int_ind}: expected a position of an axis of length {n}")
    return np.asarray(int_ind % n if int_ind < 0 else int_ind)


def _flatten_for_edit(arr: jax.Array, axis: OptInt) -> tuple[jax.Array, int]:
    return (arr.reshape(-1), 0) if axis is None else (arr, one_axis(axis, arr.ndim))


@op(dynamic=True)
def _npi_delete(
    arr: Tensor, obj: Annotated[UntypedTensor, OptionalTensor] = ABSENT, *, start: OptInt = None, stop: OptInt = None,
    step: OptInt = None, int_ind: OptInt = None, axis: OptInt = None,
) -> jax.Array:  # fmt: skip
    """Leave out the positions `obj`, a slice, or one position along `axis`, or of the flattened array; at once."""
    arr, axis = _flatten_for_edit(arr, axis)
    n = arr.shape[axis]
    gone = _at("_npi_delete", n, start, stop, step, int_ind, n) if obj is None else np.asarray(obj)
    gone = gone if gone.dtype == bool else gone.astype(np.int64)
    try:
        kept = np.delete(np.arange(n), gone)
    except (IndexError, ValueError) as e:
        raise ArgumentError(f"_npi_delete: {e}") from None
    return jnp.take(arr, kept, axis=axis)


def _inserted(name: str, arr: jax.Array, at: np.ndarray, values: jax.Array, axis: int) -> jax.Array:
    try:
        return jnp.insert(arr, at, values.astype(arr.dtype), axis=axis)
    except (IndexError, ValueError) as e:
        raise ArgumentError(f"{name}: values {values.shape} into {arr.shape}: {e}") from None


def _insert(name: str, arr: jax.Array, values: jax.Array | None, val: float | None, axis: OptInt, **place: OptInt):
    arr, axis = _flatten_for_edit(arr, axis)
    if values is None and val is None:
        raise ArgumentError(f"{name}: val=None: expected a number, or an input with the values")
    given = jnp.asarray(val, arr.dtype) if values is None else values
    at = _at(name, arr.shape[axis], end=arr.shape[axis] + 1, **place)
    if at.ndim == 0 and given.ndim and given.ndim == arr.ndim - 1:
        given = jnp.expand_dims(given, axis)
        return _inserted(name, arr, at.reshape(1), given, axis)
    return _inserted(name, arr, at, given, axis)


@op()
def _npi_insert_scalar(
    arr: Tensor, values: Annotated[UntypedTensor, OptionalTensor] = ABSENT, *, val: float | None = None,
    start: OptInt = None, stop: OptInt = None, step: OptInt = None, int_ind: OptInt = None, axis: OptInt = None,
) -> jax.Array:  # fmt: skip
    """Insert `values`, or the number `val`, before position `int_ind` along `axis`, or of the flattened array."""
    if int_ind is None:
        raise ArgumentError("_npi_insert_scalar: int_ind=None: expected a position")
    place = {"start": start, "stop": stop, "step": step, "int_ind": int_ind}
    return _insert("_npi_insert_scalar", arr, values, val, axis, **place)


@op()
def _npi_insert_slice(
    arr: Tensor, values: Annotated[UntypedTensor, OptionalTensor] = ABSENT, *, val: float | None = None,
    start: OptInt = None, stop: OptInt = None, step: OptInt = None, int_ind: OptInt = None, axis: OptInt = None,
) -> jax.Array:  # fmt: skip
    """Insert `values`, or the number `val`, before each position of a slice along `axis`, or of the flattened array."""
    place = {"start": start, "stop": stop, "step": step, "int_ind": int_ind}
    return _insert("_npi_insert_slice", arr, values, val, axis, **place)


@op(dynamic=True)
def _npi_insert_tensor(
    arr: Tensor, values: UntypedTensor, obj: Annotated[UntypedTensor, OptionalTensor] = ABSENT, *,
    val: float | None = None, start: OptInt = None, stop: OptInt = None, step: OptInt = None, int_ind: OptInt = None,
    axis: OptInt = None,
) -> jax.Array:  # fmt: skip
    """Insert `values` before the positions `obj` along `axis`, or of the flattened array; computed at once.

    With the number `val` there are two inputs only: the array and `obj`.
    """
    places = values if obj is None else obj
    if obj is None and val is None:
        raise ArgumentError("_npi_insert_tensor: val=None: expected a number, or inputs arr, values, obj")
    arr, axis = _flatten_for_edit(arr, axis)
    given = jnp.asarray(val, arr.dtype) if obj is None else values
    return _inserted("_npi_insert_tensor", arr, np.asarray(places).astype(np.int64), given, axis)


def _mask(name: str, data: jax.Array, mask: jax.Array, start_axis: int) -> jax.Array:
    """The mask with one axis for each of `data`."""
    end = start_axis + mask.ndim
    if not 0 <= start_axis <= end <= data.ndim or data.shape[start_axis:end] != mask.shape:
        raise ArgumentError(f"{name}: mask {mask.shape} from axis {start_axis}: expected axes of data {data.shape}")
    return (mask != 0).reshape((1,) * start_axis + mask.shape + (1,) * (data.ndim - end))


@op()
def _npi_boolean_mask_assign_scalar(
    data: Tensor, mask: UntypedTensor, *, value: float = 0.0, start_axis: int = 0
) -> jax.Array:
    """Put a number where `mask`, which lies along the axes of `data` from `start_axis` on, is not 0."""
    chosen = _mask("_npi_boolean_mask_assign_scalar", data, mask, start_axis)
    return jnp.where(chosen, jnp.asarray(value, data.dtype), data)


@op()
def _npi_boolean_mask_assign_tensor(
    data: Tensor, mask: UntypedTensor, value: UntypedTensor, *, start_axis: int = 0
) -> jax.Array:
    """Put values where `mask`, which lies along the axes of `data` from `start_axis` on, is not 0.

    value: (…, k, …) with one slice for each element that is set, or what broadcasts to that.
    """
    name = "_npi_boolean_mask_assign_tensor"
    chosen = _mask(name, data, mask, start_axis)
    value = value.astype(data.dtype)
    behind = data.ndim - start_axis - mask.ndim
    value = value.reshape((1,) * (start_axis + 1 + behind - value.ndim) + value.shape)
    place = jnp.clip(jnp.cumsum((mask != 0).reshape(-1)) - 1, 0, value.shape[start_axis] - 1)
    taken = jnp.take(value, place, axis=start_axis)
    taken = taken.reshape(taken.shape[:start_axis] + mask.shape + taken.shape[start_axis + 1 :])
    try:
        return jnp.where(chosen, jnp.broadcast_to(taken, data.shape), data)
    except ValueError:
        raise ArgumentError(f"{name}: value {value.shape} does not fit data {data.shape}, mask {mask.shape}") from None


@op()
def _npi_pinv_scalar_rcond(A: Tensor, *, rcond: float = 1e-15, hermitian: bool = False) -> jax.Array:
    """Pseudo-inverse (..., n, m) of matrices (..., m, n); see `_npi_pinv`."""
    if hermitian:
        raise ArgumentError("_npi_pinv_scalar_rcond: hermitian=True is not supported")
    return pinv.fn(A, jnp.asarray(rcond, jnp.float32))


@op()
def _npi_diag_indices_from(data: UntypedTensor) -> jax.Array:
    """Coordinates (ndim, n), int64, of the main diagonal of an array whose axes all have length n, at least two."""
    if data.ndim < 2 or len(set(data.shape)) != 1:
        raise ArgumentError(f"_npi_diag_indices_from: data {data.shape}: expected two or more axes of one length")
    return jnp.broadcast_to(jnp.arange(data.shape[0], dtype=jnp.int64), (data.ndim, data.shape[0]))


@op(traits=Traits(compares_values=True))
def _npi_share_memory(a: UntypedTensor, b: UntypedTensor) -> jax.Array:
    """Whether the two inputs are one value of the program; bool, ()."""
    return jnp.asarray(a is b)


@op()
def _np_resize(a: Tensor, *, new_shape: Shape) -> jax.Array:
    """The elements in their order, again and again or not all of them, in another shape; zeros if there are none."""
    return jnp.resize(a, new_shape)


def _split(name: str, axis: int, doc: str) -> None:
    def body(
        data: Tensor, *, indices: Shape = (), axis: int = axis, squeeze_axis: bool = False, sections: Count = 0
    ) -> tuple[jax.Array, ...]:
        # The second axis of a vector is its only one.
        at = 0 if name == "_npi_hsplit" and data.ndim == 1 else axis
        return _split_v2.fn(data, indices=indices, axis=at, squeeze_axis=squeeze_axis, sections=sections)

    body.__doc__ = doc
    op(name=name, outputs=lambda p: p.sections or len(p.indices))(body)


_split("_npi_hsplit", 1, "Split `data` along its second axis, or what `axis` says; see `_split_v2`.")
_split("_npi_dsplit", 2, "Split `data` along its third axis; see `_split_v2`.")


def reshaped_np(old: tuple[int, ...], codes: tuple[int, ...], reverse: bool = False) -> tuple[int, ...]:
    """Resolve the codes of `npx.reshape` for an array of shape `old`.

    A code of 0 or more is a length, -1 is inferred (once), -2 keeps the next axis, -3 drops it if its length is 1, -4
    keeps all remaining axes, -5 merges the next two, -6 splits the next one into the two lengths that follow. With
    `reverse` axes and codes are read from the right.

    Raises:
        ArgumentError: a code asks for an input axis that does not exist, or the number of elements changes.

    Example:
        >>> reshaped_np((2, 3, 4), (-5, -6, 2, -1))
        (6, 2, 2)
    """
    text = f"reshape: newshape={codes} of an array of shape {old}: "
    left, todo = list(old), list(codes)
    if reverse:
        left, todo = left[::-1], todo[::-1]
    new: list[int] = []

    def take() -> int:
        if not left:
            raise ArgumentError(f"{text}there is no axis left for a code")
        return left.pop(0)

    while todo:
        code = todo.pop(0)
        if code >= -1:
            new.append(code)
            if left:
                left.pop(0)
        elif code == -2:
            new.append(take())
        elif code == -3:
            if (length := take()) != 1:
                raise ArgumentError(f"{text}-3 drops an axis of length 1, not {length}")
        elif code == -4:
            new += left
            left = []
        elif code == -5:
            new.append(take() * take())
        elif code == -6:
            pair, todo = todo[:2], todo[2:]
            if len(pair) < 2 or min(pair) < -1:
                raise ArgumentError(f"{text}-6 needs two lengths, one of which may be -1")
            length = take()
            if pair.count(-1) == 1 and math.prod(n for n in pair if n != -1):
                pair = [length // math.prod(n for n in pair if n != -1) if n == -1 else n for n in pair]
            if math.prod(pair) != length:
                raise ArgumentError(f"{text}{tuple(pair)} do not multiply to the length {length}")
            new += pair
        else:
            raise ArgumentError(f"{text}unknown code {code}: expected -6 to -1, or a length")
    if new.count(-1) > 1:
        raise ArgumentError(f"{text}expected at most one -1")
    if -1 in new:
        rest, size = math.prod(n for n in new if n != -1), math.prod(old)
        if not rest or size % rest:
            raise ArgumentError(f"{text}-1 cannot be inferred from {size} elements")
        new[new.index(-1)] = size // rest
    if math.prod(new) != math.prod(old):
        raise ArgumentError(f"{text}{math.prod(new)} elements: expected {math.prod(old)}")
    return tuple(new[::-1] if reverse else new)


@op()
def _npx_reshape(a: Tensor, *, newshape: Shape, reverse: bool = False, order: str = "C") -> jax.Array:
    """Give `a` a new shape of as many elements; dtype of `a`.

    Codes: -1 infer; -2 keep the next axis; -3 drop it if its length is 1; -4 keep all remaining axes; -5 merge the next
    two; -6 split the next one into the two lengths that follow. `reverse` reads from the right; `order` is "C".
    """
    if order != "C":
        raise ArgumentError(f"reshape: order={order!r}: only 'C' is supported")
    return a.reshape(reshaped_np(a.shape, newshape, reverse))


@op()
def _npx_constraint_check(x: UntypedTensor, *, msg: str = "Constraint violated!") -> jax.Array:
    """True, of shape (), if no element of `x` is False; the function of `mx.npx` else raises `msg`."""
    return jnp.all(x != 0)
