"""Python operators of sparse arrays."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.errors import ArgumentTypeError
from ..ndarray.creation import array
from ..ndarray.ndarray import NDArray
from ..ndarray.operators import ScalarCalls
from ..op.operator_table import ARITHMETIC, BINARY_FUNCTIONS, COMPARISON, SAME_SHAPE_OPS
from ..op.registry import OPS
from .base import BaseSparseNDArray
from .dispatch import invoke, store


def pair(equal: str, unequal: str, scalar: str) -> Callable[[Any, Any], NDArray]:
    """Return the function of a sparse array and an operand."""
    calls = ScalarCalls(scalar)

    def function(self: Any, other: Any) -> NDArray:
        if isinstance(other, np.ndarray) and other.ndim:
            other = array(other, self.context, self.dtype)
        if isinstance(other, NDArray):
            name = equal if self.shape == other.shape else unequal
            return invoke(OPS[name].call(), (self, other))[0]
        if isinstance(other, np.ndarray):
            other = other.item()
        if not isinstance(other, (numbers.Real, np.number, np.bool_)):
            raise ArgumentTypeError(f"{equal}: operand of type {type(other).__name__}: expected an NDArray or a number")
        return invoke(calls[other], (self,))[0]

    return function


def reflected(name: str, scalar: str) -> Callable[[Any, Any], NDArray]:
    """Return the function of an operand and a sparse array on its right.

    Python asks the sparse class first, as it is derived from that of a dense operand.
    """
    with_number = pair(name, name, scalar)

    def function(self: Any, other: Any) -> NDArray:
        if isinstance(other, np.ndarray) and other.ndim:
            other = array(other, self.context, self.dtype)
        return invoke(OPS[name].call(), (other, self))[0] if isinstance(other, NDArray) else with_number(self, other)

    return function


def _inplace(function: Callable[[Any, Any], NDArray]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        store(self, function(self, other), "in-place operation")
        return self

    return method


def install(cls: Any) -> None:
    """Give the sparse classes their operators."""
    for key, (_, name) in ARITHMETIC.items():
        other, scalar, left = BINARY_FUNCTIONS[name]
        function = pair(SAME_SHAPE_OPS.get(name, other), other, scalar)
        setattr(cls, f"__{key}__", function)
        setattr(cls, f"__i{key}__", _inplace(function))
        setattr(cls, f"__r{key}__", reflected(other, left))
    for key, (_, name) in COMPARISON.items():
        other, scalar, _ = BINARY_FUNCTIONS[name]
        setattr(cls, f"__{key}__", pair(other, other, scalar))
    cls.__neg__ = lambda self: invoke(OPS["negative"].call(), (self,))[0]
    cls.__abs__ = lambda self: invoke(OPS["abs"].call(), (self,))[0]


install(BaseSparseNDArray)
