"""Elementwise functions of one or two operands, made from two tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

from ..core.dtypes import as_dtype
from ..core.errors import ArgumentTypeError, UnsupportedError
from ..ndarray.handle import invoke, invoke_binary, invoke_unary
from ..ndarray.ndarray import NDArray
from ..ndarray.operators import ScalarCalls
from ..op.registry import OPS, Call
from ..symbol import Symbol
from .call import as_array, call_op, cast, is_number, is_symbolic, store, symbol_node
from .creation import array, zeros_like
from .np_ndarray import as_np_class, ndarray
from .np_symbol import scalar_params

# name: operator, what it computes
UNARY: dict[str, tuple[str, str]] = {
    "abs": ("abs", "absolute value"),
    "absolute": ("abs", "absolute value"),
    "fabs": ("abs", "absolute value"),
    "negative": ("negative", "negative"),
    "sign": ("sign", "sign: -1, 0 or 1"),
    "rint": ("rint", "nearest integer, halves down"),
    "ceil": ("ceil", "smallest integer not below"),
    "floor": ("floor", "largest integer not above"),
    "trunc": ("trunc", "nearest integer toward zero"),
    "fix": ("fix", "nearest integer toward zero"),
    "sqrt": ("sqrt", "square root"),
    "cbrt": ("cbrt", "cube root"),
    "square": ("square", "square"),
    "reciprocal": ("reciprocal", "reciprocal"),
    "exp": ("exp", "exponential"),
    "expm1": ("expm1", "exponential minus 1"),
    "log": ("log", "natural logarithm"),
    "log10": ("log10", "logarithm to base 10"),
    "log2": ("log2", "logarithm to base 2"),
    "log1p": ("log1p", "logarithm of 1 + x"),
    "sin": ("sin", "sine"),
    "cos": ("cos", "cosine"),
    "tan": ("tan", "tangent"),
    "arcsin": ("arcsin", "inverse sine"),
    "arccos": ("arccos", "inverse cosine"),
    "arctan": ("arctan", "inverse tangent"),
    "sinh": ("sinh", "hyperbolic sine"),
    "cosh": ("cosh", "hyperbolic cosine"),
    "tanh": ("tanh", "hyperbolic tangent"),
    "arcsinh": ("arcsinh", "inverse hyperbolic sine"),
    "arccosh": ("arccosh", "inverse hyperbolic cosine"),
    "arctanh": ("arctanh", "inverse hyperbolic tangent"),
    "degrees": ("degrees", "angle in degrees"),
    "rad2deg": ("degrees", "angle in degrees"),
    "radians": ("radians", "angle in radians"),
    "deg2rad": ("radians", "angle in radians"),
    "positive": ("_copy", "value itself"),
    "logical_not": ("_npi_logical_not", "whether it is 0, as bool"),
    "isnan": ("_npi_isnan", "whether it is nan, as bool"),
    "isinf": ("_npi_isinf", "whether it is infinite, as bool"),
    "isfinite": ("_npi_isfinite", "whether it is neither infinite nor nan, as bool"),
    "isposinf": ("_npi_isposinf", "whether it is positive infinity, as bool"),
    "isneginf": ("_npi_isneginf", "whether it is negative infinity, as bool"),
    "bitwise_not": ("_npi_bitwise_not", "bitwise complement"),
    "invert": ("_npi_bitwise_not", "bitwise complement"),
}

# name: stem of the operators, whether the form with the scalar on the left is an operator of its own, what it computes
BINARY: dict[str, tuple[str, str, str]] = {
    "add": ("add", "add", "x1 + x2"),
    "subtract": ("subtract", "rsubtract", "x1 - x2"),
    "multiply": ("multiply", "multiply", "x1 * x2"),
    "divide": ("true_divide", "rtrue_divide", "x1 / x2, float32 for integers"),
    "true_divide": ("true_divide", "rtrue_divide", "x1 / x2, float32 for integers"),
    "floor_divide": ("floor_divide", "rfloor_divide", "floor(x1 / x2)"),
    "mod": ("mod", "rmod", "x1 modulo x2, with the sign of x2"),
    "remainder": ("mod", "rmod", "x1 modulo x2, with the sign of x2"),
    "power": ("power", "rpower", "x1 ** x2"),
    "maximum": ("maximum", "maximum", "the larger of x1 and x2"),
    "minimum": ("minimum", "minimum", "the smaller of x1 and x2"),
    "hypot": ("hypot", "hypot", "sqrt(x1**2 + x2**2)"),
    "arctan2": ("arctan2", "rarctan2", "the angle of the point (x2, x1)"),
    "copysign": ("copysign", "rcopysign", "|x1| with the sign of x2"),
    "ldexp": ("ldexp", "rldexp", "x1 * 2**x2"),
    "lcm": ("lcm", "lcm", "the least common multiple of integers"),
    "bitwise_and": ("bitwise_and", "bitwise_and", "the bits set in both integers"),
    "bitwise_or": ("bitwise_or", "bitwise_or", "the bits set in either integer"),
    "bitwise_xor": ("bitwise_xor", "bitwise_xor", "the bits set in one of the integers"),
    "equal": ("equal", "equal", "x1 == x2, as bool"),
    "not_equal": ("not_equal", "not_equal", "x1 != x2, as bool"),
    "less": ("less", "greater", "x1 < x2, as bool"),
    "less_equal": ("less_equal", "greater_equal", "x1 <= x2, as bool"),
    "greater": ("greater", "less", "x1 > x2, as bool"),
    "greater_equal": ("greater_equal", "less_equal", "x1 >= x2, as bool"),
    "logical_and": ("logical_and", "logical_and", "whether both are other than 0, as bool"),
    "logical_or": ("logical_or", "logical_or", "whether either is other than 0, as bool"),
    "logical_xor": ("logical_xor", "logical_xor", "whether exactly one is other than 0, as bool"),
}


def operator_names(name: str) -> tuple[str, str, str]:
    """Return the operators of a function on two arrays, with a number on the right, and with one on the left."""
    stem, reflected, _ = BINARY[name]
    return f"_npi_{stem}", f"_npi_{stem}_scalar", f"_npi_{reflected}_scalar"


def _masked(result: Any, where: Any, out: Any, what: str) -> Any:
    """Return the result where a mask is true, elsewhere the old values of `out` (0 without `out`)."""
    mask = array(where, dtype="bool")
    base = out if out is not None else zeros_like(result)
    return call_op("_npi_where", mask, result, cast(base, result.dtype))


def _run_with_ufunc_kwargs(call: Call, ins: tuple[NDArray, ...], out: Any, kwargs: dict[str, Any]) -> Any:
    """Run a call, honouring NumPy's keywords `out`, `where` and `dtype`."""
    what = call.op.name
    where, dtype = kwargs.pop("where", True), kwargs.pop("dtype", None)
    for name, usual in (("casting", "same_kind"), ("order", "K"), ("subok", True)):
        if kwargs.pop(name, usual) != usual:
            raise UnsupportedError(f"{what}: {name}: expected {usual!r}, the only choice here")
    if kwargs:
        raise ArgumentTypeError(f"{what}: unexpected argument {next(iter(kwargs))!r}")
    if is_symbolic(ins):
        if dtype is not None or where is not True:
            raise ArgumentTypeError(f"{what}: dtype and where are not supported on symbols")
        changed = {k: v for k, v in call.params.items() if v != call.op.params[k].default}
        return symbol_node(what, ins, changed, out)
    if isinstance(out, tuple) and len(out) == 1:
        out = out[0]
    if dtype is not None:
        ins = tuple(as_np_class(a.astype(dtype)) if a.aval.dtype != as_dtype(dtype) else a for a in ins)
    if where is True:
        return as_np_class(invoke(call, ins)[0]) if out is None else store(call, ins, out)
    result = _masked(as_np_class(invoke(call, ins)[0]), where, out, what)
    return result if out is None else store(OPS["_copy"].call(), (result,), out)


