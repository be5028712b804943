"""Functions of `mx.sym.np` that need a node where those of `mx.np` use shapes or values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.errors import ArgumentTypeError, UnsupportedError
from ..op.numpy_names import BY_NUMPY
from ..symbol import Symbol
from ..symbol.attributes import NameManager
from . import manipulation
from .call import axes_of, is_number
from .np_symbol import as_np, make_node, split_outputs
from .reductions import _name as dtype_name


def _by_numpy(kind: str, x: Any, params: dict[str, Any], **further: str) -> Any:
    """Return a node that JSON has as MXNet's `Custom` operator of this type, with `further` attributes."""
    operator, implied = BY_NUMPY[kind]
    made = make_node(operator, (as_np(x),), params | implied, "custom")
    new = made.entries[0][0]
    new.alias = "Custom"
    new.attrs = {k: v for k, v in new.attrs.items() if k not in implied} | further | {"op_type": kind}
    return made


def _no_out(out: Any, what: str) -> None:
    if out is not None:
        raise ArgumentTypeError(f"{what}: out= needs an array; a symbol has no values to write")


def resize(a: Any, new_shape: Any) -> Any:
    """Return a node of the elements of `a`, repeated as needed, in another shape."""
    shape = (new_shape,) if is_number(new_shape) else tuple(new_shape)
    return _by_numpy("resize_fallback", a, {"new_shape": shape})


def empty_like(prototype: Any, dtype: Any = None, order: str = "C", subok: bool = False, shape: Any = None) -> Any:
    """Return a node of zeros in the shape of `prototype`."""
    given, further = dtype_name(dtype), {"order": order, "subok": str(bool(subok)), "shape": "None"}
    return _by_numpy("empty_like_fallback", prototype, {"dtype": given}, **further | {"dtype": given or "None"})


def copy(a: Any, out: Any = None) -> Any:
    """Return a node of the same values."""
    _no_out(out, "copy")
    return make_node("_copy", (as_np(a),), {})


def ravel(x: Any, order: str = "C") -> Any:
    """Return a node of the elements in one axis."""
    return make_node("_npx_reshape", (as_np(x),), {"newshape": (-1,), "order": order}, "reshape")


def repeat(a: Any, repeats: int, axis: int | None = None) -> Any:
    """Return a node of every element `repeats` times, along `axis` or of the flattened symbol."""
    return make_node("repeat", (as_np(a),), {"repeats": repeats, "axis": axis})


def inner(a: Any, b: Any) -> Any:
    """Return a node of the sums of products over the last axes, of which both symbols have one."""
    axes = {"a_axes_summed": (-1,), "b_axes_summed": (-1,)}
    return make_node("_npi_tensordot", (as_np(a), as_np(b)), axes)


def vdot(a: Any, b: Any) -> Any:
    """Return a node of the sum of the products of all elements."""
    flat = [make_node("_np_reshape", (as_np(x),), {"newshape": (-1,)}) for x in (a, b)]
    return make_node("_npi_tensordot_int_axes", flat, {"axes": 1})


def diag_indices_from(arr: Any) -> Any:
    """Return a node of the coordinates of the main diagonal, one row for each axis."""
    return make_node("_npi_diag_indices_from", (as_np(arr),), {})


def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    """Return a node of the coordinates of flat positions in `shape`, one row for each axis."""
    lengths = (shape,) if is_number(shape) else tuple(shape)
    return _by_numpy("unravel_index_fallback", indices, {"shape": lengths})


def shares_memory(a: Any, b: Any, max_work: Any = None) -> Any:
    """Return a node of whether two arrays are the same memory."""
    return make_node("_npi_share_memory", (as_np(a), as_np(b)), {})


def percentile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = None, interpolation: str = "linear",
    keepdims: bool = False,
) -> Any:  # fmt: skip
    """Return a node of the `q`-th percentiles, `q` a number or a symbol from 0 to 100."""
    _no_out(out, "percentile")
    if overwrite_input is not None:
        raise UnsupportedError("percentile: overwrite_input: expected None; the input is never overwritten")
    params = {"axis": axes_of(axis, "percentile"), "interpolation": interpolation, "keepdims": bool(keepdims)}
    if isinstance(q, Symbol):
        return make_node("_npi_percentile", (as_np(a), as_np(q)), params)
    return make_node("_npi_percentile", (as_np(a),), params | {"q_scalar": float(q)})


def quantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = None, interpolation: str = "linear",
    keepdims: bool = False,
) -> Any:  # fmt: skip
    """Return a node of the `q`-th quantiles, `q` a number or a symbol from 0 to 1."""
    return percentile(a, (as_np(q) if isinstance(q, Symbol) else q) * 100, axis, out, overwrite_input, interpolation,
                      keepdims)  # fmt: skip


