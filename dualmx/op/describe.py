"""MXNet's words for the inputs and parameters of operators, as its documentation shows them."""

from __future__ import annotations

import types
import typing
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

import numpy as np

from .registry import Op
from .schema import Axes, ParamField, to_floats

_TYPE_NAMES = {int: "int", float: "float", bool: "boolean", str: "string"}


class OperatorArguments(NamedTuple):
    """What an operator takes: how many arguments, their names, and what each of them may be."""

    narg: int
    names: list[str]
    types: list[str]


def operator_arguments(op: Op) -> OperatorArguments:
    """Return the inputs of `op`, then its parameters."""
    names = [i.name for i in op.inputs] + list(op.params)
    kinds = ["NDArray-or-Symbol[]" if i.variadic else "NDArray-or-Symbol" for i in op.inputs]
    return OperatorArguments(len(names), names, kinds + [_text(f) for f in op.params.values()])


def _text(field: ParamField) -> str:
    word, plain = _word(field.type)
    if field.required:
        return f"{word}, required"
    # MXNet leaves out the space after the choices of an enumeration.
    return f"{word},{'' if word.startswith('{') else ' '}optional, default={_shown(field.default, plain)}"


def _word(t: Any) -> tuple[str, Any]:
    """MXNet's word for an annotation, and the plain type below it."""
    if t is Axes:
        return "Shape or None", tuple
    if get_origin(t) is Annotated:
        base, *marks = get_args(t)
        if base is tuple:
            return ("tuple of <float>" if to_floats in marks else "Shape(tuple)"), tuple
        return _word(base)
    if get_origin(t) is Literal:
        return "{" + ", ".join(sorted(repr(c) for c in get_args(t))) + "}", str
    if get_origin(t) in (typing.Union, types.UnionType):
        word, plain = _word(next(a for a in get_args(t) if a is not type(None)))
        return (word.replace("{", "{None, ", 1) if word.startswith("{") else f"{word} or None"), plain
    return _TYPE_NAMES.get(t, getattr(t, "__name__", str(t))), t


def _shown(value: Any, plain: Any) -> str:
    if value is None:
        return "'None'" if plain in (int, str) else "None"
    if isinstance(value, (tuple, list)):
        return "[" + ",".join("None" if v is None else f"{v:g}" for v in value) + "]"
    if isinstance(value, bool):
        return str(int(value))
    return f"{np.float32(value):.9g}" if plain is float else f"'{value}'"


__all__ = ["OperatorArguments", "operator_arguments"]
