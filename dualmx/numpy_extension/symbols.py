"""`mx.sym.npx`: the functions of `mx.npx` as nodes, on symbols with NumPy semantics."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from ..core.errors import ArgumentError
from ..namespace.generate import symbol_function
from ..numpy.np_symbol import as_np, make_node, split_outputs
from ..op.numpy_names import WRITTEN
from ..op.registry import OPS
from .operators import NAMES


def function_of(name: str, operator: str) -> Callable[..., Any]:
    """Return the function called `name` that makes nodes of an operator with NumPy semantics."""
    # Nodes without a name are called after the public one.
    made = symbol_function(OPS[operator], name)
    alias = WRITTEN.get(operator)

    @functools.wraps(made)
    def function(*args: Any, **kwargs: Any) -> Any:
        found = as_np(made(*args, **kwargs))
        if alias is not None:
            found.entries[0][0].alias = alias
        return found if len(found.entries) == 1 else split_outputs(found)

    return function


def reshape(
    a: Any = None,
    newshape: Any = (),
    reverse: bool = False,
    order: str = "C",
    name: str | None = None,
    attr: dict[str, str] | None = None,
    out: Any = None,
) -> Any:
    """Return a symbol in another shape, which may contain the codes of `mx.npx.reshape`; `out` must be None."""
    _no_out("reshape", out)
    shape = (newshape,) if isinstance(newshape, int) else tuple(newshape)
    params = {"newshape": shape, "reverse": reverse, "order": order}
    return make_node("_npx_reshape", (as_np(a),), params, "reshape", name, attr)


def nonzero(x: Any = None, name: str | None = None, attr: dict[str, str] | None = None, out: Any = None) -> Any:
    """Return a node of the coordinates of the elements that are not 0; `out` must be None."""
    _no_out("nonzero", out)
    return make_node("_npx_nonzero", (as_np(x),), {}, "nonzero", name, attr)


def constraint_check(
    input: Any = None,
    msg: str = "Constraint violated!",
    name: str | None = None,
    attr: dict[str, str] | None = None,
    out: Any = None,
) -> Any:
    """Return a node that is an error if an element of `input` is False; `out` must be None."""
    _no_out("constraint_check", out)
    return make_node("_npx_constraint_check", (as_np(input),), {"msg": msg}, "constraint_check", name, attr)


def _no_out(what: str, out: Any) -> None:
    if out is not None:
        raise ArgumentError(f"{what}: out={out!r}: a symbol has no array to write to")


def __getattr__(name: str) -> Any:
    if name in ("image", "random"):
        return importlib.import_module(f".symbol_{name}", __package__)
    operator = NAMES.get(name)
    if operator is None or operator not in OPS:
        raise AttributeError(f"module 'mx.sym.npx' has no attribute {name!r}", name=name)
    made = globals()[name] = function_of(name, operator)
    return made


def __dir__() -> list[str]:
    return sorted({*globals(), *NAMES, "image", "random"})
