"""Shape functions: the shapes of a call's results as Python functions of its inputs' sizes, traced once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..core.errors import MXNetError
from .symbolic_sizes import (
    Avals,
    NotSymbolic,
    Pattern,
    SymbolicTrace,
    define,
    guard_function,
    pattern_of,
    sizes_source,
    trace_symbolically,
)

Results = tuple[tuple[tuple[int, ...], np.dtype], ...]
Body = Callable[[list[Any]], Any]
_MAX_VARIANTS = 8  # shape functions of one pattern, after which its sizes are taken not to be free


class ShapeFunctions:
    """The shape functions of one call, by the pattern of its inputs' sizes.

    A pattern gets one when it is met with a second set of sizes: a trace with symbols costs two to three times one
    with numbers.

    Args:
        known: inputs for which the results are known.
    """

    __slots__ = ("_by_pattern",)

    def __init__(self, known: Iterable[Avals]) -> None:
        self._by_pattern: dict[Pattern, list[tuple[Any, Any]] | None] = {pattern_of(avals)[0]: [] for avals in known}

    @property
    def count(self) -> int:
        """How many functions there are."""
        return sum(len(known) for known in self._by_pattern.values() if known)

    def infer(self, avals: Avals, body: Body) -> Results | None:
        """Return shapes and dtypes of the results of `body`; None where only a trace with these sizes can tell."""
        pattern, sizes = pattern_of(avals)
        if pattern not in self._by_pattern:
            self._by_pattern[pattern] = []
            return None
        known = self._by_pattern[pattern]
        if known is None or not sizes:
            return None
        for guard, shapes in known:
            if guard(sizes):
                return shapes(sizes)
        if len(known) == _MAX_VARIANTS:
            self._by_pattern[pattern] = None
            return None
        try:
            traced = trace_symbolically(body, pattern, sizes)
        except MXNetError:
            return None  # these sizes are wrong, or seem so to a body that was given symbols
        except NotSymbolic:
            self._by_pattern[pattern] = None
            return None
        shapes = shape_function(traced, traced.result)
        known.append((guard_function(traced.names, traced.guards), shapes))
        return shapes(sizes)


def shape_function(traced: SymbolicTrace, results: Any) -> Callable[[tuple[int, ...]], Results]:
    """Return the function from sizes to the shapes and dtypes of abstract results."""
    dtypes = {f"t{k}": np.dtype(r.dtype) for k, r in enumerate(results)}
    pairs = "".join(f"({sizes_source(r.shape)}, t{k})," for k, r in enumerate(results))
    unpack = f" {''.join(n + ',' for n in traced.names)} = sizes\n" if traced.names else ""
    return define(f"def shapes(sizes):\n{unpack} return ({pairs})\n", "shapes", dtypes)
