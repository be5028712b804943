# pyright: reportMissingImports=false
# Those who check types need not have pyspark.
"""Spark Params from one definition each: the Param, its check, its setter and its getter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.ml.param import Param, Params

from ...core.argcheck import integer
from ...core.errors import ArgumentError, ArgumentTypeError, suggest

Check = Callable[[str, str, Any], Any]


def count(what: str, name: str, value: Any) -> int:
    """Return a number of 1 or more."""
    return integer(what, name, value, 1)


def seed(what: str, name: str, value: Any) -> int:
    """Return a number that random numbers can begin with."""
    if integer(what, name, value, 0) >= 2**32:
        raise ArgumentError(f"{what}: {name}={value!r}: expected less than 2 ** 32")
    return int(value)


def flag(what: str, name: str, value: Any) -> bool:
    """Return a bool."""
    if isinstance(value, bool):
        return value
    raise ArgumentTypeError(f"{what}: {name}={value!r}: expected True or False")


def text(what: str, name: str, value: Any) -> str:
    """Return a name."""
    if isinstance(value, str) and value:
        return value
    raise ArgumentTypeError(f"{what}: {name}={value!r}: expected a name")


def names(what: str, name: str, value: Any) -> list[str]:
    """Return names of columns, none twice."""
    listed = [value] if isinstance(value, str) else list(value) if isinstance(value, (list, tuple)) else []
    if not listed or not all(isinstance(one, str) for one in listed):
        raise ArgumentTypeError(f"{what}: {name}={value!r}: expected a list of names of columns")
    if len(set(listed)) < len(listed):
        raise ArgumentError(f"{what}: {name}={value!r}: expected each column once")
    return listed


def one_name(what: str, name: str, value: Any) -> list[str]:
    """Return a list with the name of one column."""
    listed = names(what, name, value)
    if len(listed) > 1:
        raise ArgumentError(
            f"{what}: {name}={value!r}: expected one column, as a model has one loss; VectorAssembler puts several "
            "side by side"
        )
    return listed


def listed(what: str, name: str, value: Any) -> list[Any]:
    """Return a list; a single value becomes a list of one."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def shapes(what: str, name: str, value: Any) -> list[list[int]]:
    """Return shapes, of which the first axis is that of rows."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(one, (list, tuple)) and one for one in value):
        raise ArgumentTypeError(f"{what}: {name}={value!r}: expected a list of shapes such as [[-1, 28, 28, 1]]")
    if any(one[0] != -1 or not all(isinstance(d, int) and d > 0 for d in one[1:]) for one in value):
        raise ArgumentError(f"{what}: {name}={value!r}: expected -1 for the rows, and positive lengths behind it")
    return [list(one) for one in value]


def setting(name: str, doc: str, check: Check | None = None) -> Param[Any]:
    """Return a Param of a class; `check` returns values as they are kept, or raises."""
    made: Param[Any] = Param(Params._dummy(), name, doc)  # type: ignore[arg-type]
    if check is not None:
        _CHECKS[name] = check
    return made


_CHECKS: dict[str, Check] = {}


class Settings(Params):
    """Base of stages with Params, which are checked when they are set and when they are used."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for param in [p for p in vars(cls).values() if isinstance(p, Param)]:
            _add_accessors(cls, param)

    def with_uid(self, uid: str) -> Any:
        """Take over an identity; returns the stage."""
        return self._resetUid(uid)

    def _set(self, **given: Any) -> Any:
        known = [p.name for p in self.params]
        for name in given:
            if name not in known:
                raise ArgumentError(f"{type(self).__name__}: unknown setting {name!r}; {suggest(name, known)}")
        return super()._set(**{name: self._checked(name, value) for name, value in given.items()})

    def _checked(self, name: str, value: Any) -> Any:
        check = _CHECKS.get(name)
        return value if check is None or value is None else check(type(self).__name__, name, value)

    def _values(self, required: Sequence[str] = ()) -> dict[str, Any]:
        """The settings by name, those of `fit(df, params)` included, which Spark has not checked.

        Raises:
            ArgumentError: one is required, and not there.
        """
        found = {p.name: self._checked(p.name, self.getOrDefault(p)) for p in self.params if self.isDefined(p)}
        for name in required:
            if found.get(name) is None:
                doc = self.getParam(name).doc
                raise ArgumentError(f"{type(self).__name__}: {name}: expected {doc}, but there is none")
        return found


def _add_accessors(cls: type, param: Param[Any]) -> None:
    name = param.name

    def set_it(self: Any, value: Any) -> Any:
        return self._set(**{name: value})

    def get_it(self: Any) -> Any:
        return self.getOrDefault(name)

    camel = "".join(part.title() for part in name.split("_"))
    for function, verb, doc in ((set_it, "set", f"Set {param.doc}."), (get_it, "get", f"Return {param.doc}.")):
        function.__name__, function.__doc__ = verb + camel, doc
        function.__qualname__ = f"{cls.__name__}.{verb}{camel}"
        if function.__name__ not in vars(cls):
            setattr(cls, function.__name__, function)


__all__ = [
    "Settings", "count", "flag", "listed", "names", "one_name", "seed", "setting", "shapes", "text",
]  # fmt: skip
