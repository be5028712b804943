"""Python operators on arrays with NumPy's semantics."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..ndarray.handle import invoke1, invoke2, invoke_out
from ..ndarray.operators import ScalarCalls
from ..op.registry import OPS
from .array import ndarray, wrap
from .calls import NUMBERS, from_values

_PLAIN = {int, float, bool}

# method: operator on arrays, with the scalar on the right, on the left
ARITHMETIC = {
    "add": ("_npi_add", "_npi_add_scalar", "_npi_add_scalar"),
    "sub": ("_npi_subtract", "_npi_subtract_scalar", "_npi_rsubtract_scalar"),
    "mul": ("_npi_multiply", "_npi_multiply_scalar", "_npi_multiply_scalar"),
    "truediv": ("_npi_true_divide", "_npi_true_divide_scalar", "_npi_rtrue_divide_scalar"),
    "floordiv": ("_npi_floor_divide", "_npi_floor_divide_scalar", "_npi_rfloor_divide_scalar"),
    "mod": ("_npi_mod", "_npi_mod_scalar", "_npi_rmod_scalar"),
    "pow": ("_npi_power", "_npi_power_scalar", "_npi_rpower_scalar"),
    "and": ("_npi_bitwise_and", "_npi_bitwise_and_scalar", "_npi_bitwise_and_scalar"),
    "or": ("_npi_bitwise_or", "_npi_bitwise_or_scalar", "_npi_bitwise_or_scalar"),
    "xor": ("_npi_bitwise_xor", "_npi_bitwise_xor_scalar", "_npi_bitwise_xor_scalar"),
}
COMPARISON = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}


def operand(b: Any, beside: ndarray) -> Any:
    """Return an operand as an array beside another or as a number, NotImplemented if it is neither."""
    if isinstance(b, (ndarray, *NUMBERS)):
        return b
    if isinstance(b, onp.ndarray):
        return from_values(b, beside.context) if b.ndim else b[()]
    if type(b).__module__.startswith("jax") or hasattr(b, "__jax_array__") and not isinstance(b, type(beside).__base__):
        return from_values(b, beside.context)
    return NotImplemented


def binary(name: str, scalar_name: str) -> Any:
    """Return the method for an array on the left."""
    call, scalars = OPS[name].call(), ScalarCalls(scalar_name)

    def method(a: ndarray, b: Any) -> Any:
        if b.__class__ is ndarray:
            return wrap(invoke2(call, a, b))
        if b.__class__ not in _PLAIN:
            b = operand(b, a)
            if b is NotImplemented:
                return b
            if isinstance(b, ndarray):
                return wrap(invoke2(call, a, b))
        return wrap(invoke1(scalars[b], a))

    return method


def reflected(name: str, scalar_name: str) -> Any:
    """Return the method for an array on the right."""
    call, scalars = OPS[name].call(), ScalarCalls(scalar_name)

    def method(a: ndarray, b: Any) -> Any:
        b = operand(b, a)
        if b is NotImplemented:
            return b
        return wrap(invoke2(call, b, a) if isinstance(b, ndarray) else invoke1(scalars[b], a))

    return method


def inplace(name: str, scalar_name: str) -> Any:
    """Return the method that overwrites the array, which keeps its dtype and identity."""
    call, scalars = OPS[name].call(), ScalarCalls(scalar_name)

    def method(a: ndarray, b: Any) -> Any:
        b = operand(b, a)
        if b is NotImplemented:
            return b
        if isinstance(b, ndarray):
            invoke_out(call, (a, b), (a,))
        else:
            invoke_out(scalars[b], (a,), (a,))
        return a

    return method


def _matmul(a: Any, b: Any) -> Any:
    b = operand(b, a)
    return wrap(invoke2(OPS["_npi_matmul"].call(), a, b)) if isinstance(b, ndarray) else NotImplemented


def _rmatmul(a: Any, b: Any) -> Any:
    b = operand(b, a)
    return wrap(invoke2(OPS["_npi_matmul"].call(), b, a)) if isinstance(b, ndarray) else NotImplemented


def _imatmul(a: Any, b: Any) -> Any:
    b = operand(b, a)
    if not isinstance(b, ndarray):
        return NotImplemented
    invoke_out(OPS["_npi_matmul"].call(), (a, b), (a,))
    return a


def _unary(name: str) -> Any:
    call = OPS[name].call()
    return lambda a: wrap(invoke1(call, a))


def install(cls: type) -> None:
    """Give the array class its operators."""
    for key, (name, right, left) in ARITHMETIC.items():
        setattr(cls, f"__{key}__", binary(name, right))
        setattr(cls, f"__r{key}__", reflected(name, left))
        setattr(cls, f"__i{key}__", inplace(name, right))
    for key, name in COMPARISON.items():
        setattr(cls, f"__{key}__", binary(f"_npi_{name}", f"_npi_{name}_scalar"))
    for key, name in (("neg", "negative"), ("abs", "abs"), ("pos", "_copy"), ("invert", "_npi_bitwise_not")):
        setattr(cls, f"__{key}__", _unary(name))
    cls.__matmul__, cls.__rmatmul__, cls.__imatmul__ = _matmul, _rmatmul, _imatmul  # type: ignore[attr-defined]
    cls.__hash__ = lambda self: id(self) >> 4  # type: ignore[method-assign]


install(ndarray)
