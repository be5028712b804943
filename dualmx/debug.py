"""Inspect the engine: what is pending, what was compiled and why."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .compile.events import CompileEvent, Listener, ProgramEvent, counters, format_where, listeners
from .core.errors import MXNetError
from .ndarray.explain import explain
from .ndarray.recorder import local
from .ndarray.save_load import waitall

_MAX_DESCRIBED = 10  # programs that an error describes


@contextlib.contextmanager
def assert_compiles(n: int) -> Iterator[None]:
    """Raise unless exactly `n` programs are built in this scope (pending work of this thread included).

    A program is built when its operations or the shapes of its inputs are met for the first time: it is compiled, or
    prepared to run operator by operator. When such a program is compiled after some runs, it is not a new one.

    Raises:
        AssertionError: another number was built; the text says how many, where they were recorded, and why.

    Example:
        >>> import dualmx as mx
        >>> def step(x):
        ...     return (x * 2 + 1).asnumpy()
        >>> for n in (3, 2):  # two shapes, two programs
        ...     step(mx.nd.ones((n,))).shape
        (3,)
        (2,)
        >>> with assert_compiles(0):
        ...     step(mx.nd.zeros((2,))).tolist()
        [1.0, 1.0]
    """
    waitall()
    seen = _BuildRecorder()
    listeners.append(seen)
    try:
        yield
        waitall()
    finally:
        listeners.remove(seen)
    if len(seen.lines) != n:
        details = "".join(seen.lines[:_MAX_DESCRIBED])
        more = len(seen.lines) - _MAX_DESCRIBED
        details += f"\n  and {more} more; see DUALMX_DEBUG=1" if more > 0 else ""
        raise AssertionError(f"expected {n} new programs in this scope, {len(seen.lines)} were built{details}")


class _BuildRecorder(Listener):
    """Notes each program that is built."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def prepared(self, event: ProgramEvent) -> None:
        """Note the last line of the program and the reason."""
        self.lines.append(
            f"\n  {event.n_operations} operations, the last at {format_where(event.where)}: {event.reason}"
        )

    def compiled(self, event: CompileEvent) -> None:
        """Note a program that is new."""
        if not event.is_promotion:
            self.prepared(event)


def statistics() -> dict[str, Any]:
    """Return the engine's counts since import.

    These are programs compiled and run, runs without compiling (`numpy_runs`), executables of single operators compiled
    and runs by them (`operator_compiles`, `operator_runs`), new steps, buffers copied to be kept, and failures.

    Example:
        >>> sorted(statistics())[:6]
        ['compile_seconds', 'compiles', 'failures', 'flushes', 'kept_copies', 'misses']
        >>> sorted(statistics())[6:]
        ['numpy_runs', 'operator_compiles', 'operator_runs']
    """
    return {name: getattr(counters, name) for name in counters.__slots__}


def pending() -> int:
    """Return how many steps this thread has recorded and not executed on its current context.

    Example:
        >>> import dualmx as mx
        >>> mx.nd.waitall()
        >>> x = mx.nd.ones((2,)) + 1  # an input enters, then an addition
        >>> pending()
        2
    """
    tr = local.trace
    if tr.executed:
        raise MXNetError("the current trace was executed while it was being inspected")
    return tr.state.depth


__all__ = ["assert_compiles", "explain", "pending", "statistics"]
