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
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from ..core.errors import ArgumentTypeError, RangeError
from ..namespace.fluent import FLUENT
from ..op.numpy_names import KEPT, WRITTEN
from ..op.registry import OPS
from ..symbol import Symbol
from ..symbol.symbol import create
from .call import is_number
from .operators import ARITHMETIC, COMPARISON


class _NumpySymbol(Symbol):
    """A symbol whose operators broadcast and give bool comparisons, as arrays of `mx.np` do."""

    __slots__ = ()
    # NumPy's arrays do not take a symbol for an element: their operators leave it to these here.
    __array_ufunc__ = None

    def as_np_ndarray(self) -> _NumpySymbol:
        """Return the symbol itself."""
        return self

    def as_nd_ndarray(self) -> Symbol:
        """Return the same expression with the operators of classic symbols."""
        return Symbol(self.entries)

    def __hash__(self) -> int:
        return id(self) >> 4

    def __call__(self, *args: Any, name: str | None = None, **kwargs: Any) -> _NumpySymbol:
        return _NumpySymbol(super().__call__(*args, name=name, **kwargs).entries)

    def __copy__(self) -> _NumpySymbol:
        return _NumpySymbol(super().__copy__().entries)

    def __neg__(self) -> Any:
        # MXNet's product with a number that is no int: whole numbers become float64.
        return make_node("_npi_multiply_scalar", (self,), {"scalar": -1.0, "is_int": False})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"a symbol with NumPy semantics has no attribute {name!r}", name=name, obj=self)
        return functools.partial(find(name), self)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, (str, int)) and not isinstance(index, bool) and len(self.entries) > 1:
            return as_np(super().__getitem__(index))
        return slice_symbol(self, index)

    @property
    def T(self) -> _NumpySymbol:
        """The expression with its axes reversed."""
        return make_node("_np_transpose", (self,), {})

    def reshape(self, *shape: Any, order: str = "C") -> _NumpySymbol:
        """Return the expression in another shape, one length of which may be -1."""
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return make_node("_np_reshape", (self,), {"newshape": tuple(wanted), "order": order})

    def flatten(self, order: str = "C") -> _NumpySymbol:
        """Return the elements in one axis."""
        return make_node("_np_reshape", (self,), {"newshape": (-1,), "order": order})

    def astype(self, dtype: Any, **kwargs: Any) -> _NumpySymbol:
        """Return the expression in another dtype."""
        return _NumpySymbol(super().astype(dtype, **kwargs).entries)

    def transpose(self, *axes: Any) -> _NumpySymbol:
        """Return the expression with its axes permuted, or reversed."""
        wanted = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
        return make_node("_np_transpose", (self,), {"axes": tuple(wanted)} if wanted else {})


def as_np(symbol: Symbol) -> Any:
    """Return a symbol as one with NumPy semantics."""
    if not isinstance(symbol, Symbol):
        raise ArgumentTypeError(f"got a {type(symbol).__name__}: expected a symbol")
    return symbol if isinstance(symbol, _NumpySymbol) else _NumpySymbol(symbol.entries)


def make_node(
    name: str,
    inputs: Sequence[Any],
    params: dict[str, Any],
    hint: str | None = None,
    label: str | None = None,
    attr: dict[str, str] | None = None,
) -> Any:
    """Return a new node of the operator `name`, called `label`, or `hint` and a number."""
    for given in inputs:
        if not isinstance(given, Symbol):
            raise ArgumentTypeError(f"{name}: an array and a symbol do not mix; make the array a variable")
    op = OPS[name]
    alias = WRITTEN.get(op.name)
    called = alias if alias in KEPT else name
    shown = hint or called.removeprefix("_npi_").removeprefix("_npx_").removeprefix("_np_").lstrip("_").lower()
    given = {k: v for k, v in params.items() if v is not None or k not in op.params}
    return _NumpySymbol(create(op, tuple(inputs), given, label, attr, shown, alias).entries)


def split_outputs(found: Symbol) -> list[Any]:
    """Return each output of a node as a symbol."""
    return [_NumpySymbol([entry]) for entry in found.entries]


def slice_symbol(symbol: Symbol, key: Any) -> Any:
    """Return `symbol[key]` for integers, slices and `...` in front: what needs no shape."""
    items = key if isinstance(key, tuple) else (key,)
    if any(not isinstance(i, (int, slice)) or isinstance(i, bool) for i in items):
        raise RangeError(f"symbol[{key!r}]: a symbol takes integers and slices as indices")
    begin = [i.start if isinstance(i, slice) else i for i in items]
    end = [i.stop if isinstance(i, slice) else (i + 1 or None) for i in items]
    step = [i.step if isinstance(i, slice) else None for i in items]
    cut = make_node("slice", (symbol,), {"begin": tuple(begin), "end": tuple(end), "step": tuple(step)})
    if not isinstance(key, tuple) and isinstance(key, slice):
        return cut
    # Codes of `mx.npx.reshape`: an axis of length 1 goes, an axis stays, all others stay.
    return make_node("_npx_reshape", (cut,), {"newshape": (*(-3 if isinstance(i, int) else -2 for i in items), -4)})


def _binary(names: tuple[str, str, str], turned: bool) -> Callable[[Any, Any], Any]:
    both, right, left = names

    def method(self: Any, other: Any) -> Any:
        if isinstance(other, Symbol):
            return make_node(both, (other, self) if turned else (self, other), {})
        if not is_number(other):
            return NotImplemented
        return make_node(left if turned else right, (self,), scalar_params(other, turned and left != right))

    return method


def scalar_params(number: Any, turned: bool) -> dict[str, Any]:
    """The parameters of a node of a symbol and a number; to MXNet one on the left is never an int."""
    return {"scalar": float(number), "is_int": not turned and isinstance(number, (int, onp.integer))}


def _install() -> None:
    for key, names in ARITHMETIC.items():
        setattr(_NumpySymbol, f"__{key}__", _binary(names, False))
        setattr(_NumpySymbol, f"__r{key}__", _binary(names, True))
    for key, name in COMPARISON.items():
        setattr(_NumpySymbol, f"__{key}__", _binary((f"_npi_{name}", f"_npi_{name}_scalar", ""), False))
    for key, name in (("abs", "abs"), ("invert", "_npi_bitwise_not")):
        setattr(_NumpySymbol, f"__{key}__", lambda self, name=name: make_node(name, (self,), {}))
    for key, turned in (("matmul", False), ("rmatmul", True)):
        setattr(_NumpySymbol, f"__{key}__", _binary(("_npi_matmul", "", ""), turned))


_install()


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


for _name in FLUENT:
    if _name not in vars(_NumpySymbol) and hasattr(Symbol, _name):
        setattr(_NumpySymbol, _name, _fluent(_name))


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
    from .. import numpy as room
    from . import symbol_functions

    found = (
        _OWN.get(name)
        or symbol_functions.OWN.get(name)
        or (None if name in VALUE_ONLY_FUNCTIONS else vars(room).get(name))
    )
    if not callable(found) or isinstance(found, type):
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


def __getattr__(name: str) -> Any:
    if name == "random":
        return importlib.import_module(".symbol_random", __package__)
    if name == "linalg":
        return importlib.import_module(".linalg", __package__)
    return find(name)


def __dir__() -> list[str]:
    from .. import numpy as room

    functions = {n for n, v in vars(room).items() if callable(v) and not n.startswith("_") and not isinstance(v, type)}
    return sorted({*globals(), *functions, "random", "linalg"} - {*VALUE_ONLY_FUNCTIONS})
