"""MXNet's decorators of functions that need NumPy's dispatch protocols, which every supported NumPy has."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T", bound=Callable[..., object])


def with_array_function_protocol(func: T) -> T:
    """Return `func`: NumPy's functions find those of `mx.np` by `__array_function__`.

    Example:
        >>> import numpy
        >>> import dualmx as mx
        >>> numpy.concatenate([mx.np.ones(1), mx.np.zeros(1)])
        array([1., 0.])
    """
    return func


def with_array_ufunc_protocol(func: T) -> T:
    """Return `func`: NumPy's ufuncs find the functions of `mx.np` by `__array_ufunc__`."""
    return func


__all__ = ["with_array_function_protocol", "with_array_ufunc_protocol"]
