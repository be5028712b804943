"""`nd.Custom`: calls of operators written in Python."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError
from ..ndarray.array import NDArray
from ..ndarray.custom import CustomOpSpec


def _inputs(op_type: str, names: list[str], args: Sequence[Any], named: dict[str, NDArray]) -> list[NDArray]:
    found = dict(zip(names, args, strict=False))
    if len(args) > len(names) or found.keys() & named.keys() or found.keys() | named.keys() != set(names):
        shown = f"{len(args)} by position" + (f" and {sorted(named)}" if named else "")
        raise ArgumentError(f"Custom({op_type!r}): got inputs {shown}: expected {names}")
    found |= named
    for name in names:
        if not isinstance(found[name], NDArray):
            kind = type(found[name]).__name__
            raise ArgumentTypeError(f"Custom({op_type!r}): {name} is a {kind}: expected an NDArray")
    return [found[name] for name in names]


def Custom(*args: Any, op_type: str = "", name: str | None = None, **kwargs: Any) -> Any:
    """Call the custom operator registered as `op_type`.

    Args:
        args: its inputs, then its states; or by their names as keywords.
        op_type: name given to `mx.operator.register`.
        name: accepted.
        kwargs: parameters, handed to the `CustomOpProp` as text.

    Returns:
        The output, or a list of several.

    Raises:
        ArgumentError: unknown `op_type`, or inputs that its `list_arguments` does not name. MXNetError: the operator
            raised; the error is also of the type that it raised, and carries its traceback.
    """
    if not op_type:
        raise ArgumentError("Custom: op_type is missing: expected the name given to mx.operator.register")
    named = {k: v for k, v in kwargs.items() if isinstance(v, NDArray)}
    layout = CustomOpSpec.from_kwargs(op_type, {k: v for k, v in kwargs.items() if k not in named})
    outs = layout.run(_inputs(op_type, [*layout.arguments, *layout.states], args, named))
    return outs[0] if len(outs) == 1 else outs


def populate(top: ModuleType) -> None:
    """Put `Custom` into the array namespace and its room of operators."""
    for room in (top, top.op):
        setattr(room, Custom.__name__, Custom)


__all__ = ["Custom"]