def histogram(
    a: Any, bins: Any = 10, range: Any = None, normed: Any = None, weights: Any = None, density: Any = None
) -> Any:
    """Return nodes of the counts between bin edges and of the edges; `range` is needed where `bins` is a number."""
    if normed or density or weights is not None:
        raise UnsupportedError("histogram: normed, density and weights are not supported")
    if isinstance(bins, Symbol):
        return split_outputs(make_node("_histogram", (as_np(a), as_np(bins)), {}))
    if not is_number(bins):
        raise UnsupportedError(f"histogram: bins={bins!r}: expected a number or a symbol")
    if range is None:
        raise UnsupportedError("histogram: range=None: a symbol has no values to find the range of")
    return split_outputs(make_node("_histogram", (as_np(a),), {"bin_cnt": int(bins), "range": tuple(range)}))


def _place(obj: Any, what: str) -> dict[str, int | None]:
    """The parameters that say which positions an int or a slice names."""
    if isinstance(obj, slice):
        return {"start": obj.start, "stop": obj.stop, "step": obj.step}
    if not isinstance(obj, int):
        raise ArgumentTypeError(f"{what}: obj={obj!r}: expected an int, a slice or a symbol")
    return {"int_ind": obj}


def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """Return a node of `arr` without the positions `obj`: an int, a slice or a symbol."""
    if isinstance(obj, Symbol):
        return make_node("_npi_delete", (as_np(arr), as_np(obj)), {"axis": axis})
    return make_node("_npi_delete", (as_np(arr),), {"axis": axis, **_place(obj, "delete")})


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """Return a node of `arr` with a number or a symbol before the positions `obj`: an int, a slice or a symbol."""
    inputs = [as_np(arr), *([as_np(values)] if isinstance(values, Symbol) else [])]
    params: dict[str, Any] = {"axis": axis, "val": None if isinstance(values, Symbol) else float(values)}
    if isinstance(obj, Symbol):
        return make_node("_npi_insert_tensor", (*inputs, as_np(obj)), params)
    kind = "slice" if isinstance(obj, slice) else "scalar"
    return make_node(f"_npi_insert_{kind}", inputs, params | _place(obj, "insert"))


def pad(x: Any, pad_width: Any = None, mode: str = "constant", **kwargs: Any) -> Any:
    """Return a node of `x` widened by a pair of lengths for each axis, a tuple of tuples; see `mx.np.pad`."""
    if not isinstance(pad_width, tuple):
        raise ArgumentTypeError(f"pad: pad_width={pad_width!r}: expected a tuple")
    if mode == "constant":
        # MXNet takes a number for this kind of node twice.
        NameManager.current.get(None, "pad")
    return manipulation.pad(as_np(x), pad_width, mode, **kwargs)


def _named(operator: str, hint: str) -> Callable[..., Any]:
    """A function of one symbol whose node is called after the function, not after the operator."""

    def function(x: Any, out: Any = None) -> Any:
        _no_out(out, hint)
        return make_node(operator, (as_np(x),), {}, hint)

    function.__name__ = function.__qualname__ = hint
    function.__doc__ = f"Return a node of what `mx.np.{hint}` computes."
    return function


def _reduction(operator: str, hint: str) -> Callable[..., Any]:
    """A reduction whose node is called after the function, not after the operator."""

    def function(
        a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, dtype: Any = None
    ) -> Any:
        _no_out(out, hint)
        params = {"axis": axes_of(axis, hint), "keepdims": bool(keepdims)}
        further = {"initial": None if initial is None else float(initial), "dtype": dtype_name(dtype)}
        return make_node(operator, (as_np(a),), params | {k: v for k, v in further.items() if v is not None}, hint)

    function.__name__ = function.__qualname__ = hint
    function.__doc__ = f"Return a node of what `mx.np.{hint}` computes."
    return function


OWN: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        copy, delete, diag_indices_from, empty_like, histogram, inner, insert, pad, percentile, quantile, ravel, repeat,
        resize, shares_memory, unravel_index, vdot,
    )
}  # fmt: skip
OWN |= {
    "abs": _named("abs", "abs"),
    "absolute": _named("abs", "absolute"),
    "amax": _reduction("_np_max", "amax"),
    "amin": _reduction("_np_min", "amin"),
    "fabs": _named("abs", "abs"),
    "may_share_memory": shares_memory,
    "product": _reduction("_np_prod", "product"),
    "sometrue": _reduction("_np_any", "sometrue"),
}
