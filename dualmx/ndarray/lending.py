"""Addresses of arrays: what callbacks written for MXNet's C interface make arrays from."""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError

_array_by_address: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def array_at_address(handle: Any) -> Any:
    """Return the array at an address; the handle of an array (`x.handle`) is that array.

    Raises:
        ArgumentTypeError: `handle` is none of `base.NDArrayHandle`. ArgumentError: nothing is lent there.
    """
    if isinstance(handle, Lent):
        return handle
    if not isinstance(handle, ctypes.c_void_p):
        raise ArgumentTypeError(f"NDArray: handle={handle!r}: expected a base.NDArrayHandle; make arrays with nd.array")
    found = _array_by_address.get(handle.value or 0)
    if found is None:
        raise ArgumentError(f"NDArray: handle={handle!r}: no array has this address")
    return found


class Lent:
    """An array whose address C's types can hold, and which an address gives back."""

    __slots__ = ()

    def __new__(cls, handle: Any, writable: bool = True) -> Any:
        """Return the array that a callback received as `handle`, cast to `base.NDArrayHandle`."""
        return array_at_address(handle)

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        """The address that `ctypes.cast(array, base.NDArrayHandle)` takes; good while something holds the array."""
        _array_by_address[id(self)] = self
        return ctypes.c_void_p(id(self))
