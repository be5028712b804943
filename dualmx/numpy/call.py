"""Call operators from NumPy functions: arguments become arrays, results go to `out`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as onp

from ..core.context import Context
from ..core.dtypes import as_dtype
from ..core.errors import ArgumentError, ArgumentTypeError, UnsupportedError
from ..ndarray.creation import from_jax
from ..ndarray.handle import invoke, invoke_out, invoke_unary
from ..ndarray.interop import array_from_numpy
from ..ndarray.ndarray import NDArray
from ..op.registry import OPS, Call
from ..symbol import Symbol
from .np_ndarray import as_np_class, ndarray
from .np_symbol import as_np, make_node, split_outputs

SCALAR_TYPES = (int, float, bool, onp.number, onp.bool_)
_calls: dict[Any, Call] = {}


def is_number(value: Any) -> bool:
    """True for Python's and NumPy's real numbers and bools."""
    return isinstance(value, SCALAR_TYPES)


def cached_call(name: str, params: dict[str, Any]) -> Call:
    """Return the call of an operator with these parameters, remembered by their values."""
    if any(v.__class__ is float for v in params.values()):
        # 0.0 and -0.0, 1.0 and 1 are equal but not the same parameter.
        return OPS[name].call(**params)
    try:
        key = (name, *params.items())
        found = _calls.get(key)
    except TypeError:
        return OPS[name].call(**params)
    if found is None:
        if len(_calls) > 4096:
            _calls.clear()
        found = _calls[key] = OPS[name].call(**params)
    return found


def array_from_values(values: Any, ctx: Context | None = None) -> ndarray:
    """Return an array with a copy of NumPy or JAX values, dtype kept."""
    if isinstance(values, onp.ndarray):
        # NumPy's types that have no counterpart here raise.
        return as_np_class(array_from_numpy(values.astype(as_dtype(values.dtype), copy=False), ctx))
    return as_np_class(from_jax(values, ctx, copy=True))


def as_array(value: Any, what: str, name: str = "a", like: Any = None) -> ndarray:
    """Return an argument as an array; NumPy and JAX arrays are converted, their dtype kept.

    Raises:
        ArgumentTypeError: it is no array, or a classic one, which follows other rules.
    """
    if isinstance(value, (ndarray, Symbol)):
        return cast_symbol(value)
    if isinstance(value, NDArray):
        raise ArgumentTypeError(f"{what}: {name} is a classic NDArray: expected a mx.np.ndarray; use .as_np_ndarray()")
    if isinstance(value, (onp.ndarray, onp.generic)) or hasattr(value, "__jax_array__") or _is_jax(value):
        ctx = like.context if isinstance(like, NDArray) else None
        return array_from_values(onp.asarray(value) if isinstance(value, onp.generic) else value, ctx)
    raise ArgumentTypeError(
        f"{what}: {name} of type {type(value).__name__}: expected a mx.np.ndarray; make one with mx.np.array()"
    )


def _is_jax(value: Any) -> bool:
    return type(value).__module__.startswith("jax")


def call_op(name: str, *arrays: NDArray, out: Any = None, **params: Any) -> Any:
    """Return the one visible result of an operator on arrays, or store it in `out` and return that."""
    if is_symbolic(arrays):
        return symbol_node(name, arrays, params, out)
    call = cached_call(name, params)
    if out is not None:
        return store(call, arrays, out)
    return as_np_class(invoke(call, arrays)[0])


def call_op_all(name: str, *arrays: NDArray, **params: Any) -> list[Any]:
    """Return all visible results of an operator on arrays."""
    if is_symbolic(arrays):
        return split_outputs(symbol_node(name, arrays, params, None))
    call = cached_call(name, params)
    return [as_np_class(a) for a in invoke(call, arrays)[: call.n_visible]]


def is_symbolic(arrays: Sequence[Any]) -> bool:
    """True if an argument is a symbol, so that a node is made instead of a result."""
    return any(isinstance(a, Symbol) for a in arrays)


def cast_symbol(value: Any) -> Any:
    """Return an argument that may be a classic symbol as one with NumPy semantics."""
    if type(value) is Symbol:
        return as_np(value)
    return value


def symbol_node(name: str, inputs: Sequence[Any], params: dict[str, Any], out: Any) -> Any:
    """Return the node of an operator on symbols."""
    if out is not None:
        raise ArgumentTypeError(f"{name}: out= needs an array; a symbol has no values to write")
    return make_node(name, inputs, params)


def target(out: Any, what: str) -> Any:
    """Return the array to write to; NumPy's protocol hands it over as a tuple."""
    if isinstance(out, tuple) and len(out) == 1:
        out = out[0]
    if not isinstance(out, ndarray):
        raise ArgumentTypeError(f"{what}: out of type {type(out).__name__}: expected a mx.np.ndarray")
    return out


