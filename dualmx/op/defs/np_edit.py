"""NumPy's functions that insert, delete and overwrite elements, as nodes of graphs; and further NumPy nodes."""

from __future__ import annotations

from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np

from ...core.errors import ArgumentError
from ..axes import one_axis
from ..registry import op
from ..schema import ABSENT, Count, OptionalTensor, Shape, Tensor, UntypedTensor
from .joining import _split_v2
from .np_linalg import pinv

Whole = int | None


def _at(name: str, n: int, start: Whole, stop: Whole, step: Whole, int_ind: Whole, end: int) -> np.ndarray:
    """The positions that an int or a slice names along an axis of length `n`."""
    if int_ind is None:
        return np.arange(n)[slice(start, stop, step)]
    if not -n <= int_ind < end:
        raise ArgumentError(f"{name}: int_ind={int_ind}: expected a position of an axis of length {n}")
    return np.asarray(int_ind % n if int_ind < 0 else int_ind)


def _flat(arr: jax.Array, axis: Whole) -> tuple[jax.Array, int]:
    return (arr.reshape(-1), 0) if axis is None else (arr, one_axis(axis, arr.ndim))


@op(dynamic=True)
def _npi_delete(
    arr: Tensor, obj: Annotated[UntypedTensor, OptionalTensor] = ABSENT, *, start: Whole = None, stop: Whole = None,
    step: Whole = None, int_ind: Whole = None, axis: Whole = None,
) -> jax.Array:  # fmt: skip
    """Leave out the positions `obj`, a slice, or one position along `axis`, or of the flattened array; at once."""
    arr, axis = _flat(arr, axis)
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


def _insert(name: str, arr: jax.Array, values: jax.Array | None, val: float | None, axis: Whole, **place: Whole):
    arr, axis = _flat(arr, axis)
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
    start: Whole = None, stop: Whole = None, step: Whole = None, int_ind: Whole = None, axis: Whole = None,
) -> jax.Array:  # fmt: skip
    """Insert `values`, or the number `val`, before position `int_ind` along `axis`, or of the flattened array."""
    if int_ind is None:
        raise ArgumentError("_npi_insert_scalar: int_ind=None: expected a position")
    place = {"start": start, "stop": stop, "step": step, "int_ind": int_ind}
    return _insert("_npi_insert_scalar", arr, values, val, axis, **place)


@op()
def _npi_insert_slice(
    arr: Tensor, values: Annotated[UntypedTensor, OptionalTensor] = ABSENT, *, val: float | None = None,
    start: Whole = None, stop: Whole = None, step: Whole = None, int_ind: Whole = None, axis: Whole = None,
) -> jax.Array:  # fmt: skip
    """Insert `values`, or the number `val`, before each position of a slice along `axis`, or of the flattened array."""
    place = {"start": start, "stop": stop, "step": step, "int_ind": int_ind}
    return _insert("_npi_insert_slice", arr, values, val, axis, **place)


@op(dynamic=True)
def _npi_insert_tensor(
    arr: Tensor, values: UntypedTensor, obj: Annotated[UntypedTensor, OptionalTensor] = ABSENT, *,
    val: float | None = None, start: Whole = None, stop: Whole = None, step: Whole = None, int_ind: Whole = None,
    axis: Whole = None,
) -> jax.Array:  # fmt: skip
    """Insert `values` before the positions `obj` along `axis`, or of the flattened array; computed at once.

    With the number `val` there are two inputs only: the array and `obj`.
    """
    places = values if obj is None else obj
    if obj is None and val is None:
        raise ArgumentError("_npi_insert_tensor: val=None: expected a number, or inputs arr, values, obj")
    arr, axis = _flat(arr, axis)
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
    spread = jnp.take(value, place, axis=start_axis)
    spread = spread.reshape(spread.shape[:start_axis] + mask.shape + spread.shape[start_axis + 1 :])
    try:
        return jnp.where(chosen, jnp.broadcast_to(spread, data.shape), data)
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


@op()
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
