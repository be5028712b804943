"""NumPy's dispatch protocols: `numpy.sin(x)` on an `mx.np` array is `mx.np.sin(x)`."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..core.errors import ArgumentTypeError
from . import linalg
from .call import target
from .fallback import from_host, to_host
from .functions import find
from .np_ndarray import ndarray

# NumPy's own names of functions that have another here.
RENAMED = {"conjugate": "positive", "concat": "concatenate", "permute_dims": "transpose", "pow": "power"}
ARRAY = (ndarray, onp.ndarray, onp.generic)


def _function(name: str) -> Any:
    return find(RENAMED.get(name, name))


def _to_np_arrays(value: Any) -> Any:
    """Return `value` with NumPy arrays in it as arrays of this room."""
    if isinstance(value, onp.ndarray) and value.dtype.kind in "biuf":
        return from_host(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_to_np_arrays(v) for v in value)
    return value


def array_ufunc(self: ndarray, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Apply a NumPy ufunc: as the function of this room where there is one, else by NumPy on host copies."""
    out = kwargs.pop("out", ())
    into = out[0] if out else None
    if into is not None and not isinstance(into, ndarray):
        into[...] = onp.asarray(to_host(array_ufunc(self, ufunc, method, *inputs, **kwargs), ufunc.__name__))
        return into
    own = _function(ufunc.__name__) if method == "__call__" else None
    if own is not None:
        found = own(*(_to_np_arrays(i) for i in inputs), **kwargs)
    elif method == "at":
        raise ArgumentTypeError(f"np.{ufunc.__name__}.at: an array of mx.np cannot be changed by NumPy; use x[i] = …")
    else:
        what = f"np.{ufunc.__name__}"
        found = from_host(getattr(ufunc, method)(*to_host(inputs, what), **to_host(kwargs, what)))
    if into is None:
        return found
    into[...] = found
    return target(into, ufunc.__name__)


def array_function(self: ndarray, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Apply a NumPy function: as that of this room where there is one, else by NumPy on host copies."""
    if not all(issubclass(t, ARRAY) for t in types):
        return NotImplemented
    name = func.__name__
    room = (func.__module__ or "").partition("numpy.")[2]
    # Functions of `numpy.fft` and `numpy.random` have no counterpart here, and NumPy's svd gives full matrices.
    own = getattr(linalg, name, None) if room == "linalg" else None if room in ("fft", "random") else _function(name)
    own = None if own is linalg.svd else own
    if own is not None and own is not func:
        try:
            return own(*_to_np_arrays(args), **{k: _to_np_arrays(v) for k, v in kwargs.items()})
        except TypeError as e:
            # An argument that only NumPy knows.
            if "unexpected" not in str(e) and "argument" not in str(e):
                raise
    out = kwargs.pop("out", None)
    found = from_host(func(*to_host(args, f"np.{name}"), **to_host(kwargs, f"np.{name}")))
    if isinstance(out, ndarray):
        out[...] = found
        return out
    return found


ndarray.__array_ufunc__ = array_ufunc  # type: ignore[method-assign, attr-defined]
ndarray.__array_function__ = array_function  # type: ignore[method-assign, attr-defined]
