"""Python operators of arrays with NumPy's semantics."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..core.errors import ArgumentTypeError
from ..ndarray.handle import invoke_binary, invoke_unary
from ..ndarray.ndarray import NDArray
from ..ndarray.operators import ScalarCalls
from ..op.registry import OPS
from .call import SCALAR_TYPES, array_from_values, store
from .elementwise import operator_names
from .np_ndarray import as_np_class, ndarray

_PLAIN = {int, float, bool}

_FUNCTIONS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "true_divide",
    "floordiv": "floor_divide",
    "mod": "mod",
    "pow": "power",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
}
# method: operator on arrays, with the scalar on the right, on the left
ARITHMETIC = {key: operator_names(name) for key, name in _FUNCTIONS.items()}
COMPARISON = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}


def operand(b: Any, like: ndarray) -> Any:
    """Return an operand as an array like another or as a number, NotImplemented if it is neither.

    Raises:
        ArgumentTypeError: it is a classic array, which follows other rules.
    """
    if isinstance(b, (ndarray, *SCALAR_TYPES)):
        return b
    if isinstance(b, NDArray):
        raise ArgumentTypeError("mx.np.ndarray and mx.nd.NDArray do not mix; use .as_np_ndarray() or .as_nd_ndarray()")
    if isinstance(b, onp.ndarray):
        return array_from_values(b, like.context) if b.ndim else b[()]
    if type(b).__module__.startswith("jax") or hasattr(b, "__jax_array__"):
        return array_from_values(b, like.context)
    return NotImplemented


def binary(name: str, scalar_name: str) -> Any:
    """Return the method for an array on the left."""
    call, scalars = OPS[name].call(), ScalarCalls(scalar_name)

    def method(self: ndarray, other: Any) -> Any:
        if other.__class__ is ndarray:
            return as_np_class(invoke_binary(call, self, other))
        if other.__class__ not in _PLAIN:
            other = operand(other, self)
            if other is NotImplemented:
                return other
            if isinstance(other, ndarray):
                return as_np_class(invoke_binary(call, self, other))
        return as_np_class(invoke_unary(scalars[other], self))

    return method


def equality(name: str) -> Any:
    """Return the method for == or !=: what is neither array nor number is an error, not unequal."""
    compare = binary(f"_npi_{name}", f"_npi_{name}_scalar")

    def method(self: ndarray, other: Any) -> Any:
        found = compare(self, other)
        if found is NotImplemented:
            raise ArgumentTypeError(f"{name}: other of type {type(other).__name__}: expected an array or a number")
        return found

    return method


def reflected(name: str, scalar_name: str) -> Any:
    """Return the method for an array on the right."""
    call, scalars = OPS[name].call(), ScalarCalls(scalar_name)

    def method(self: ndarray, other: Any) -> Any:
        other = operand(other, self)
        if other is NotImplemented:
            return other
        return as_np_class(
            invoke_binary(call, other, self) if isinstance(other, ndarray) else invoke_unary(scalars[other], self)
        )

    return method


def inplace(name: str, scalar_name: str) -> Any:
    """Return the method that overwrites the array, which keeps its dtype and identity."""
    call, scalars = OPS[name].call(), ScalarCalls(scalar_name)

    def method(self: ndarray, other: Any) -> Any:
        other = operand(other, self)
        if other is NotImplemented:
            return other
        if isinstance(other, ndarray):
            return store(call, (self, other), self)
        return store(scalars[other], (self,), self)

    return method


def _product(turned: bool, into: bool = False) -> Any:
    def method(self: ndarray, other: Any) -> Any:
        other = operand(other, self)
        if not isinstance(other, ndarray):
            return NotImplemented
        call, pair = OPS["_npi_matmul"].call(), (other, self) if turned else (self, other)
        return store(call, pair, self) if into else as_np_class(invoke_binary(call, *pair))

    return method


def _unary(name: str) -> Any:
    call = OPS[name].call()
    return lambda self: as_np_class(invoke_unary(call, self))


def install(cls: type) -> None:
    """Give the array class its operators."""
    for key, (name, right, left) in ARITHMETIC.items():
        setattr(cls, f"__{key}__", binary(name, right))
        setattr(cls, f"__r{key}__", reflected(name, left))
        if key != "pow":
            # MXNet has no in-place power: `x **= 2` gives the name x to a new array.
            setattr(cls, f"__i{key}__", inplace(name, right))
    for key, name in COMPARISON.items():
        compared = equality(name) if key in ("eq", "ne") else binary(f"_npi_{name}", f"_npi_{name}_scalar")
        setattr(cls, f"__{key}__", compared)
    minus_one, negated = OPS["_mul_scalar"].call(scalar=-1.0), _unary("negative")
    # Of truth values the negative is a whole number, as that of a product with -1.

    def negative(self: Any) -> Any:
        return as_np_class(invoke_unary(minus_one, self)) if self._value.dtype.kind == "b" else negated(self)

    setattr(cls, "__neg__", negative)  # noqa: B010
    for key, name in (("abs", "abs"), ("pos", "_copy"), ("invert", "_npi_bitwise_not")):
        setattr(cls, f"__{key}__", _unary(name))
    for key, method in (("matmul", _product(False)), ("rmatmul", _product(True)), ("imatmul", _product(False, True))):
        setattr(cls, f"__{key}__", method)
    setattr(cls, "__hash__", lambda self: id(self) >> 4)  # noqa: B010


install(ndarray)
