"""`mx.sym.np`: symbols with NumPy's semantics; its functions make the nodes that those of `mx.np` run.

Example:
    >>> import dualmx as mx
    >>> x = mx.sym.var("x").as_np_ndarray()
    >>> y = mx.sym.np.mean(x * 2, axis=1)
    >>> y.infer_shape(x=(3, 4))[1]
    [(3,)]
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..namespace.fluent import FLUENT
from ..symbol import Symbol
from . import linalg, symbol_functions  # noqa: F401
from . import symbol_random as random  # noqa: F401
from .call import is_number
from .functions import FUNCTIONS
from .np_symbol import NumpySymbol, as_np, make_node, scalar_params
from .operators import ARITHMETIC, COMPARISON


def _binary(names: tuple[str, str, str], turned: bool) -> Callable[[Any, Any], Any]:
    both, right, left = names

    def method(self: Any, other: Any) -> Any:
        if isinstance(other, Symbol):
            return make_node(both, (other, self) if turned else (self, other), {})
        if not is_number(other):
            return NotImplemented
        return make_node(left if turned else right, (self,), scalar_params(other, turned and left != right))

    return method


def _fluent(name: str) -> Callable[..., Any]:
    """A method that is the function of `mx.sym.np` if there is one, else that of classic symbols."""
    classic = getattr(Symbol, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            function = find(name)
        except AttributeError:
            return as_np(classic(self, *args, **kwargs))
        return function(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Fluent form of `mx.sym.np.{name}(x, …)`, which documents the arguments."
    return method


def _function_of_self(self: NumpySymbol, name: str) -> Callable[..., Any]:
    if name.startswith("_"):
        raise AttributeError(f"a symbol with NumPy semantics has no attribute {name!r}", name=name, obj=self)
    return functools.partial(find(name), self)


def install(cls: type[NumpySymbol]) -> None:
    """Give the symbol class its operators, and the functions as methods."""
    for key, names in ARITHMETIC.items():
        setattr(cls, f"__{key}__", _binary(names, False))
        setattr(cls, f"__r{key}__", _binary(names, True))
    for key, name in COMPARISON.items():
        setattr(cls, f"__{key}__", _binary((f"_npi_{name}", f"_npi_{name}_scalar", ""), False))
    for key, name in (("abs", "abs"), ("invert", "_npi_bitwise_not")):
        setattr(cls, f"__{key}__", lambda self, name=name: make_node(name, (self,), {}))
    for key, turned in (("matmul", False), ("rmatmul", True)):
        setattr(cls, f"__{key}__", _binary(("_npi_matmul", "", ""), turned))
    for name in FLUENT:
        if name not in vars(cls) and hasattr(Symbol, name):
            setattr(cls, name, _fluent(name))
    setattr(cls, "__getattr__", _function_of_self)  # noqa: B010


install(NumpySymbol)


# -- functions that make arrays: nodes without inputs


def _made(name: str, params: dict[str, Any]) -> Any:
    given = {k: (str(v) if k == "ctx" else v) for k, v in params.items() if v is not None}
    return make_node(name, (), given)


def zeros(shape: Any, dtype: Any = "float32", order: str = "C", ctx: Any = None) -> Any:
    """Return a node of zeros."""
    return _made("_npi_zeros", {"shape": shape, "dtype": dtype, "ctx": ctx})


def ones(shape: Any, dtype: Any = "float32", order: str = "C", ctx: Any = None) -> Any:
    """Return a node of ones."""
    return _made("_npi_ones", {"shape": shape, "dtype": dtype, "ctx": ctx})


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", ctx: Any = None, out: Any = None) -> Any:
    """Return a node of one number."""
    return _made("_npi_full", {"shape": shape, "value": float(fill_value), "dtype": dtype, "ctx": ctx})


def full_like(a: Any, fill_value: Any, dtype: Any = None, order: str = "C", ctx: Any = None, out: Any = None) -> Any:
    """Return a node of one number, in the shape of `a`."""
    return make_node("_npi_full_like", (a,), {"fill_value": float(fill_value), "dtype": dtype})


def zeros_like(a: Any, dtype: Any = None, order: str = "C", ctx: Any = None, out: Any = None) -> Any:
    """Return a node of zeros in the shape of `a`."""
    return full_like(a, 0, dtype)


def ones_like(a: Any, dtype: Any = None, order: str = "C", ctx: Any = None, out: Any = None) -> Any:
    """Return a node of ones in the shape of `a`."""
    return full_like(a, 1, dtype)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, ctx: Any = None) -> Any:
    """Return a node of `start, start + step, …` below `stop`."""
    return _made("_npi_arange", {"start": start, "stop": stop, "step": step, "dtype": dtype, "ctx": ctx})


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
    axis: int = 0, ctx: Any = None,
) -> Any:  # fmt: skip
    """Return a node of `num` evenly spaced values."""
    params = {"start": start, "stop": stop, "step": None, "num": num, "endpoint": endpoint, "dtype": dtype}
    made = _made("_npi_linspace", params)
    return (made, (stop - start) / (num - bool(endpoint))) if retstep else made


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: float = 10.0, dtype: Any = None, axis: int = 0,
    ctx: Any = None,
) -> Any:  # fmt: skip
    """Return a node of `base` to the power of evenly spaced values."""
    params = {"start": start, "stop": stop, "num": num, "endpoint": endpoint, "base": base, "dtype": dtype}
    return _made("_npi_logspace", params)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = "float32", **kwargs: Any) -> Any:
    """Return a node of a matrix with ones on diagonal `k`."""
    return _made("_npi_eye", {"N": N, "M": M, "k": k, "dtype": dtype})


def identity(n: int, dtype: Any = None, ctx: Any = None) -> Any:
    """Return a node of the n×n identity matrix."""
    return _made("_npi_identity", {"shape": (n, n), "dtype": dtype})


def indices(dimensions: Any, dtype: Any = "int32", ctx: Any = None) -> Any:
    """Return a node of the coordinates of every element."""
    return _made("_npi_indices", {"dimensions": tuple(dimensions), "dtype": dtype})


def hanning(M: int, dtype: Any = "float32", ctx: Any = None) -> Any:
    """Return a node of the Hann window."""
    return _made("_npi_hanning", {"M": M, "dtype": dtype})


def hamming(M: int, dtype: Any = "float32", ctx: Any = None) -> Any:
    """Return a node of the Hamming window."""
    return _made("_npi_hamming", {"M": M, "dtype": dtype})


def blackman(M: int, dtype: Any = "float32", ctx: Any = None) -> Any:
    """Return a node of the Blackman window."""
    return _made("_npi_blackman", {"M": M, "dtype": dtype})


# What asks for values, or for the shape of an array.
VALUE_ONLY_FUNCTIONS = (
    "array", "array_equal", "array_equiv", "allclose", "shape", "ndim", "size", "nonzero", "argwhere", "flatnonzero",
    "empty", "count_nonzero", "meshgrid", "broadcast_arrays", "take_along_axis", "set_printoptions", "as_np",
)  # fmt: skip
CREATION_FUNCTIONS = (
    zeros, ones, full, full_like, zeros_like, ones_like, arange, linspace, logspace, eye, identity, indices,
    hanning, hamming, blackman,
)  # fmt: skip
_OWN: dict[str, Callable[..., Any]] = {f.__name__: f for f in CREATION_FUNCTIONS}


def find(name: str) -> Callable[..., Any]:
    """Return the function `name` of `mx.sym.np`: that of `mx.np`, for symbols.

    Raises:
        AttributeError: there is none that needs no values.
    """
    found = _OWN.get(name) or symbol_functions.OWN.get(name)
    if found is None and name not in VALUE_ONLY_FUNCTIONS:
        found = FUNCTIONS.get(name)
    if found is None:
        raise AttributeError(f"module 'mx.sym.np' has no attribute {name!r}", name=name)
    made: Callable[..., Any] = found

    @functools.wraps(made)
    def function(*args: Any, name: str | None = None, **kwargs: Any) -> Any:
        result = made(*args, **kwargs)
        if isinstance(result, tuple) and all(isinstance(part, Symbol) for part in result):
            return list(result)
        if name is not None and isinstance(result, Symbol):
            # The node is new, and nothing else knows it yet.
            result.entries[0][0].name = name
        return result

    del function.__wrapped__  # the signature has `name` as well
    return function


__getattr__ = find


def __dir__() -> list[str]:
    return sorted({*globals(), *FUNCTIONS} - {*VALUE_ONLY_FUNCTIONS})
