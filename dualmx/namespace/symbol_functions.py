"""`mx.sym.X` for every registered operator, its sub-namespaces, and the fluent methods of symbols."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from ..core.errors import ArgumentTypeError
from ..op.registry import OPS, Op
from ..symbol import control
from ..symbol.custom import Custom
from ..symbol.symbol import Symbol, create
from . import methods, rooms, symbol_random
from .signature import docstring, signature


def symbol_function(op: Op, name: str) -> Callable[..., Any]:
    """Return the function `name` of the symbolic front end, which makes a node of `op`."""
    hint = name.lower()

    def function(*args: Any, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        if kwargs.pop("out", None) is not None:
            raise ArgumentTypeError(f"{op.name}: out= needs an array; a symbol has no values to write")
        return create(op, args, kwargs, name, attr, hint)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "dualmx.symbol"
    function.__signature__, function.__doc__ = signature_and_doc(op)
    return function


def signature_and_doc(op: Op) -> tuple[inspect.Signature, str]:
    """Signature and documentation of the functions of `op`."""
    found = [p for p in signature(op, Symbol).parameters.values() if p.name != "out"]
    mode: Any = next(p.kind for p in found if p.name == "name")
    found.insert(len(found) - 1, inspect.Parameter("attr", mode, default=None))
    notes = "\nOther keywords: name (of the node), attr (string attributes), `__key__` attributes.\n"
    return inspect.Signature(found, return_annotation=Symbol), docstring(op) + notes


def populate(top: ModuleType) -> None:
    """Serve every operator in the symbolic namespace and its sub-namespaces, and give `Symbol` its fluent methods."""
    rooms.populate(top, "Symbolic operators", symbol_function)
    symbol_random.populate(top.random)
    control.populate(top.contrib)
    for room in (top, top.op):
        setattr(room, Custom.__name__, Custom)
    install(Symbol, top)


def reshape(self: Symbol, *shape: Any, **kwargs: Any) -> Symbol:
    """Fluent form of `sym.reshape(x, shape=…)`; the lengths may be separate arguments."""
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = tuple(shape[0])
    if shape:
        kwargs["shape"] = shape
    return create(OPS["reshape"], (self,), kwargs, kwargs.pop("name", None), hint="reshape")


def transpose(self: Symbol, *axes: Any, **kwargs: Any) -> Symbol:
    """Fluent form of `sym.transpose(x, axes=…)`; the axes may be separate arguments."""
    if len(axes) == 1 and isinstance(axes[0], (tuple, list)):
        axes = tuple(axes[0])
    if axes:
        kwargs["axes"] = axes
    return create(OPS["transpose"], (self,), kwargs, kwargs.pop("name", None))


def astype(self: Symbol, dtype: Any, **kwargs: Any) -> Symbol:
    """Fluent form of `sym.cast(x, dtype)`."""
    return create(OPS["cast"], (self,), {"dtype": dtype}, kwargs.get("name"), hint="cast")


def squeeze(self: Symbol, axis: Any = None, inplace: bool = False, **kwargs: Any) -> Symbol:
    """Fluent form of `sym.squeeze(x, axis)`."""
    return create(OPS["squeeze"], (self,), {"axis": axis}, kwargs.get("name"))


def diag(self: Symbol, k: int = 0, **kwargs: Any) -> Symbol:
    """Fluent form of `sym.diag(x, k)`."""
    return create(OPS["diag"], (self,), {"k": k, **kwargs}, kwargs.pop("name", None))


def expand_dims(self: Symbol, axis: int, inplace: bool = False, **kwargs: Any) -> Symbol:
    """Fluent form of `sym.expand_dims(x, axis)`."""
    return create(OPS["expand_dims"], (self,), {"axis": axis}, kwargs.get("name"))


def flatten(self: Symbol, inplace: bool = False, **kwargs: Any) -> Symbol:
    """Fluent form of `sym.flatten(x)`."""
    return create(OPS["flatten"], (self,), {}, kwargs.get("name"), hint="flatten")


def split_v2(self: Symbol, *args: Any, **kwargs: Any) -> Symbol:
    """Fluent form of `sym.split_v2(x, indices_or_sections, axis, squeeze_axis)`."""
    from ..symbol import creation

    return creation.split_v2(self, *args, **kwargs)


HANDWRITTEN = (reshape, transpose, astype, squeeze, diag, expand_dims, flatten, split_v2)


def install(cls: type[Symbol], top: ModuleType) -> None:
    """Give `cls` a method for every fluent operator that is registered."""
    methods.install_all(cls, top, "sym")
    for own in HANDWRITTEN:
        setattr(cls, own.__name__, own)
