"""NumPy's functions that move elements without changing them: shapes, axes, diagonals, joins, padding."""

from __future__ import annotations

import json
from math import prod
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from ...core.errors import ArgumentError
from ..axes import many_axes, one_axis
from ..registry import op
from ..schema import FLOAT32_EXACT_INTS, Axes, Count, Shape, Tensor, UntypedTensor, to_shape
from .np_pairs import common
from .varying import Params, define_runtime_form
from .window import constant


@op()
def _np_reshape(a: Tensor, *, newshape: Shape, order: Literal["C"] = "C") -> jax.Array:
    """Give the elements another shape; one length may be -1 and follows from the others.

    a: any shape and dtype. Lengths of 0 are empty axes, not codes.

    Raises:
        ArgumentError: the shape holds another number of elements.
    """
    known = prod(n for n in newshape if n != -1)
    holes = sum(n == -1 for n in newshape)
    fits = holes == 0 and known == a.size or holes == 1 and known > 0 and a.size % known == 0
    if not fits or any(n < -1 for n in newshape):
        raise ArgumentError(f"_np_reshape: cannot reshape array of size {a.size} into shape {newshape}")
    return a.reshape(newshape)


@op()
def _np_squeeze(a: Tensor, *, axis: Axes = None) -> jax.Array:
    """Drop axes of length 1: those named, or all of them. A 0-d array may be asked for its axis 0 and is kept.

    Raises:
        ArgumentError: a named axis is longer.
    """
    if axis is None:
        axes = tuple(i for i, n in enumerate(a.shape) if n == 1)
    elif not a.ndim:
        many_axes(axis, 1)
        axes = ()
    else:
        axes = tuple({one_axis(at, a.ndim) for at in axis})
    if any(a.shape[i] != 1 for i in axes):
        raise ArgumentError(f"_np_squeeze: axis={axis}: expected axes of length 1 in shape {a.shape}")
    return jnp.squeeze(a, axes)


@op()
def _np_transpose(a: Tensor, *, axes: Axes = None) -> jax.Array:
    """Permute the axes, or reverse them; result axis i is axis `axes[i]`."""
    if axes is not None and len(axes) != a.ndim:
        raise ArgumentError(f"_np_transpose: axes={axes}: expected a permutation of {a.ndim} axes")
    return jnp.transpose(a, None if axes is None else many_axes(axes, a.ndim, "axes"))


@op()
def _np_moveaxis(a: Tensor, *, source: Shape, destination: Shape) -> jax.Array:
    """Move the axes `source` to the positions `destination`; the others keep their order."""
    if len(source) != len(destination):
        raise ArgumentError(f"_np_moveaxis: source={source}, destination={destination}: expected equal lengths")
    return jnp.moveaxis(a, many_axes(source, a.ndim, "source"), many_axes(destination, a.ndim, "destination"))


@op()
def _np_roll(data: Tensor, *, shift: Axes = None, axis: Axes = None) -> jax.Array:
    """Shift elements along `axis` (of the flattened array if None); what leaves at one end enters at the other."""
    if not shift or (axis is None and len(shift) != 1):
        raise ArgumentError(f"_np_roll: shift={shift}: expected a number, or one number for each axis")
    if axis is None:
        return jnp.roll(data, shift[0])
    axes = tuple(one_axis(a, data.ndim) for a in axis)
    steps = shift * len(axes) if len(shift) == 1 else shift
    if len(steps) != len(axes):
        raise ArgumentError(f"_np_roll: shift={shift}, axis={axis}: expected equally many")
    return jnp.roll(data, steps, axes)


def _roll_fits(params: Params, shape: tuple[int, ...], dtype: np.dtype) -> bool:
    shift = params["shift"]
    return bool(shift) and all(abs(s) < FLOAT32_EXACT_INTS for s in shift)


def _runtime_roll(data: jax.Array, *, shift: tuple[jax.Array, ...], axis: tuple[int, ...] | None) -> jax.Array:
    return _np_roll.fn(data, shift=tuple(s.astype(jnp.int32) for s in shift), axis=axis)


define_runtime_form(_np_roll, "shift", fits=_roll_fits, body=_runtime_roll)


