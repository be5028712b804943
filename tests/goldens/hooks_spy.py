"""Generated subclasses that log the hooks called on them: what the cases of hooks are recorded with and replayed by."""

from __future__ import annotations

import importlib
import inspect
import os
import tempfile
from collections.abc import Iterable
from typing import Any

import numpy as np


class Log:
    """Calls in the order in which they began, each as `"Owner.hook(arguments) -> result"`, indented by its depth."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.depth = 0

    def enter(self, what: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """Note that a call begins; returns its position, for `leave`."""
        told = [summary(a) for a in args] + [f"{k}={summary(kwargs[k])}" for k in sorted(kwargs)]
        self.calls.append(f"{'  ' * self.depth}{what}({', '.join(told)})")
        self.depth += 1
        return len(self.calls) - 1

    def leave(self, call: int, result: Any = None) -> None:
        """Note that the call ended, and what it returned unless that is None."""
        self.depth -= 1
        if result is not None:
            self.calls[call] += f" -> {summary(result)}"

    def note(self, what: str, *args: Any) -> None:
        """Note a call that nothing is nested in, or a phase of the case."""
        self.leave(self.enter(what, args, {}))


def summary(value: Any) -> str:
    """A value as text that is the same in every run: arrays by shape and dtype, other objects by their type."""
    if isinstance(value, str) and value.startswith(tempfile.gettempdir()):
        return repr(os.path.basename(value))
    if value is None or isinstance(value, (bool, str)):
        return repr(value)
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return f"{float(value):.6g}"
    if isinstance(value, type):
        return f"type {value.__name__}"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        kind = "unknown" if value.dtype is None else np.dtype(value.dtype).name
        return f"{'np.' if isinstance(value, np.ndarray) else ''}{kind}{list(value.shape)}"
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return f"{type(value).__name__}({', '.join(map(summary, value))})"
    if isinstance(value, (tuple, list)):
        inner = ", ".join(map(summary, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{summary(k)}: {summary(v)}" for k, v in value.items()) + "}"
    if isinstance(value, np.dtype):
        return f"dtype {value.name}"
    kind = type(value).__name__
    return "function" if inspect.isroutine(value) else "<private>" if kind.startswith("_") else f"<{kind}>"


def spy(kind: type, hooks: Iterable[str], log: Log, owner: str = "", results: bool = False) -> Any:
    """A subclass of `kind`, of the same name, whose `hooks` log each call and do what `kind` does.

    Args:
        kind: the class.
        hooks: names of methods and properties; those that `kind` lacks are left out.
        log: where calls go.
        owner: name of the class in the log, if not its own.
        results: log what the hooks return too.
    """
    owner = owner or kind.__name__

    def method_of(name: str) -> Any:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            if name == "__setattr__" and args[0].startswith("_"):  # what a framework keeps in its objects
                return getattr(super(made, self), name)(*args, **kwargs)
            call, result = log.enter(f"{owner}.{name}", args, kwargs), None
            try:
                result = getattr(super(made, self), name)(*args, **kwargs)
                return result
            finally:
                log.leave(call, result if results else None)

        return method

    def property_of(name: str) -> Any:
        def value(self: Any) -> Any:
            log.note(f"{owner}.{name}")
            return getattr(super(made, self), name)

        return property(value, getattr(kind, name).fset)

    known = [n for n in hooks if hasattr(kind, n)]
    made = type(
        kind.__name__,
        (kind,),
        {n: property_of(n) if isinstance(getattr(kind, n), property) else method_of(n) for n in known},
    )
    made.__module__ = __name__
    return made


def pack(runs: dict[str, list[str]]) -> dict[str, Any]:
    """Runs as JSON in which every line stands once."""
    lines = {line: n for n, line in enumerate(sorted({line for calls in runs.values() for line in calls}))}
    return {"lines": list(lines), "runs": {name: " ".join(str(lines[c]) for c in runs[name]) for name in runs}}


def unpack(packed: dict[str, Any]) -> dict[str, list[str]]:
    """The runs that `pack` packed."""
    return {name: [packed["lines"][int(n)] for n in run.split()] for name, run in packed["runs"].items()}


def record(mx: Any) -> Any:
    """The calls of hooks in every area."""
    areas = ("optimizer", "gluon", "module", "custom")
    cases = {area: importlib.import_module(f"tests.goldens.hooks_{area}_cases").cases() for area in areas}
    return {area: pack({name: run(mx).calls for name, run in found}) for area, found in cases.items()}