def store(call: Call, arrays: Sequence[NDArray], out: Any) -> Any:
    """Write the result of `call` to `out` (cast to its dtype) and return it."""
    found = target(out, call.op.name)
    (_, given), *_ = call.infer(tuple((a.aval.shape, a.aval.dtype) for a in arrays))
    _same_kind(given, found.aval.dtype, call.op.name)
    invoke_out(call, arrays, (found,))
    return found


_KINDS = {"b": 0, "u": 1, "i": 1, "V": 2, "f": 2}


def _same_kind(given: onp.dtype, wanted: onp.dtype, what: str) -> None:
    if _KINDS.get(given.kind, 2) > _KINDS.get(wanted.kind, 2):
        raise ArgumentTypeError(f"{what}: a result of {given} cannot be written to an array of {wanted}")


def write_out(result: Any, out: Any, what: str) -> Any:
    """Return the result of several operators, or write it to `out`."""
    if out is None:
        return result
    found = target(out, what)
    _same_kind(result.aval.dtype, found.aval.dtype, what)
    invoke_out(OPS["_copy"].call(), (result,), (found,))
    return found


def cast(a: ndarray, dtype: Any) -> ndarray:
    """Return `a` in `dtype`, `a` itself if it has it already."""
    wanted = as_dtype(dtype)
    if isinstance(a, Symbol):
        return symbol_node("Cast", (a,), {"dtype": wanted.name}, None)
    return a if a.aval.dtype == wanted else as_np_class(invoke_unary(OPS["Cast"].call(dtype=wanted.name), a))


def to_ints(value: Any) -> tuple[int, ...]:
    """Return an integer, also one in an array without axes, or a sequence of integers as a tuple.

    Raises:
        TypeError, ValueError: it is neither.
    """
    try:
        return (operator.index(value),)
    except TypeError:
        # Iteration over an array without axes ends at once.
        if getattr(value, "shape", None) == ():
            raise
    return tuple(int(n) for n in value)


def axes_of(axis: Any, what: str, name: str = "axis") -> Any:
    """Return an argument that names axes, or has a number for each, as None or a tuple of ints."""
    try:
        return None if axis is None else to_ints(axis)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"{what}: {name}={axis!r}: expected None, an int or a tuple of ints") from None


def one_axis(axis: Any, ndim: int, what: str) -> int:
    """Return an axis counted from the front."""
    try:
        at = int(axis)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"{what}: axis={axis!r}: expected an int") from None
    if not -ndim <= at < ndim:
        raise ArgumentError(f"{what}: axis {at} is out of bounds for array of dimension {ndim}")
    return at % ndim


def axis_of(axis: Any, a: Any, what: str) -> int:
    """Return an axis of `a` counted from the front; unchanged for a symbol, whose shape is unknown."""
    return int(axis) if isinstance(a, Symbol) else one_axis(axis, a.ndim, what)


def shape_of(shape: Any, what: str) -> tuple[int, ...]:
    """Return a shape argument as a tuple of lengths of 0 or more."""
    try:
        found = to_ints(shape)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"{what}: shape={shape!r}: expected an int or a tuple of ints") from None
    if any(n < 0 for n in found):
        raise ArgumentError(f"{what}: shape={found}: negative dimensions are not allowed")
    return found


def c_order(order: Any, what: str) -> None:
    """Raise unless `order` is C, the only one there is."""
    if order not in ("C", "K", "A", None):
        raise UnsupportedError(f"{what}: order={order!r}: only 'C' is supported")