@op()
def _npi_flip(data: Tensor, *, axis: Axes = None) -> jax.Array:
    """Reverse the order of the elements along `axis`, or along all axes."""
    return jnp.flip(data, None if axis is None else many_axes(axis, data.ndim))


@op()
def _npi_rot90(data: Tensor, *, k: int = 1, axes: Axes = (0, 1)) -> jax.Array:
    """Rotate by 90 degrees `k` times in the plane of two axes, from the first towards the second."""
    plane = many_axes(axes or (), data.ndim, "axes")
    if len(plane) != 2:
        raise ArgumentError(f"_npi_rot90: axes={axes}: expected two different axes")
    return jnp.rot90(data, k, plane)


@op()
def _npi_broadcast_to(array: Tensor, *, shape: Shape) -> jax.Array:
    """Stretch axes of length 1, and add leading axes, to reach `shape`."""
    try:
        return jnp.broadcast_to(array, shape)
    except ValueError:
        raise ArgumentError(f"_npi_broadcast_to: shape {array.shape} does not broadcast to shape={shape}") from None


def to_widths(value: Any) -> tuple[tuple[int, ...], ...]:
    """Convert pad widths: pairs, one pair, or one number, or MXNet's text of them."""
    flat = np.asarray(to_nested(value))
    if flat.dtype.kind not in "iu" or flat.ndim > 2 or (flat.ndim == 2 and flat.shape[1] not in (1, 2)):
        raise ValueError("expected pairs of integers")
    return tuple(to_shape(row) for row in flat.reshape(-1, flat.shape[-1] if flat.ndim else 1).tolist())