def _set_signature(function: Any, name: str, doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__module__ = "dualmx.numpy"
    function.__doc__ = doc
    return function


def unary(name: str, op_name: str, what: str) -> Callable[..., Any]:
    """Return the function `name(x, out=None, **kwargs)`."""
    call, on_number = OPS[op_name].call(), getattr(onp, name)

    def function(x: Any, out: Any = None, **kwargs: Any) -> Any:
        if x.__class__ is ndarray and out is None and not kwargs:
            return as_np_class(invoke_unary(call, x))
        if is_number(x) and out is None:
            return on_number(x, **kwargs)
        return _run_with_ufunc_kwargs(call, (as_array(x, name, "x"),), out, kwargs)

    return _set_signature(
        function,
        name,
        f"""Return the {what} of every element, in the dtype of `x` unless stated; of a number, NumPy's answer.

        Args:
            x: array or number.
            out: array to write to, which is returned.
            kwargs: `where`, a mask of the elements to compute (others keep `out`); `dtype`, to compute in.
        """,
    )


def _binary_with_symbol(calls: ScalarCalls, number: Any, turned: bool) -> Call:
    return calls.op.call(**scalar_params(number, turned))


def binary(name: str, stem: str, reflected: str, what: str) -> Callable[..., Any]:
    """Return the function `name(x1, x2, out=None, **kwargs)`."""
    call, on_numbers = OPS[f"_npi_{stem}"].call(), getattr(onp, name)
    right, left = ScalarCalls(f"_npi_{stem}_scalar"), ScalarCalls(f"_npi_{reflected}_scalar")

    def function(x1: Any, x2: Any, out: Any = None, **kwargs: Any) -> Any:
        if x1.__class__ is ndarray and x2.__class__ is ndarray and out is None and not kwargs:
            return as_np_class(invoke_binary(call, x1, x2))
        if is_number(x2):
            if is_number(x1):
                return on_numbers(x1, x2, **kwargs)
            if isinstance(x1, Symbol):
                return _run_with_ufunc_kwargs(
                    _binary_with_symbol(right, x2, False), (as_array(x1, name, "x1"),), out, kwargs
                )
            return _run_with_ufunc_kwargs(right[x2], (as_array(x1, name, "x1"),), out, kwargs)
        if is_number(x1):
            if isinstance(x2, Symbol):
                return _run_with_ufunc_kwargs(
                    _binary_with_symbol(left, x1, True), (as_array(x2, name, "x2"),), out, kwargs
                )
            return _run_with_ufunc_kwargs(left[x1], (as_array(x2, name, "x2"),), out, kwargs)
        a = as_array(x1, name, "x1", x2)
        return _run_with_ufunc_kwargs(call, (a, as_array(x2, name, "x2", a)), out, kwargs)

    return _set_signature(
        function,
        name,
        f"""Return {what}, element by element; the shapes broadcast.

        Args:
            x1, x2: arrays or numbers; a number is cast to the array's dtype.
            out: array to write to, which is returned.
            kwargs: `where`, a mask of the elements to compute (others keep `out`); `dtype`, to compute in.
        """,
    )


def around(x: Any, decimals: int = 0, out: Any = None, **kwargs: Any) -> Any:
    """Return `x` rounded to `decimals` places, halves to the even neighbour.

    Example:
        >>> import dualmx as mx
        >>> mx.np.around(mx.np.array([0.5, 1.5, 2.34]))
        array([0., 2., 2.])
    """
    if is_number(x):
        return onp.around(x, decimals)
    return _run_with_ufunc_kwargs(
        OPS["_npi_around"].call(decimals=decimals), (as_array(x, "around", "x"),), out, kwargs
    )


def nan_to_num(
    x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None, **kwargs: Any
) -> Any:
    """Return `x` with nan replaced by `nan` and infinities by large finite numbers, or by `posinf` and `neginf`."""
    if is_number(x):
        return onp.nan_to_num(x, copy, nan, posinf, neginf)
    call = OPS["_npi_nan_to_num"].call(nan=nan, posinf=posinf, neginf=neginf)
    a = as_array(x, "nan_to_num", "x")
    return _run_with_ufunc_kwargs(call, (a,), kwargs.pop("out", None) if copy or isinstance(a, Symbol) else a, kwargs)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: unary(name, *row) for name, row in UNARY.items()},
    **{name: binary(name, *row) for name, row in BINARY.items()},
}
round_ = round = around

__all__ = ["BINARY", "FUNCTIONS", "UNARY", "around", "nan_to_num", "round", "round_"]
