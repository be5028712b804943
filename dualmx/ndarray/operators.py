"""Python operators of arrays: one prepared call per kind of operand, so that recording is one look-up."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from ..core.errors import ArgumentTypeError
from ..op import defs as _defs  # noqa: F401  (fills the registry)
from ..op.operator_table import ARITHMETIC, BINARY_FUNCTIONS, COMPARISON
from ..op.registry import OPS, Call
from .handle import invoke_binary, invoke_out, invoke_unary
from .ndarray import NDArray


class ScalarCalls(dict):
    """The calls of one scalar operator by scalar; made when first met."""

    def __init__(self, name: str):
        super().__init__()
        self.op = OPS[name]

    def __missing__(self, scalar: Any) -> Call:
        value = float(scalar)
        call = self.op.bind(self.op.parse({"scalar": value}))
        # 0.0 and -0.0 are one key but two calls; neither is kept.
        if value != 0.0:
            if len(self) > 4096:
                self.clear()
            self[scalar] = call
        return call


_PLAIN = {int, float}


def _scalar(b: Any, what: str) -> Any:
    """Return `b` as a number, or None when it is array-like and must be converted."""
    if isinstance(b, (numbers.Number, np.number, np.bool_)) and not isinstance(b, complex):
        return b
    raise ArgumentTypeError(f"{what}: {type(b).__name__} operand is not supported; expected an NDArray or a number")


def _as_operand(a: NDArray, b: Any, what: str) -> Any:
    """Convert a NumPy or JAX array operand to an NDArray beside `a`; numbers pass."""
    if isinstance(b, np.ndarray) or hasattr(b, "__jax_array__") or type(b).__module__.startswith("jax"):
        if getattr(b, "ndim", 0) == 0 and isinstance(b, np.ndarray):
            return b.item()
        from .creation import array

        return array(b, ctx=a.context, dtype=a.dtype if isinstance(b, np.ndarray) else None)
    return _scalar(b, what)


def binary(symbol: str, name: str, scalar_name: str) -> Any:
    """Return the method for `a <symbol> b`."""
    call = OPS[name].call()
    scalars = ScalarCalls(scalar_name)

    def method(self: NDArray, other: Any) -> Any:
        # The exact class first: it is the common case, and quicker to tell than by `isinstance`.
        if other.__class__ is NDArray:
            return invoke_binary(call, self, other)
        if other.__class__ in _PLAIN:
            return invoke_unary(scalars[other], self)
        if isinstance(other, NDArray):
            return invoke_binary(call, self, other)
        other = _as_operand(self, other, symbol)
        return invoke_binary(call, self, other) if isinstance(other, NDArray) else invoke_unary(scalars[other], self)

    method.__doc__ = f"Element-wise `a {symbol} b`, broadcast; a number is cast to the array's dtype first."
    return method


def reflected(symbol: str, name: str, scalar_name: str) -> Any:
    """Return the method for `b <symbol> a` with an array on the right."""
    call = OPS[name].call()
    scalars = ScalarCalls(scalar_name)

    def method(self: NDArray, other: Any) -> Any:
        if other.__class__ in _PLAIN:
            return invoke_unary(scalars[other], self)
        other = _as_operand(self, other, symbol)
        return invoke_binary(call, other, self) if isinstance(other, NDArray) else invoke_unary(scalars[other], self)

    method.__doc__ = f"Element-wise `b {symbol} a` with the array on the right."
    return method


def inplace(symbol: str, name: str, scalar_name: str) -> Any:
    """Return the method for `a <symbol>= b`; the object keeps its identity."""
    call = OPS[name].call()
    scalars = ScalarCalls(scalar_name)

    def method(self: NDArray, other: Any) -> Any:
        if not isinstance(other, NDArray):
            other = other if other.__class__ in _PLAIN else _as_operand(self, other, symbol)
        if isinstance(other, NDArray):
            invoke_out(call, (self, other), (self,))
        else:
            invoke_out(scalars[other], (self,), (self,))
        return self

    method.__doc__ = f"In-place `a {symbol} b`; raises on arrays that are part of a recorded graph."
    return method


def install(cls: type[NDArray]) -> None:
    """Give the array class its operators."""
    for key, (symbol, function) in ARITHMETIC.items():
        name, scalar_name, reflected_name = BINARY_FUNCTIONS[function]
        setattr(cls, f"__{key}__", binary(symbol, name, scalar_name))
        setattr(cls, f"__r{key}__", reflected(symbol, name, reflected_name))
        if key != "pow":
            # MXNet has no in-place power: `x **= 2` gives the name x to a new array.
            setattr(cls, f"__i{key}__", inplace(symbol, name, scalar_name))
    for key, (symbol, function) in COMPARISON.items():
        name, scalar_name, _ = BINARY_FUNCTIONS[function]
        setattr(cls, f"__{key}__", binary(symbol, name, scalar_name))
    negative, absolute = OPS["negative"].call(), OPS["abs"].call()
    # Of truth values the negative is a whole number, as that of a product with -1.
    minus_one = OPS["_mul_scalar"].call(scalar=-1.0)
    cls.__neg__ = lambda self: invoke_unary(minus_one if self._value.dtype.kind == "b" else negative, self)
    cls.__abs__ = lambda self: invoke_unary(absolute, self)
    cls.__matmul__ = lambda self, other: (
        invoke_binary(OPS["dot"].call(), self, other) if isinstance(other, NDArray) else NotImplemented
    )


install(NDArray)