def to_nested(value: Any) -> Any:
    """Read MXNet's text of nested tuples of integers."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value.replace("(", "[").replace(")", "]").replace(",]", "]"))
    except json.JSONDecodeError:
        raise ValueError("expected pairs of integers") from None


Widths = Annotated[tuple, to_widths]
PadMode = Literal["constant", "edge", "reflect", "symmetric", "maximum", "minimum"]


@op()
def _npi_pad(
    data: Tensor,
    *,
    pad_width: Widths,
    mode: PadMode = "constant",
    constant_value: float = 0.0,
    reflect_type: Literal["even", "odd"] = "even",
) -> jax.Array:
    """Widen the axes by (before, after) elements: constants, the outermost element, mirrored ones, or extrema.

    data: any shape and dtype. pad_width: one pair for each axis, or one for all.
    """
    pairs = [(w[0], w[-1]) for w in pad_width]
    widths = pairs * data.ndim if len(pairs) == 1 else pairs
    if len(widths) != data.ndim or any(n < 0 for w in widths for n in w):
        raise ArgumentError(f"_npi_pad: pad_width={pad_width}: expected {data.ndim} pairs of 0 or more")
    if mode == "constant":
        return jnp.pad(data, widths, constant_values=constant(constant_value, data.dtype))
    extra = {"reflect_type": reflect_type} if mode in ("reflect", "symmetric") else {}
    return jnp.pad(data, widths, mode=mode, **extra)


@op()
def _np_diag(data: Tensor, *, k: int = 0) -> jax.Array:
    """The diagonal `k` of a matrix, or the matrix with the vector `data` on diagonal `k`."""
    if data.ndim not in (1, 2):
        raise ArgumentError(f"_np_diag: data has shape {data.shape}: expected a vector or a matrix")
    return jnp.diag(data, k)


@op()
def _np_diagflat(data: Tensor, *, k: int = 0) -> jax.Array:
    """The matrix with the elements of `data`, flattened, on diagonal `k`."""
    return jnp.diagflat(data, k)


def _plane(data: jax.Array, axis1: int, axis2: int) -> tuple[int, int]:
    if data.ndim < 2:
        raise ArgumentError(f"data has shape {data.shape}: expected at least two axes")
    first, second = many_axes((axis1, axis2), data.ndim, "axis1, axis2")
    return first, second


@op()
def _np_diagonal(data: Tensor, *, offset: int = 0, axis1: int = 0, axis2: int = 1) -> jax.Array:
    """Diagonals of the matrices that two axes span; they become the last axis."""
    return jnp.diagonal(data, offset, *_plane(data, axis1, axis2))


@op()
def _np_trace(data: Tensor, *, offset: int = 0, axis1: int = 0, axis2: int = 1) -> jax.Array:
    """Sums along the diagonals of the matrices that two axes span, in the dtype of the data."""
    return jnp.sum(jnp.diagonal(data, offset, *_plane(data, axis1, axis2)), -1).astype(data.dtype)


def _triangle(name: str, fn: Any, side: str) -> None:
    def body(data: Tensor, *, k: int = 0) -> jax.Array:
        if data.ndim == 1:
            data = jnp.broadcast_to(data, (data.shape[0], data.shape[0]))
        if data.ndim == 0:
            raise ArgumentError(f"{name}: data has no axis: expected at least one")
        return fn(data, k)

    body.__doc__ = f"""Set what lies {side} diagonal `k` to 0, in the last two axes; a vector is taken as every row.

    data: any shape and dtype, at least one axis.
    """
    op(name=name)(body)


_triangle("_npi_tril", jnp.tril, "above")
_triangle("_npi_triu", jnp.triu, "below")


def _one_type(arrays: tuple[jax.Array, ...]) -> list[jax.Array]:
    if not arrays:
        raise ArgumentError("got no array: expected at least one")
    dtype = common(*(a.dtype for a in arrays))
    return [a.astype(dtype) for a in arrays]


def _agree(name: str, shapes: list[tuple[int, ...]], axis: int) -> None:
    rest = {s[:axis] + s[axis + 1 :] for s in shapes}
    if len(rest) > 1:
        raise ArgumentError(f"{name}: shapes {shapes}: expected equal lengths except along axis {axis}")


@op(output_names=("out",))
def _npi_concatenate(*data: UntypedTensor, num_args: Count = 0, axis: int | None = 0) -> jax.Array:
    """Join arrays along `axis`, or flattened ones if it is None; mixed dtypes become a common one."""
    arrays = _one_type(data)
    if axis is None:
        return jnp.concatenate([a.reshape(-1) for a in arrays])
    at = one_axis(axis, arrays[0].ndim, "axis")
    _agree("_npi_concatenate", [a.shape for a in arrays], at)
    return jnp.concatenate(arrays, at)


@op()
def _npi_stack(*data: UntypedTensor, num_args: Count = 0, axis: int = 0) -> jax.Array:
    """Join arrays of one shape along a new axis."""
    arrays = _one_type(data)
    if len({a.shape for a in arrays}) > 1:
        raise ArgumentError(f"_npi_stack: shapes {[a.shape for a in arrays]}: expected equal ones")
    return jnp.stack(arrays, one_axis(axis, arrays[0].ndim + 1))


# name: function of a list of arrays, formula
JOINS: dict[str, tuple[Any, str]] = {
    "vstack": (jnp.vstack, "Join arrays along the first axis; vectors are rows."),
    "hstack": (jnp.hstack, "Join arrays along the second axis, vectors along their only one."),
    "dstack": (jnp.dstack, "Join arrays along the third axis, which vectors and matrices are given."),
    "column_stack": (jnp.column_stack, "Join arrays as columns; vectors are columns."),
}


def _join(name: str, fn: Any, doc: str) -> None:
    def body(*data: UntypedTensor, num_args: Count = 0) -> jax.Array:
        return fn(_one_type(data))

    body.__doc__ = f"{doc} Mixed dtypes become a common one."
    # MXNet names the output of two of them.
    op(name=name, output_names=("out",) if fn in (jnp.hstack, jnp.dstack) else ())(body)


for _name, (_fn, _doc) in JOINS.items():
    _join(f"_npi_{_name}", _fn, _doc)


def _with_axes(name: str, fn: Any, ndim: int) -> None:
    def body(*arys: Tensor, num_args: Count = 0) -> tuple[jax.Array, ...]:
        return tuple(fn(a) for a in arys)

    body.__doc__ = f"Each array with at least {ndim} axes; missing ones have length 1."
    op(name=name, outputs=lambda p: p.num_args)(body)


_with_axes("_np_atleast_1d", jnp.atleast_1d, 1)
_with_axes("_np_atleast_2d", jnp.atleast_2d, 2)
_with_axes("_np_atleast_3d", jnp.atleast_3d, 3)
