"""How recurrent layers and cells make their first states."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ...namespace import nd, sym
from ..semantics import with_default_class
from .sequences import functions_for


def make_state(func: Callable[..., Any], name: str, info: dict[str, Any]) -> Any:
    """Call `func(name=name, **info)`, leaving out a name and a layout that the function does not take."""
    try:
        takes = inspect.signature(func).parameters
    except (TypeError, ValueError):
        takes = {}
    optional = {"name": name, "__layout__": info.get("__layout__")}
    open_ended = not takes or any(p.kind is p.VAR_KEYWORD for p in takes.values())
    given = {k: v for k, v in info.items() if k not in optional}
    return with_default_class(
        func(**given, **{k: v for k, v in optional.items() if v is not None and (open_ended or k in takes)})
    )


def states_or_begin(cell: Any, begin_state: Any, steps: list[Any], **kwargs: Any) -> Any:
    """Return `begin_state`, or zeros that fit the first of `steps`."""
    if begin_state is not None:
        return begin_state
    if functions_for(steps) is sym:
        return cell.begin_state(func=sym.zeros, batch_size=0, **kwargs)
    first = steps[0]
    return cell.begin_state(func=nd.zeros, batch_size=first.shape[0], ctx=first.context, dtype=first.dtype, **kwargs)
