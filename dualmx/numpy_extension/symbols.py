"""`mx.sym.npx`: the functions of `mx.npx` as nodes, on symbols with NumPy semantics."""

from __future__ import annotations

from typing import Any

from ..core.errors import ArgumentError
from ..numpy.np_symbol import as_np, make_node
from ..op.registry import OPS
from . import symbol_image as image  # noqa: F401
from . import symbol_random as random  # noqa: F401
from .operators import NAMES, np_symbol_function


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
    operator = NAMES.get(name)
    if operator is None or operator not in OPS:
        raise AttributeError(f"module 'mx.sym.npx' has no attribute {name!r}", name=name)
    made = globals()[name] = np_symbol_function(operator, name)
    return made


def __dir__() -> list[str]:
    return sorted({*globals(), *NAMES})
