"""`mx.registry`: registries for class families of a script's own.

Example:
    >>> import dualmx as mx
    >>> class Layer:
    ...     def __init__(self, size=1):
    ...         self.size = size
    >>> register = mx.registry.get_register_func(Layer, "layer")
    >>> @register
    ... class Wide(Layer):
    ...     pass
    >>> mx.registry.get_create_func(Layer, "layer")("wide", size=3).size
    3
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

from .core.errors import ArgumentError, ArgumentTypeError, suggest

_TABLES: dict[type, dict[str, type]] = {}


def get_registry(base_class: type) -> dict[str, type]:
    """Return a copy of the table of `base_class`: class by lower-case name."""
    return dict(_TABLES.get(base_class, {}))


def get_register_func(base_class: type, nickname: str) -> Callable[..., type]:
    """Return `register(klass, name=None)`, a decorator that adds a class derived from `base_class` to its table.

    Args:
        base_class: what the classes are derived from.
        nickname: what they are called in messages.
    """
    table = _TABLES.setdefault(base_class, {})

    def register(klass: type, name: str | None = None) -> type:
        if not (isinstance(klass, type) and issubclass(klass, base_class)):
            raise ArgumentTypeError(f"register: {klass!r}: expected a class derived from {base_class.__name__}")
        key = (name or klass.__name__).lower()
        if table.get(key, klass) is not klass:
            old = f"{table[key].__module__}.{table[key].__name__}"
            warnings.warn(
                f"new {nickname} {klass.__module__}.{klass.__name__} replaces {old} under the name {key!r}",
                stacklevel=2,
            )
        table[key] = klass
        return klass

    register.__doc__ = f"Add a {nickname} to the table under its name in lower case, or another one."
    return register


def get_alias_func(base_class: type, nickname: str) -> Callable[..., Callable[[type], type]]:
    """Return `alias(*names)`, a decorator that adds a class to the table under several names."""
    register = get_register_func(base_class, nickname)

    def alias(*aliases: str) -> Callable[[type], type]:
        def add(klass: type) -> type:
            for name in aliases:
                register(klass, name)
            return klass

        return add

    return alias


def get_create_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """Return `create(spec, *args, **kwargs)`, which makes an object of a class in the table.

    `spec` is an object, which is returned, a name, the JSON text `["name", {parameters}]`, or a JSON object with the
    name under `nickname`; by keyword too.
    """
    table = _TABLES.setdefault(base_class, {})

    def create(*args: Any, **kwargs: Any) -> Any:
        if not args and nickname not in kwargs:
            raise ArgumentTypeError(f"create: expected a {nickname}: an object, its name, or JSON text")
        spec, rest = (args[0], args[1:]) if args else (kwargs.pop(nickname), ())
        if isinstance(spec, base_class):
            if rest or kwargs:
                raise ArgumentError(f"create: {nickname} is an object already; further arguments have no effect")
            return spec
        if isinstance(spec, dict):
            return create(**spec)
        if not isinstance(spec, str):
            raise ArgumentTypeError(f"create: {nickname}={spec!r}: expected a string or a {base_class.__name__}")
        if spec.startswith("["):
            name, params = json.loads(spec)
            return create(name, **params)
        if spec.startswith("{"):
            return create(**json.loads(spec))
        if spec.lower() not in table:
            raise ArgumentError(f"create: {nickname} {spec!r} is not registered; {suggest(spec.lower(), table)}")
        return table[spec.lower()](*rest, **kwargs)

    create.__doc__ = f"Return a {nickname} by its name, JSON text, or as it is."
    return create


__all__ = ["get_alias_func", "get_create_func", "get_register_func", "get_registry"]
