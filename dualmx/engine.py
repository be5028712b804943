"""Settings of the lazy engine: bulk size."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from .core.argcheck import integer
from .ndarray.execute import flush
from .ndarray.recorder import engine


def set_bulk_size(size: int) -> int:
    """Set the most operations recorded before they are executed; returns what it was.

    0 or 1 executes each operation at once.

    Example:
        >>> before = set_bulk_size(30)
        >>> set_bulk_size(before)
        30
    """
    size = integer("set_bulk_size", "size", size, 0)
    flush()
    before = engine.bulk_size
    engine.set_bounds(max(1, size))
    engine.naive = engine.bulk_size == 1
    return before


class _BulkScope:
    def __init__(self, size: int):
        self._size = size

    def __enter__(self) -> _BulkScope:
        self._before = dict(vars(engine))
        set_bulk_size(self._size)
        return self

    def __exit__(self, *error: object) -> None:
        flush()
        vars(engine).update(self._before)  # the bounds that follow from the size too


def bulk(size: int) -> _BulkScope:
    """Return a scope in which at most `size` operations are recorded before they are executed.

    Example:
        >>> with bulk(10):
        ...     x = mx.nd.ones((2,)) + 1
    """
    return _BulkScope(size)


@contextlib.contextmanager
def naive() -> Iterator[None]:
    """Return a scope in which each operation is executed at once, so that errors show at their line.

    Example:
        >>> with naive():
        ...     x = mx.nd.ones((2,)) + 1
        >>> print(mx.debug.explain(x))
        float32[2]@cpu(0): computed
    """
    flush()
    before, engine.naive = engine.naive, True
    try:
        yield
    finally:
        flush()
        engine.naive = before


__all__ = ["bulk", "naive", "set_bulk_size"]
