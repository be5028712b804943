"""Functions that change shapes and order, join and split."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as onp

from ..core.argcheck import integer
from ..core.errors import ArgumentError, ArgumentTypeError
from ..ndarray.handle import invoke
from ..op.registry import OPS
from .call import (
    as_array,
    axes_of,
    axis_of,
    c_order,
    call_op,
    call_op_all,
    cast,
    is_number,
    is_symbolic,
    one_axis,
    shape_of,
    write_out,
)
from .elementwise import FUNCTIONS
from .np_ndarray import as_np_class, ndarray


def reshape(a: Any, newshape: Any, order: str = "C", out: Any = None) -> ndarray:
    """Return the elements of `a` in another shape, one length of which may be -1 (a copy)."""
    c_order(order, "reshape")
    shape = axes_of(newshape, "reshape", "newshape")
    return call_op("_np_reshape", as_array(a, "reshape"), out=out, newshape=shape)


def ravel(x: Any, order: str = "C") -> ndarray:
    """Return the elements in one axis."""
    c_order(order, "ravel")
    return call_op("_np_reshape", as_array(x, "ravel", "x"), newshape=(-1,))


def squeeze(a: Any, axis: Any = None, out: Any = None) -> ndarray:
    """Return `a` without axes of length 1: those named, or all of them."""
    return call_op("_np_squeeze", as_array(a, "squeeze"), out=out, axis=axes_of(axis, "squeeze"))


def expand_dims(a: Any, axis: Any) -> ndarray:
    """Return `a` with axes of length 1 at the positions `axis` of the result."""
    x, places = as_array(a, "expand_dims"), axes_of(axis, "expand_dims") or ()
    if is_symbolic((x,)):
        for place in places:
            x = call_op("expand_dims", x, axis=place)
        return x
    ndim = x.ndim + len(places)
    at = {one_axis(p, ndim, "expand_dims") for p in places}
    if len(at) != len(places):
        raise ArgumentError(f"expand_dims: axis={axis}: expected every axis at most once")
    lengths = iter(x.shape)
    return call_op("_np_reshape", x, newshape=tuple(1 if i in at else next(lengths) for i in range(ndim)))


def transpose(a: Any, axes: Any = None) -> ndarray:
    """Return `a` with its axes permuted, or reversed."""
    return call_op("_np_transpose", as_array(a, "transpose"), axes=axes_of(axes, "transpose", "axes"))


def swapaxes(a: Any, axis1: int, axis2: int) -> ndarray:
    """Return `a` with two axes exchanged."""
    x = as_array(a, "swapaxes")
    if is_symbolic((x,)):
        return call_op("swapaxes", x, dim1=axis1, dim2=axis2)
    order = list(range(x.ndim))
    i, j = axis_of(axis1, x, "swapaxes"), axis_of(axis2, x, "swapaxes")
    order[i], order[j] = j, i
    return call_op("_np_transpose", x, axes=tuple(order))


def moveaxis(a: Any, source: Any, destination: Any) -> ndarray:
    """Return `a` with the axes `source` moved to the positions `destination`."""
    x = as_array(a, "moveaxis")
    return call_op(
        "_np_moveaxis",
        x,
        source=axes_of(source, "moveaxis", "source"),
        destination=axes_of(destination, "moveaxis", "destination"),
    )


def rollaxis(a: Any, axis: int, start: int = 0) -> ndarray:
    """Return `a` with `axis` moved before the axis that is at `start`."""
    x = as_array(a, "rollaxis")
    at = axis_of(axis, x, "rollaxis")
    if not -x.ndim <= start <= x.ndim:
        raise ArgumentError(f"rollaxis: start={start}: expected a value in [{-x.ndim}, {x.ndim}]")
    to = start + x.ndim if start < 0 else start
    return moveaxis(x, at, to - 1 if at < to else to)


def roll(a: Any, shift: Any, axis: Any = None) -> ndarray:
    """Return `a` with elements shifted cyclically along `axis`, or in the flattened array."""
    return call_op("_np_roll", as_array(a, "roll"), shift=axes_of(shift, "roll", "shift"), axis=axes_of(axis, "roll"))


def flip(m: Any, axis: Any = None, out: Any = None) -> ndarray:
    """Return `m` with the order of elements reversed along `axis`, or along all axes."""
    a = as_array(m, "flip", "m")
    # MXNet's operator has no default axis: a node names it.
    axes = "None" if axis is None and is_symbolic((a,)) else axes_of(axis, "flip")
    return call_op("_npi_flip", a, out=out, axis=axes)


def flipud(m: Any) -> ndarray:
    """Return `m` with its rows in reverse order."""
    return flip(m, 0)


def fliplr(m: Any) -> ndarray:
    """Return `m` with its columns in reverse order."""
    return flip(m, 1)


def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> ndarray:
    """Return `m` turned by 90 degrees `k` times, from the first towards the second of two axes."""
    return call_op("_npi_rot90", as_array(m, "rot90", "m"), k=integer("rot90", "k", k), axes=tuple(axes))


def broadcast_to(array: Any, shape: Any) -> ndarray:
    """Return `array` stretched to `shape`."""
    if is_number(array):
        array = onp.asarray(array, "float32")
    return call_op("_npi_broadcast_to", as_array(array, "broadcast_to", "array"), shape=shape_of(shape, "broadcast_to"))


def broadcast_arrays(*args: Any) -> list[ndarray]:
    """Return the arrays stretched to their common shape."""
    arrays = [as_array(a, "broadcast_arrays", f"args[{i}]") for i, a in enumerate(args)]
    try:
        shape = onp.broadcast_shapes(*(a.shape for a in arrays))
    except ValueError as e:
        raise ArgumentError(f"broadcast_arrays: {e}") from None
    return [broadcast_to(a, shape) for a in arrays]


def tile(A: Any, reps: Any) -> Any:
    """Return `A` repeated `reps` times along each axis."""
    if is_number(A):
        return onp.tile(A, reps)
    return call_op("tile", as_array(A, "tile", "A"), reps=axes_of(reps, "tile", "reps"))


def repeat(a: Any, repeats: Any, axis: Any = None) -> ndarray:
    """Return every element `repeats` times in a row along `axis`, or of the flattened array."""
    x = as_array(a, "repeat")
    if axis is None:
        x, axis = ravel(x), 0
    at = axis_of(axis, x, "repeat")
    if isinstance(repeats, (int, onp.integer)):
        return call_op("repeat", x, repeats=int(repeats), axis=at)
    counts = onp.asarray(repeats.asnumpy() if isinstance(repeats, ndarray) else repeats)
    try:
        index = onp.repeat(onp.arange(x.shape[at]), counts.astype("int64"))
    except ValueError as e:
        raise ArgumentError(f"repeat: repeats={counts.tolist()}: {e}") from None
    return call_op("_npi_positions", x, at=tuple(index.tolist()), axis=at)


def pad(x: Any, pad_width: Any = None, mode: str = "constant", **kwargs: Any) -> ndarray:
    """Return `x` widened by `pad_width` elements (one pair for each axis, one pair, or a number) before and after.

    Args:
        mode: "constant" (`constant_values`, one number), "edge", "reflect", "symmetric", "maximum" or "minimum".
    """
    a = as_array(x, "pad", "x")
    widths = onp.asarray(pad_width)
    if widths.dtype.kind not in "iu":
        raise ArgumentTypeError(f"pad: pad_width={pad_width!r}: expected integers")
    params: dict[str, Any] = {"reflect_type": kwargs.pop("reflect_type", "even")}
    if "constant_values" in kwargs:
        value = kwargs.pop("constant_values")
        if not is_number(value):
            raise ArgumentTypeError(f"pad: constant_values={value!r}: expected one number")
        params["constant_value"] = float(value)
    if kwargs:
        raise ArgumentTypeError(f"pad: unexpected argument {next(iter(kwargs))!r}")
    pairs = onp.broadcast_to(widths, (a.ndim, 2)).tolist() if widths.ndim < 2 or len(widths) == 1 else widths.tolist()
    return call_op("_npi_pad", a, pad_width=tuple(tuple(p) for p in pairs), mode=mode, **params)


def resize(a: Any, new_shape: Any) -> ndarray:
    """Return an array of `new_shape` with the elements of `a`, repeated as often as needed."""
    x, shape = as_array(a, "resize"), shape_of(new_shape, "resize")
    count = int(onp.prod(shape))
    if x.size == 0:
        return call_op("_npi_broadcast_to", cast(as_array(onp.zeros(()), "resize"), x.dtype), shape=shape)
    flat = ravel(tile(ravel(x), -(-count // x.size))) if count > x.size else ravel(x)
    return flat[:count].reshape(shape)


# -- diagonals


def diag(array: Any, k: int = 0) -> ndarray:
    """Return diagonal `k` of a matrix, or the matrix with a vector on diagonal `k`."""
    return call_op("_np_diag", as_array(array, "diag", "array"), k=k)


def diagflat(array: Any, k: int = 0) -> ndarray:
    """Return the matrix with the flattened elements on diagonal `k`."""
    return call_op("_np_diagflat", as_array(array, "diagflat", "array"), k=k)


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> ndarray:
    """Return the diagonals of the matrices that two axes span; they become the last axis."""
    return call_op("_np_diagonal", as_array(a, "diagonal"), offset=offset, axis1=axis1, axis2=axis2)


def tril(m: Any, k: int = 0) -> ndarray:
    """Return `m` with 0 above diagonal `k`."""
    return call_op("_npi_tril", as_array(m, "tril", "m"), k=k)


def triu(m: Any, k: int = 0) -> ndarray:
    """Return `m` with 0 below diagonal `k`."""
    return call_op("_npi_triu", as_array(m, "triu", "m"), k=k)


# -- joining


def _arrays(seq: Any, what: str) -> list[ndarray]:
    if isinstance(seq, ndarray):
        return list(seq)
    found = [as_array(a, what, f"argument {i}") for i, a in enumerate(seq)]
    if not found:
        raise ArgumentError(f"{what}: need at least one array")
    return found


def concatenate(seq: Any, axis: Any = 0, out: Any = None) -> ndarray:
    """Return the arrays joined along `axis`, or flattened ones if it is None.

    Example:
        >>> import dualmx as mx
        >>> mx.np.concatenate([mx.np.zeros(2), mx.np.ones(1)])
        array([0., 0., 1.])
    """
    found = _arrays(seq, "concatenate")
    return call_op("_npi_concatenate", *found, out=out, num_args=len(found), axis=axis)


def stack(arrays: Any, axis: int = 0, out: Any = None) -> ndarray:
    """Return arrays of one shape joined along a new axis."""
    found = _arrays(arrays, "stack")
    return call_op("_npi_stack", *found, out=out, num_args=len(found), axis=axis)


def _joined(name: str, arrays: Any, out: Any = None) -> ndarray:
    found = _arrays(arrays, name)
    return call_op(f"_npi_{name}", *found, out=out, num_args=len(found))


def vstack(arrays: Any, out: Any = None) -> ndarray:
    """Return the arrays joined as rows."""
    return _joined("vstack", arrays, out)


row_stack = vstack


def hstack(arrays: Any) -> ndarray:
    """Return the arrays joined along the second axis, vectors along their only one."""
    return _joined("hstack", arrays)


def dstack(arrays: Any) -> ndarray:
    """Return the arrays joined along the third axis."""
    return _joined("dstack", arrays)


def column_stack(tup: Any) -> ndarray:
    """Return the arrays joined as columns."""
    return _joined("column_stack", tup)


def append(arr: Any, values: Any, axis: Any = None) -> ndarray:
    """Return `arr` with `values` after it along `axis`, or both flattened."""
    x = as_array(arr, "append", "arr")
    return concatenate([x, as_array(values, "append", "values", x)], axis)


# -- splitting


def _cut(a: ndarray, cuts: Sequence[int], axis: int) -> list[ndarray]:
    n = a.shape[axis]
    edges = [0, *(builtins.min(builtins.max(c + n if c < 0 else c, 0), n) for c in cuts)]
    if edges != sorted(edges):
        head = (slice(None),) * axis
        return [a[(*head, slice(i, j))].copy() for i, j in zip([0, *cuts], [*cuts, None], strict=True)]
    call = OPS["_npi_split"].call(indices=tuple(edges), axis=axis)
    return [as_np_class(p) for p in invoke(call, (a,))]


def _split(what: str, ary: Any, sections: Any, axis: int, even: bool) -> list[ndarray]:
    a = as_array(ary, what, "ary")
    if is_symbolic((a,)):
        by_count = isinstance(sections, int)
        params = {"sections": sections, "indices": ()} if by_count else {"indices": (0, *sections)}
        operator = f"_npi_{what}" if what in ("hsplit", "dsplit") else "_npi_split"
        return call_op_all(operator, a, axis=axis, **params)
    at = axis_of(axis, a, what)
    if getattr(sections, "shape", None) == ():
        sections = integer(what, "indices_or_sections", sections)
    if isinstance(sections, int):
        if sections <= 0:
            raise ArgumentError(f"{what}: number of sections {sections}: expected 1 or more")
        n = a.shape[at]
        if even and n % sections:
            raise ArgumentError(f"{what}: array split does not result in an equal division: {n} into {sections}")
        short, longer = divmod(n, int(sections))
        cuts = [i * short + builtins.min(i, longer) for i in range(1, int(sections))]
        return _cut(a, cuts, at)
    return _cut(a, [int(i) for i in sections], at)


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[ndarray]:
    """Return the parts of `ary` along `axis`: a number of equal ones, or those between positions."""
    return _split("split", ary, indices_or_sections, axis, True)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[ndarray]:
    """Return the parts of `ary` along `axis` as `split` does; lengths need not divide, the first parts are longer."""
    return _split("array_split", ary, indices_or_sections, axis, False)


def _needs(ary: Any, ndim: int, what: str) -> ndarray:
    a = as_array(ary, what, "ary")
    if not is_symbolic((a,)) and a.ndim < ndim:
        raise ArgumentError(f"{what}: ary has shape {a.shape}: expected an array of {ndim} or more dimensions")
    return a


def hsplit(ary: Any, indices_or_sections: Any) -> list[ndarray]:
    """Return parts along the second axis, of a vector along its only one."""
    a = _needs(ary, 1, "hsplit")
    return _split("hsplit", a, indices_or_sections, 0 if not is_symbolic((a,)) and a.ndim == 1 else 1, True)


def vsplit(ary: Any, indices_or_sections: Any) -> list[ndarray]:
    """Return parts along the first axis of two or more."""
    return _split("vsplit", _needs(ary, 2, "vsplit"), indices_or_sections, 0, True)


def dsplit(ary: Any, indices_or_sections: Any) -> list[ndarray]:
    """Return parts along the third axis."""
    return _split("dsplit", _needs(ary, 3, "dsplit"), indices_or_sections, 2, True)


def _at_least(name: str, arys: Any) -> Any:
    found = [as_array(onp.asarray(a, "float32") if is_number(a) else a, name, "arys") for a in arys]
    made = call_op_all(f"_np_{name}", *found, num_args=len(found))
    return made[0] if len(made) == 1 else made


def atleast_1d(*arys: Any) -> Any:
    """Return each array with at least one axis."""
    return _at_least("atleast_1d", arys)


def atleast_2d(*arys: Any) -> Any:
    """Return each array with at least two axes."""
    return _at_least("atleast_2d", arys)


def atleast_3d(*arys: Any) -> Any:
    """Return each array with at least three axes."""
    return _at_least("atleast_3d", arys)


def meshgrid(*xi: Any, **kwargs: Any) -> list[ndarray]:
    """Return coordinate arrays of the grid that vectors span (`indexing="xy"`, `sparse=False`, `copy=True`)."""
    indexing, sparse = kwargs.pop("indexing", "xy"), kwargs.pop("sparse", False)
    kwargs.pop("copy", True)
    if kwargs:
        raise ArgumentTypeError(f"meshgrid: unexpected argument {next(iter(kwargs))!r}")
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid: indexing={indexing!r}: expected 'xy' or 'ij'")
    arrays = [as_array(x, "meshgrid", f"xi[{i}]") for i, x in enumerate(xi)]
    order = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        order[0], order[1] = 1, 0
    grids = [reshape(a, tuple(-1 if i == order[k] else 1 for i in range(len(arrays)))) for k, a in enumerate(arrays)]
    return grids if sparse else broadcast_arrays(*grids)


def clip(a: Any, a_min: Any, a_max: Any, out: Any = None) -> ndarray:
    """Return `a` limited to [`a_min`, `a_max`]; a bound is a number, an array or None."""
    if is_number(a):
        return onp.clip(a, a_min, a_max)
    x = as_array(a, "clip")
    if a_min is None and a_max is None:
        raise ArgumentError("clip: a_min and a_max are None: expected at least one bound")
    low, high = (-float("inf") if a_min is None else a_min), (float("inf") if a_max is None else a_max)
    if is_number(low) and is_number(high):
        if not is_symbolic((x,)) and x.aval.dtype.kind in "iu":
            info = onp.iinfo(x.dtype)
            low, high = builtins.max(low, info.min), builtins.min(high, info.max)
        return call_op("clip", x, out=out, a_min=float(low), a_max=float(high))
    bounded = x if a_min is None else FUNCTIONS["maximum"](x, a_min)
    return write_out(bounded if a_max is None else FUNCTIONS["minimum"](bounded, a_max), out, "clip")


__all__ = [
    "append", "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_to", "clip",
    "column_stack", "concatenate", "diag", "diagflat", "diagonal", "dsplit", "dstack", "expand_dims", "flip", "fliplr",
    "flipud", "hsplit", "hstack", "meshgrid", "moveaxis", "pad", "ravel", "repeat", "reshape", "resize", "roll",
    "rollaxis", "rot90", "row_stack", "split", "squeeze", "stack", "swapaxes", "tile", "transpose", "tril", "triu",
    "vsplit", "vstack",
]  # fmt: skip
