"""Operators that change shapes: reshape, permute, broadcast, join, split, repeat, pad; classic and NumPy's."""

from __future__ import annotations

import json
from itertools import pairwise
from math import prod
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.errors import ArgumentError
from ..arrangements import CONCATENATE, RESHAPE, SPLIT, equal_parts, new_shape, require_equal_shapes
from ..registry import op
from ..runtime_scalars import Params, define_runtime_form
from ..schema import FLOAT32_EXACT_INTS, Axes, Count, Positive, Shape, Tensor, UntypedTensor, to_shape
from ..shape_rules import many_axes, one_axis
from ..traits import NAMED_OUTPUT, Layer, Quantized, StorageRule, Traits, stored
from .binary import common
from .index import constant


def _one_length(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """The one unknown length of the input follows from the number of elements of the output."""
    data, out = shapes.get("data"), shapes.get("output")
    if not data or not out or data.count(0) != 1 or 0 in out:
        return {}
    rest = prod(n for n in data if n)
    return {"data": tuple(n or prod(out) // rest for n in data)} if prod(out) % rest == 0 else {}


@op(
    name="Reshape", aliases=("reshape",), complete=_one_length,
    traits=Traits(layer=Layer.ARRANGEMENT, arrangement=RESHAPE),
)  # fmt: skip
def reshape(
    data: Tensor, *, shape: Shape = (), reverse: bool = False, target_shape: Shape = (), keep_highest: bool = False
) -> jax.Array:
    """Give `data` a new shape of as many elements; dtype of `data`.

    Codes in `shape`: a positive length; 0 keep the input axis; -1 infer; -2 keep all remaining axes; -3 merge two
    axes; -4 split an axis into the next two lengths. `reverse` matches from the right. On (2, 3, 4): (0, -1) ->
    (2, 12), (-3, 4) -> (6, 4), (-4, 1, 2, -2) -> (1, 2, 3, 4). `target_shape` and `keep_highest` are the older
    form, in which 0 is inferred.
    """
    given = {"shape": shape, "reverse": reverse, "target_shape": target_shape, "keep_highest": keep_highest}
    return data.reshape(new_shape(given, data.shape))


def _span(begin: int | None, end: int | None, ndim: int, side: str) -> tuple[int, int]:
    """Normalise a half-open range of axes."""
    b = 0 if begin is None else begin + ndim * (begin < 0)
    e = ndim if end is None else end + ndim * (end < 0)
    if not 0 <= b < e <= ndim:
        raise ArgumentError(f"{side}_begin={begin}, {side}_end={end}: expected a range within {ndim} axes")
    return b, e


@op(aliases=("_npx_reshape_like",), method="reshape_like")
def reshape_like(
    lhs: Tensor,
    rhs: UntypedTensor,
    *,
    lhs_begin: int | None = None,
    lhs_end: int | None = None,
    rhs_begin: int | None = None,
    rhs_end: int | None = None,
) -> jax.Array:
    """Reshape `lhs` to the shape of `rhs`, or its axes [lhs_begin, lhs_end) to those [rhs_begin, rhs_end) of `rhs`.

    Shapes: lhs (a…), rhs (b…) -> (b…), with as many elements as `lhs`; dtype of `lhs`.
    """
    if (lhs_begin, lhs_end, rhs_begin, rhs_end) == (None,) * 4:
        shape = rhs.shape
    else:
        b, e = _span(lhs_begin, lhs_end, lhs.ndim, "lhs")
        rb, re = _span(rhs_begin, rhs_end, rhs.ndim, "rhs")
        shape = lhs.shape[:b] + rhs.shape[rb:re] + lhs.shape[e:]
    if prod(shape) != lhs.size:
        raise ArgumentError(f"new shape {shape}: expected {lhs.size} elements, those of lhs {lhs.shape}")
    return lhs.reshape(shape)


@op(
    name="Flatten",
    aliases=("flatten", "_npx_batch_flatten"),
    traits=Traits(layer=Layer.ARRANGEMENT, quantized=Quantized("_contrib_quantized_flatten")),
    method="flatten",
)
def flatten(data: Tensor) -> jax.Array:
    """Keep axis 0 and merge all others: (n, d1, d2, …) -> (n, d1·d2·…); a 1-d array becomes (n, 1)."""
    return data.reshape(data.shape[0], prod(data.shape[1:]))


@op(method="transpose")
def transpose(data: Tensor, *, axes: Shape = ()) -> jax.Array:
    """Permute the axes: axis i of the result is axis `axes[i]` of `data`; without `axes` their order is reversed."""
    order = many_axes(axes, data.ndim, "axes") if axes else tuple(range(data.ndim))[::-1]
    if len(order) != data.ndim:
        raise ArgumentError(f"axes={axes}: expected {data.ndim} axes, those of the input shape {data.shape}")
    return jnp.transpose(data, order)


@op(name="SwapAxis", aliases=("swapaxes", "_npi_swapaxes"), traits=NAMED_OUTPUT, method="swapaxes")
def swap_axis(data: Tensor, *, dim1: int = 0, dim2: int = 0) -> jax.Array:
    """Exchange the axes `dim1` and `dim2`."""
    return jnp.swapaxes(data, one_axis(dim1, data.ndim, "dim1"), one_axis(dim2, data.ndim, "dim2"))


@op(aliases=("_npi_expand_dims",), method="expand_dims")
def expand_dims(data: Tensor, *, axis: int) -> jax.Array:
    """Insert an axis of length 1 at position `axis` of the result: (2, 3) with axis=-1 -> (2, 3, 1)."""
    return jnp.expand_dims(data, one_axis(axis, data.ndim + 1))


@op(method="squeeze")
def squeeze(data: Tensor, *, axis: Axes = None) -> jax.Array:
    """Drop the axes `axis`, which must have length 1 (all such axes by default); at least one axis is left."""
    if axis is None:
        axes = tuple(a for a, n in enumerate(data.shape) if n == 1)
    else:
        axes = many_axes(axis, data.ndim)
    for a in axes:
        if data.shape[a] != 1:
            raise ArgumentError(f"axis={axis}: expected axes of length 1, axis {a} of {data.shape} is longer")
    return data.reshape(tuple(n for a, n in enumerate(data.shape) if a not in axes) or (1,))


def _per_axis(values: tuple[int, ...], count: int, name: str) -> tuple[int, ...]:
    if len(values) != count:
        raise ArgumentError(f"{name}={values}: expected {count} values, one per axis")
    return values


def _stretch(data: Any, shape: tuple[int, ...]) -> Any:
    """Broadcast axes of length 1 to the lengths in `shape`, of as many axes as `data`."""
    for axis, (have, want) in enumerate(zip(data.shape, shape, strict=True)):
        if have not in (1, want):
            raise ArgumentError(
                f"cannot broadcast shape {data.shape} to {tuple(shape)}: expected length 1 or {want} along axis {axis}"
            )
    return jnp.broadcast_to(data, shape)


@op(method="broadcast_to")
def broadcast_to(data: Tensor, *, shape: Shape = ()) -> jax.Array:
    """Repeat axes of length 1 so that the result has `shape`; a 0 in `shape` keeps the length of the input."""
    _per_axis(shape, data.ndim, "shape")
    return _stretch(data, tuple(want or have for have, want in zip(data.shape, shape, strict=True)))


@op(method="broadcast_like")
def broadcast_like(lhs: Tensor, rhs: UntypedTensor, *, lhs_axes: Axes = None, rhs_axes: Axes = None) -> jax.Array:
    """Repeat axes of length 1 of `lhs` as in `rhs`: all, or, given both, `lhs_axes` to the lengths of `rhs_axes`.

    Shapes: lhs (1 or d0, …), rhs (d0, …) -> (d0, …); dtype of `lhs`.
    """
    if lhs_axes is None or rhs_axes is None:
        if lhs.ndim != rhs.ndim:
            raise ArgumentError(f"shapes {lhs.shape} and {rhs.shape}: expected the same number of axes")
        return _stretch(lhs, rhs.shape)
    if len(lhs_axes) != len(rhs_axes) or not lhs_axes:
        raise ArgumentError(f"lhs_axes={lhs_axes}, rhs_axes={rhs_axes}: expected equally many, at least one")
    shape = list(lhs.shape)
    left, right = many_axes(lhs_axes, lhs.ndim, "lhs_axes"), many_axes(rhs_axes, rhs.ndim, "rhs_axes")
    for a, b in zip(left, right, strict=True):
        shape[a] = rhs.shape[b]
    return _stretch(lhs, tuple(shape))


@op(aliases=("broadcast_axes",), method="broadcast_axes")
def broadcast_axis(data: Tensor, *, axis: Shape = (), size: Shape = ()) -> jax.Array:
    """Repeat `data` along the axes `axis`, which must have length 1, `size` times each."""
    shape = list(data.shape)
    for a, n in zip(many_axes(axis, data.ndim), _per_axis(size, len(axis), "size"), strict=True):
        if shape[a] != 1:
            raise ArgumentError(f"axis={axis}: expected axes of length 1, axis {a} of {data.shape} is longer")
        shape[a] = n
    return jnp.broadcast_to(data, shape)


def _image(shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) != 4:
        raise ArgumentError(f"data of shape {shape}: expected 4 axes (batch, channel, height, width)")
    return shape


@op(method="depth_to_space")
def depth_to_space(data: Tensor, *, block_size: Positive) -> jax.Array:
    """Move channels into blocks of pixels: (n, b·b·c, h, w) -> (n, c, h·b, w·b), `b` being `block_size`."""
    b, (n, c, h, w) = block_size, _image(data.shape)
    if c % (b * b):
        raise ArgumentError(f"block_size={b}: expected {b * b} to divide the {c} channels of {data.shape}")
    blocks = data.reshape(n, b, b, c // (b * b), h, w)
    return blocks.transpose(0, 3, 4, 1, 5, 2).reshape(n, c // (b * b), h * b, w * b)


@op(method="space_to_depth")
def space_to_depth(data: Tensor, *, block_size: Positive) -> jax.Array:
    """Move blocks of pixels into channels: (n, c, h·b, w·b) -> (n, b·b·c, h, w), `b` being `block_size`."""
    b, (n, c, h, w) = block_size, _image(data.shape)
    if h % b or w % b:
        raise ArgumentError(f"block_size={b}: expected it to divide height and width of {data.shape}")
    blocks = data.reshape(n, c, h // b, b, w // b, b)
    return blocks.transpose(0, 3, 5, 1, 2, 4).reshape(n, c * b * b, h // b, w // b)


@op(method="diag")
def diag(data: Tensor, *, k: int = 0, axis1: int = 0, axis2: int = 1) -> jax.Array:
    """Read the `k`-th diagonal, or make a matrix from it.

    A vector (n,) becomes the matrix (n+|k|, n+|k|) with it on diagonal `k`. Otherwise the diagonal of the axes
    `axis1`, `axis2` is read; its axis comes last, as in `numpy.diagonal`. Positive `k` lies above the main diagonal.
    """
    if data.ndim == 1:
        return jnp.diag(data, k)
    a, b = one_axis(axis1, data.ndim, "axis1"), one_axis(axis2, data.ndim, "axis2")
    if a == b:
        raise ArgumentError(f"axis1={axis1}, axis2={axis2}: expected two different axes")
    if not -data.shape[a] < k < data.shape[b]:
        raise ArgumentError(f"k={k}: there is no such diagonal in {(data.shape[a], data.shape[b])}")
    return jnp.diagonal(data, k, a, b)


@op(aliases=("flip",), method="flip")
def reverse(data: Tensor, *, axis: Shape) -> jax.Array:
    """Reverse the order of elements along every axis in `axis`; an axis named twice stays as it is."""
    axes = [one_axis(a, data.ndim) for a in axis]
    return lax.rev(data, tuple(a for a in set(axes) if axes.count(a) % 2))


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


def _common(shapes: dict[str, tuple[int, ...]]) -> tuple[int, ...] | None:
    """What the known shapes say together; a length that none of them knows is 0."""
    ndim = max((len(s) for s in shapes.values()), default=0)
    return tuple(max(n) for n in zip(*(s for s in shapes.values() if len(s) == ndim), strict=True)) or None


def _siblings(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """All inputs of Concat have equal lengths except along the joined axis."""
    known = _common(shapes)
    if known is None or not -len(known) <= p.dim < len(known):
        return {}
    shape = tuple(0 if k == p.dim % len(known) else n for k, n in enumerate(known))
    return {f"arg{i}": shape for i in range(p.num_args)}


def _complete_stack(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """All inputs of `stack` have one shape."""
    known = _common(shapes)
    return {} if known is None else {f"arg{i}": known for i in range(p.num_args)}


@op(
    name="Concat",
    aliases=("concat",),
    complete=_siblings,
    traits=stored(
        StorageRule.STACK_ROWS,
        keeps_result=True,
        has_named_output=True,
        layer=Layer.ARRANGEMENT,
        quantized=Quantized("_contrib_quantized_concat"),
        arrangement=CONCATENATE,
    ),
)
def concat(*args: Tensor, num_args: Count = 0, dim: int = 1) -> jax.Array:
    """Join the inputs along axis `dim`, along which their lengths add up; all other lengths are equal."""
    if not args:
        raise ArgumentError("got no array: expected at least one")
    axis = one_axis(dim, args[0].ndim, "dim")
    require_equal_shapes([a.shape for a in args], axis)
    return jnp.concatenate(args, axis)


def _last_part(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """As for Concat; parts of unknown length, one for each direction, share what the others leave of the output."""
    found, out = _siblings(p, shapes), shapes.get("output")
    if not found or not out or not out[p.dim]:
        return found
    lengths = {name: shapes.get(name, found[name])[p.dim] for name in found}
    missing = [name for name, n in lengths.items() if n == 0]
    rest = out[p.dim] - sum(lengths.values())
    if missing and rest % len(missing) == 0:
        for name in missing:
            found[name] = (*found[name][: p.dim], rest // len(missing), *found[name][p.dim + 1 :])
    return found


@op(complete=_last_part)
def _rnn_param_concat(*args: Tensor, num_args: Count = 0, dim: int = 1) -> jax.Array:
    """Join the weights and biases of a recurrent layer along axis `dim` into its flat parameter vector."""
    if not args:
        raise ArgumentError("got no array: expected at least one")
    axis = one_axis(dim, args[0].ndim, "dim")
    require_equal_shapes([a.shape for a in args], axis)
    return jnp.concatenate(args, axis)


@op(complete=_complete_stack)
def stack(*args: Tensor, axis: int = 0, num_args: Count = 0) -> jax.Array:
    """Join inputs of equal shape along a new axis at position `axis`: k times (m, n) -> (k, m, n)."""
    axis = one_axis(axis, args[0].ndim + 1)
    require_equal_shapes([a.shape for a in args], None)
    return jnp.stack(args, axis)


def _parts(data: Any, cuts: list[int], axis: int, squeeze_axis: bool) -> tuple[Any, ...]:
    """Cut `data` along `axis` at the positions `cuts` (first and last included)."""
    parts = [lax.slice_in_dim(data, a, b, axis=axis) for a, b in pairwise(cuts)]
    if squeeze_axis:
        if any(p.shape[axis] != 1 for p in parts):
            raise ArgumentError(
                f"squeeze_axis=True: expected parts of length 1 along axis {axis}, got {[p.shape[axis] for p in parts]}"
            )
        shape = data.shape[:axis] + data.shape[axis + 1 :]
        parts = [p.reshape(shape or (1,)) for p in parts]
    return tuple(parts)


@op(
    name="SliceChannel",
    aliases=("split",),
    outputs=lambda p: p.num_outputs,
    traits=Traits(arrangement=SPLIT),
    method="split",
)
def slice_channel(
    data: Tensor, *, num_outputs: Positive, axis: int = 1, squeeze_axis: bool = False
) -> tuple[jax.Array, ...]:
    """Split `data` along `axis` into `num_outputs` parts of equal length; `squeeze_axis` drops that axis.

    Raises `ArgumentError` when `num_outputs` does not divide the axis, or with `squeeze_axis` is not its length.
    """
    equal_parts({"num_outputs": num_outputs, "axis": axis, "squeeze_axis": squeeze_axis}, [data.shape])
    axis = one_axis(axis, data.ndim)
    n = data.shape[axis]
    step = n // num_outputs
    return _parts(data, list(range(0, n + 1, step)) if step else [0] * (num_outputs + 1), axis, squeeze_axis)


@op(aliases=("_npi_split",), outputs=lambda p: p.sections or len(p.indices))
def _split_v2(
    data: Tensor, *, indices: Shape, axis: int = 1, squeeze_axis: bool = False, sections: Count = 0
) -> tuple[jax.Array, ...]:
    """Split `data` along `axis` into parts that begin at `indices`, the first of which is 0.

    With `sections` > 0 there are that many parts instead, the first ones longer by one when lengths do not divide.
    """
    axis = one_axis(axis, data.ndim)
    n = data.shape[axis]
    if sections:
        cuts = [i * (n // sections) + min(i, n % sections) for i in range(sections + 1)]
    else:
        cuts = [*indices, n]
        if cuts[0] != 0 or any(a > b for a, b in pairwise(cuts)):
            raise ArgumentError(f"indices={indices}: expected 0 first, then ascending positions up to {n}")
    return _parts(data, cuts, axis, squeeze_axis)


@op(aliases=("_npi_tile",), method="tile")
def tile(data: Tensor, *, reps: Shape) -> jax.Array:
    """Repeat the whole array `reps[i]` times along axis i; shape and `reps` are aligned at the last axis."""
    if any(r < 0 for r in reps):
        raise ArgumentError(f"reps={reps}: expected counts of 0 or more")
    return jnp.tile(data, reps)


@op(aliases=("_np_repeat",), method="repeat")
def repeat(data: Tensor, *, repeats: Count, axis: int | None = None) -> jax.Array:
    """Repeat each element `repeats` times along `axis`, or of the flattened array without `axis`."""
    if axis is None:
        data, axis = data.reshape(-1), 0
    axis = one_axis(axis, data.ndim)
    wide = jnp.broadcast_to(
        jnp.expand_dims(data, axis + 1), (*data.shape[: axis + 1], repeats, *data.shape[axis + 1 :])
    )
    return wide.reshape(*data.shape[:axis], data.shape[axis] * repeats, *data.shape[axis + 1 :])


@op(name="Pad", aliases=("pad",), method="pad")
def pad(
    data: Tensor, *, mode: Literal["constant", "edge", "reflect"], pad_width: Shape, constant_value: float = 0.0
) -> jax.Array:
    """Widen every axis i by `pad_width[2·i]` elements before and `pad_width[2·i+1]` after.

    `constant` fills with `constant_value`, `edge` repeats the outermost elements, `reflect` mirrors without
    repeating them and needs widths below the length of the axis.
    """
    if len(pad_width) != 2 * data.ndim or any(w < 0 for w in pad_width):
        raise ArgumentError(f"pad_width={pad_width}: expected {2 * data.ndim} widths of 0 or more, two per axis")
    widths = list(zip(pad_width[::2], pad_width[1::2], strict=True))
    if mode == "constant":
        fill = np.asarray(constant(constant_value, data.dtype))
        return lax.pad(data, fill, [(before, after, 0) for before, after in widths])
    for axis, (width, n) in enumerate(zip(widths, data.shape, strict=True)):
        if mode == "reflect" and max(width) >= max(n, 1):
            raise ArgumentError(f"pad_width={pad_width}: expected widths below {n} to reflect axis {axis}")
    return jnp.pad(data, widths, mode=mode)
