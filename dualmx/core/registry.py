"""Typed registries: case-insensitive name to class, with construction from JSON."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from .errors import ArgumentError, ArgumentTypeError, MXNetError, suggest
from .reader import Content

T = TypeVar("T", bound=type)


def _keywords(cls: type) -> set[str]:
    """Names of the arguments that a class and its bases take."""
    own = (inspect.signature(base.__init__) for base in cls.__mro__ if "__init__" in vars(base))
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {p.name for signature in own for p in signature.parameters.values() if p.kind in kinds} - {"self"}


class Registry:
    """A table of classes of one kind (optimizer, metric, initializer, kvstore …).

    Args:
        kind: what is registered, used in error messages.
    """

    def __init__(self, kind: str):
        self.kind = kind
        self._table: dict[str, type] = {}

    def register(self, cls: T, *names: str) -> T:
        """Add `cls` under its lower-cased class name and the extra `names`; usable as a decorator."""
        for name in (cls.__name__, *names):
            self._table[name.lower()] = cls
        return cls

    def alias(self, *names: str) -> Callable[[T], T]:
        """Decorator that registers a class under its own name and `names`."""
        return lambda cls: self.register(cls, *names)

    def get(self, name: str) -> type:
        """Return the class called `name`; `ArgumentError` names the known ones otherwise."""
        try:
            return self._table[name.lower()]
        except KeyError:
            raise ArgumentError(f"{self.kind}: unknown name {name!r}; {suggest(name, self._table)}") from None

    def __getitem__(self, name: str) -> type:
        return self._table[name]

    def create(self, spec: Any, *args: Any, **kwargs: Any) -> Any:
        """Build an instance from an instance (returned as is), a class, a name, a mapping or JSON.

        A mapping is `{kind: name, parameter: value, ...}`; JSON is such an object or a pair `["name", {...}]`.
        """
        if isinstance(spec, Mapping):
            described = {**spec, **kwargs}
            if self.kind not in described:
                raise ArgumentError(f"{self.kind}: {dict(spec)!r} has no entry {self.kind!r} that names the class")
            return self.create(described.pop(self.kind), *args, **described)
        if isinstance(spec, type):
            return spec(*args, **kwargs)
        if not isinstance(spec, str):
            return spec
        if spec.startswith(("[", "{")):
            try:
                read = json.loads(spec)
                name, described = (read, {}) if isinstance(read, dict) else read
                described = dict(described)
                if isinstance(name, dict):
                    described = {**name, **described}
                    name = described.pop(self.kind, None)
                if not isinstance(name, str) or not all(isinstance(key, str) for key in described):
                    raise ValueError(f"the name is {name!r:.80}")
            except (ValueError, TypeError, RecursionError) as e:
                raise ArgumentError(
                    f"{self.kind}: {spec[:200]!r} is not a JSON pair [name, {{parameters}}]: {str(e)[:200]}"
                ) from None
            with Content(b"", f"{self.kind} {spec[:80]!r}", "its parameters").parsing(
                TypeError, ValueError, OverflowError
            ):
                return self._made(name, args, {**described, **kwargs})
        return self._made(spec, args, kwargs)

    def _made(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        cls = self.get(name)
        try:
            return cls(*args, **kwargs)
        except TypeError as e:
            # Python names the base class that met the argument, not what the user asked for.
            unknown = re.search(r"unexpected keyword argument '(.*?)'", str(e))
            if unknown is None or isinstance(e, MXNetError):
                raise
            word = unknown.group(1)
            raise ArgumentTypeError(
                f"{self.kind} {name!r}: unknown argument {word!r}; {suggest(word, _keywords(cls))}"
            ) from e

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._table

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._table))
