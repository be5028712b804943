"""`NumpySymbol`: a symbol under NumPy's rules, and the nodes of its operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as onp

from ..core.errors import ArgumentTypeError, RangeError
from ..op.numpy_names import KEPT, WRITTEN
from ..op.registry import OPS
from ..symbol import Symbol
from ..symbol.symbol import create


class NumpySymbol(Symbol):
    """A symbol whose operators broadcast and give bool comparisons, as arrays of `mx.np` do."""

    __slots__ = ()
    # NumPy's arrays do not take a symbol for an element: their operators leave it to these here.
    __array_ufunc__ = None

    def as_np_ndarray(self) -> NumpySymbol:
        """Return the symbol itself."""
        return self

    def as_nd_ndarray(self) -> Symbol:
        """Return the same expression with the operators of classic symbols."""
        return Symbol(self.entries)

    def __hash__(self) -> int:
        return id(self) >> 4

    def __call__(self, *args: Any, name: str | None = None, **kwargs: Any) -> NumpySymbol:
        return NumpySymbol(super().__call__(*args, name=name, **kwargs).entries)

    def __copy__(self) -> NumpySymbol:
        return NumpySymbol(super().__copy__().entries)

    def __neg__(self) -> Any:
        # MXNet's product with a number that is no int: whole numbers become float64.
        return make_node("_npi_multiply_scalar", (self,), {"scalar": -1.0, "is_int": False})

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, (str, int)) and not isinstance(index, bool) and len(self.entries) > 1:
            return as_np(super().__getitem__(index))
        return slice_symbol(self, index)

    @property
    def T(self) -> NumpySymbol:
        """The expression with its axes reversed."""
        return make_node("_np_transpose", (self,), {})

    def reshape(self, *shape: Any, order: str = "C") -> NumpySymbol:
        """Return the expression in another shape, one length of which may be -1."""
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return make_node("_np_reshape", (self,), {"newshape": tuple(wanted), "order": order})

    def flatten(self, order: str = "C") -> NumpySymbol:
        """Return the elements in one axis."""
        return make_node("_np_reshape", (self,), {"newshape": (-1,), "order": order})

    def astype(self, dtype: Any, **kwargs: Any) -> NumpySymbol:
        """Return the expression in another dtype."""
        return NumpySymbol(super().astype(dtype, **kwargs).entries)

    def transpose(self, *axes: Any) -> NumpySymbol:
        """Return the expression with its axes permuted, or reversed."""
        wanted = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
        return make_node("_np_transpose", (self,), {"axes": tuple(wanted)} if wanted else {})


def as_np(symbol: Symbol) -> Any:
    """Return a symbol as one with NumPy semantics."""
    if not isinstance(symbol, Symbol):
        raise ArgumentTypeError(f"got a {type(symbol).__name__}: expected a symbol")
    return symbol if isinstance(symbol, NumpySymbol) else NumpySymbol(symbol.entries)


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
    return NumpySymbol(create(op, tuple(inputs), given, label, attr, shown, alias).entries)


def split_outputs(found: Symbol) -> list[Any]:
    """Return each output of a node as a symbol."""
    return [NumpySymbol([entry]) for entry in found.entries]


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


def scalar_params(number: Any, turned: bool) -> dict[str, Any]:
    """The parameters of a node of a symbol and a number; to MXNet one on the left is never an int."""
    return {"scalar": float(number), "is_int": not turned and isinstance(number, (int, onp.integer))}


__all__ = ["NumpySymbol", "as_np", "make_node", "scalar_params", "slice_symbol", "split_outputs"]
