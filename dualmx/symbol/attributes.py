"""String attributes of nodes: the scope that sets them for all nodes made inside it, and the hidden keys."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from ..core.errors import ArgumentError, MXNetError

# Keys that users write plainly and that are stored between double underscores, out of the operator's parameters.
HIDDEN_KEYS = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage", "profiler_scope")


class _CurrentScope(threading.local):
    def __init__(self) -> None:
        self.stack: list[AttrScope] = [AttrScope()]


class _Current(type):
    @property
    def current(cls) -> AttrScope:
        """The innermost attribute scope of this thread."""
        return _active.stack[-1]


class AttrScope(metaclass=_Current):
    """Attaches string attributes to every node made inside its `with` block; scopes nest, the inner one wins.

    Raises:
        ArgumentError: a value is not a string.

    Example:
        >>> with AttrScope(ctx_group="dev1", __note__="x"):
        ...     AttrScope.current.get({"__note__": "y"})
        {'ctx_group': 'dev1', '__note__': 'y'}
    """

    def __init__(self, **kwargs: str):
        for key, value in kwargs.items():
            if not isinstance(value, str):
                raise ArgumentError(f"AttrScope: {key}={value!r}: attributes are strings; write {key}={str(value)!r}")
        self._attrs = kwargs
        self._attr: dict[str, str] = dict(kwargs)

    def get(self, attr: Mapping[str, str] | None) -> dict[str, str]:
        """Return the attributes of this scope updated with `attr`."""
        return {**self._attr, **(attr or {})}

    def __enter__(self) -> AttrScope:
        self._attr = {**AttrScope.current._attr, **self._attrs}
        _active.stack.append(self)
        return self

    def __exit__(self, *exc: Any) -> None:
        _active.stack.pop()


_active = _CurrentScope()


def is_dunder(key: str) -> bool:
    """True for keys between double underscores, which no operator reads as a parameter."""
    return key.startswith("__") and key.endswith("__") and len(key) > 4


def json_key(key: str) -> str:
    """Return the key under which a user's key is stored: hidden keys get double underscores.

    Raises:
        MXNetError: `<input>_<hidden key>`, a form that belongs on the input's own variable.
    """
    if key in HIDDEN_KEYS:
        return f"__{key}__"
    for hidden in HIDDEN_KEYS:
        if key.endswith("_" + hidden) and not is_dunder(key):
            owner = key[: -len(hidden) - 1]
            raise MXNetError(
                f"attribute {key!r}: set it on the input's variable instead: pass {owner}=Variable(name, {hidden}=…)"
            )
    return key


def user_visible(attrs: Mapping[str, str]) -> dict[str, str]:
    """Return `attrs` as users read them: hidden keys appear under both spellings."""
    out = dict(attrs)
    for key, value in attrs.items():
        if is_dunder(key) and key[2:-2] in HIDDEN_KEYS:
            out[key[2:-2]] = value
    return out
