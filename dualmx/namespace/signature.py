"""Signatures and documentation of generated functions."""

from __future__ import annotations

import inspect
from typing import Any

from ..op.registry import Op
from ..op.schema import AUX


def signature(op: Op, tensor: type) -> inspect.Signature:
    """Return the public signature: inputs, then parameters, `out` and `name`."""
    kind = inspect.Parameter
    if op.variadic:
        found = [kind(op.inputs[0].name, kind.VAR_POSITIONAL, annotation=tensor)]
        mode: Any = kind.KEYWORD_ONLY
    else:
        found = [kind(i.name, kind.POSITIONAL_OR_KEYWORD, default=None, annotation=tensor) for i in op.inputs]
        mode = kind.POSITIONAL_OR_KEYWORD
    for f in op.params.values():
        if f.name in {"out", "name"}:
            continue
        found.append(kind(f.name, mode, default=None if f.required else f.default))
    found.append(kind("out", mode, default=None))
    found.append(kind("name", mode, default=None))
    found.append(kind("kwargs", kind.VAR_KEYWORD))
    return inspect.Signature(found)


def docstring(op: Op) -> str:
    """Return the operator's documentation with its inputs and parameters listed."""
    lines = [inspect.cleandoc(op.fn.__doc__ or op.name), ""]
    if op.inputs:
        lines.append("Inputs:")
        for i in op.inputs:
            notes = [n for n, on in (("optional", i.optional), ("state, updated in place", i.role is AUX)) if on]
            if i.when is not None:
                notes.append(f"if {i.when.param} is {i.when.value!r}")
            lines.append(f"    {'*' if i.variadic else ''}{i.name}{': ' + ', '.join(notes) if notes else ''}")
    if op.params:
        lines.append("Parameters:")
        for f in op.params.values():
            what = "required" if f.required else f"default {f.default!r}"
            if f.ignored:
                what += "; accepted, no effect"
            lines.append(f"    {f.name}: {what}")
    return "\n".join(lines).rstrip() + "\n"
