"""Marks that a program puts into the trace: tasks, frames, events, counters, markers."""

from __future__ import annotations

import threading
import time
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError
from .profiler import control
from .recorder import Event as Entry

_SCOPES = {"global": "g", "process": "p", "thread": "t", "task": "t", "marker": "t"}


def _name(what: str, name: Any) -> str:
    if not isinstance(name, str):
        raise ArgumentTypeError(f"profiler.{what}: name={name!r}: expected a str")
    return name


class Domain:
    """A group of tasks, frames, counters and markers: their category in the trace.

    Example:
        >>> import dualmx as mx
        >>> domain = mx.profiler.Domain("input")
        >>> with domain.new_task("read"):
        ...     pass
    """

    def __init__(self, name: str):
        self.name = _name("Domain", name)

    def __str__(self) -> str:
        return self.name

    def new_task(self, name: str) -> Task:
        """Return a new task of this domain."""
        return Task(self, name)

    def new_frame(self, name: str) -> Frame:
        """Return a new frame of this domain."""
        return Frame(self, name)

    def new_counter(self, name: str, value: float | None = None) -> Counter:
        """Return a new counter of this domain; `value` sets it at once."""
        return Counter(self, name, value)

    def new_marker(self, name: str) -> Marker:
        """Return a new marker of this domain."""
        return Marker(self, name)


class _Span:
    """Something with a start and a stop; also a context manager. Spans of one name may overlap others."""

    def __init__(self, name: str, category: str):
        self.name = _name(type(self).__name__, name)
        self._category = category
        self._began: float | None = None

    def __str__(self) -> str:
        return self.name

    def start(self) -> None:
        """Begin now."""
        self._began = time.perf_counter()

    def stop(self) -> None:
        """End now; without `start` before, nothing happens."""
        began, self._began = self._began, None
        if began is None or not control.active:
            return
        ended, me = time.perf_counter(), threading.get_ident()
        recorder = control.recorder
        number = next(recorder.numbers)
        # An asynchronous pair: such spans need not nest with the flushes of their thread.
        recorder.add(Entry("b", self.name, self._category, began, None, me, number))
        recorder.add(Entry("e", self.name, self._category, ended, None, me, number))
        recorder.count(self._category, self.name, (ended - began) * 1e3)

    def __enter__(self) -> Any:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


class Task(_Span):
    """A piece of work of a domain, from `start` to `stop`."""

    def __init__(self, domain: Domain, name: str):
        super().__init__(name, str(domain))
        self.domain = domain


class Frame(_Span):
    """One pass of a repeated piece of work of a domain, from `start` to `stop`."""

    def __init__(self, domain: Domain, name: str):
        super().__init__(name, f"{domain},frame")
        self.domain = domain


class Event(_Span):
    """A piece of work of no domain, from `start` to `stop`."""

    def __init__(self, name: str):
        super().__init__(name, "event")


class Counter:
    """A number over time: `counter += 1`."""

    def __init__(self, domain: Domain, name: str, value: float | None = None):
        self.name, self.domain = _name("Counter", name), domain
        self.value: float = 0
        self._lock = threading.Lock()
        if value is not None:
            self.set_value(value)

    def __str__(self) -> str:
        return self.name

    def set_value(self, value: float) -> None:
        """Set the number."""
        with self._lock:
            self._emit(value)

    def increment(self, delta: float = 1) -> None:
        """Add `delta`."""
        with self._lock:
            self._emit(self.value + delta)

    def decrement(self, delta: float = 1) -> None:
        """Subtract `delta`."""
        self.increment(-delta)

    def _emit(self, value: float) -> None:
        self.value = value
        if control.active:
            entry = Entry("C", self.name, str(self.domain), time.perf_counter(), None, 0, {self.name: value})
            control.recorder.add(entry)
            control.recorder.note_value(str(self.domain), self.name, value)

    def __iadd__(self, delta: float) -> Counter:
        self.increment(delta)
        return self

    def __isub__(self, delta: float) -> Counter:
        self.decrement(delta)
        return self


class Marker:
    """A moment."""

    def __init__(self, domain: Domain, name: str):
        self.name, self.domain = _name("Marker", name), domain

    def mark(self, scope: str = "process") -> None:
        """Mark now, across the `"global"` trace, the `"process"`, or the `"thread"` (also `"task"`, `"marker"`)."""
        if scope not in _SCOPES:
            raise ArgumentError(f"profiler.Marker.mark: scope={scope!r}: expected one of {', '.join(_SCOPES)}")
        if control.active:
            me, now = threading.get_ident(), time.perf_counter()
            control.recorder.add(Entry("i", self.name, str(self.domain), now, None, me, _SCOPES[scope]))


__all__ = ["Counter", "Domain", "Event", "Frame", "Marker", "Task"]
