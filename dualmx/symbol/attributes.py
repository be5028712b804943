"""Names and string attributes of nodes: `NameManager`, `AttrScope`, and parameter values as text that MXNet reads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from ..core import np_mode
from ..core.dtypes import DTYPE_TO_FLAG, as_dtype
from ..core.errors import ArgumentError, MXNetError, suggest
from ..op.schema import to_dtype, to_shape

# Keys that users write plainly and that are stored between double underscores, out of the operator's parameters.
HIDDEN_KEYS = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage", "profiler_scope")


_ScopeT = TypeVar("_ScopeT")


class _Stack(threading.local):
    """The `with` blocks of a class that this thread is in, below one that is always there."""

    def __init__(self, outermost: Callable[[], Any]):
        self.items: list[Any] = [outermost()]


class _CurrentProperty(type):
    _stack: _Stack

    @property
    def current(cls: type[_ScopeT]) -> _ScopeT:
        """The innermost one of this thread."""
        return cls._stack.items[-1]  # pyright: ignore[reportAttributeAccessIssue]


class AttrScope(metaclass=_CurrentProperty):
    """Attaches string attributes to every node made in its `with` block; the innermost scope wins.

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
        AttrScope._stack.items.append(self)
        return self

    def __exit__(self, *exc: Any) -> None:
        AttrScope._stack.items.pop()


AttrScope._stack = _Stack(AttrScope)


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


def param_text(value: Any) -> str:
    """Return the text of a parameter value: `"(3, 3)"`, `"True"`, `"1e-05"`, `"float16"`, `"None"`.

    Example:
        >>> param_text([np.int64(3), 3]), param_text(np.float16), param_text(0.5)
        ('[3, 3]', 'float16', '0.5')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, np.generic):
        return str(value)
    if isinstance(value, (type, np.dtype)):
        return as_dtype(value).name
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        inside = ", ".join(param_text(v) for v in value)
        if isinstance(value, list):
            return f"[{inside}]"
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if hasattr(value, "dumps"):
        return value.dumps()
    return str(value)


_STYPE_FLAGS = {"default": "0", "row_sparse": "1", "csr": "2"}


def variable_attrs(shape: Any, lr_mult: Any, wd_mult: Any, dtype: Any, init: Any, stype: Any) -> dict[str, str]:
    """Return the attributes that `Variable`'s keywords set; those that are `None` set nothing.

    Raises:
        ArgumentError: unknown storage type. ArgumentTypeError: unknown dtype.
    """
    attrs: dict[str, str] = {}
    if shape is not None:
        attrs["__shape__"] = param_text(shape)
    if lr_mult is not None:
        attrs["__lr_mult__"] = param_text(lr_mult)
    if wd_mult is not None:
        attrs["__wd_mult__"] = param_text(wd_mult)
    if dtype is not None:
        attrs["__dtype__"] = str(DTYPE_TO_FLAG[as_dtype(dtype)])
    if init is not None:
        attrs["__init__"] = param_text(init)
    if stype is not None:
        if stype not in _STYPE_FLAGS:
            raise ArgumentError(f"Variable: stype={stype!r}: {suggest(str(stype), _STYPE_FLAGS)}")
        attrs["__storage_type__"] = _STYPE_FLAGS[stype]
    return attrs


def parse_partial_shape(shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """A shape in which -1 is unknown, and 0 too without NumPy semantics, where `()` is unknown altogether: `None`."""
    if np_mode.shape.get():
        return tuple(max(d, -1) for d in shape)
    return tuple(max(d, 0) for d in shape) or None


def parse_shape(text: str) -> tuple[int, ...] | None:
    """Read a `__shape__` attribute; see `parse_partial_shape`. An absent shape is `None`.

    Raises:
        ArgumentError: the text is not a shape.
    """
    if text.strip() in ("", "None"):
        return None
    try:
        return parse_partial_shape(to_shape(text))
    except ValueError:
        raise ArgumentError(f"attribute __shape__={text!r}: expected a tuple of integers") from None


def parse_dtype(text: str) -> np.dtype | None:
    """Read a `__dtype__` attribute (MXNet's flag, or a name); -1 is `None`.

    Raises:
        ArgumentTypeError: the text names no dtype.
    """
    return None if text.strip() in ("", "-1", "None") else as_dtype(to_dtype(text.strip()))


class NameManager(metaclass=_CurrentProperty):
    """Gives nodes without a name the next free one of their kind: `fullyconnected0`, `fullyconnected1`, …

    Managers nest with `with`; each thread has its own, and each manager counts from 0. Gluon's blocks outside any
    name scope share the counters with symbols.

    Example:
        >>> with NameManager() as names:
        ...     names.get(None, "conv"), names.get(None, "conv"), names.get("mine", "conv")
        ('conv0', 'conv1', 'mine')
    """

    def __init__(self) -> None:
        self._counter: dict[str, int] = {}

    def get(self, name: str | None, hint: str) -> str:
        """Return `name` if there is one, else `hint` with the next number of that hint."""
        if name:
            return name
        n = self._counter.get(hint, 0)
        self._counter[hint] = n + 1
        return f"{hint}{n}"

    def __enter__(self) -> NameManager:
        NameManager._stack.items.append(self)
        return self

    def __exit__(self, *exc: Any) -> None:
        NameManager._stack.items.pop()


class Prefix(NameManager):
    """A name manager that prepends `prefix` to every name of an operator node, explicit names included.

    Example:
        >>> with Prefix("net_") as names:
        ...     names.get(None, "fc"), names.get("head", "fc")
        ('net_fc0', 'net_head')
    """

    def __init__(self, prefix: str):
        super().__init__()
        self._prefix = prefix

    def get(self, name: str | None, hint: str) -> str:
        """Return the prefix followed by the name that a plain manager would give."""
        return self._prefix + super().get(name, hint)


NameManager._stack = _Stack(NameManager)


__all__ = ["AttrScope", "NameManager", "Prefix"]
