"""Shape functions: the shapes of a call's results as Python functions of its inputs' sizes, traced once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..core.errors import MXNetError
from .stored_source import UNUSABLE, Data, FormatError, SourceReader, encode_expression
from .symbolic_sizes import (
    Avals,
    NotSymbolic,
    Pattern,
    define,
    guard_function,
    names_of_sizes,
    pattern_of,
    size_source,
    trace_symbolically,
)
from .trace_store import (
    decode_dtype,
    decode_refinement,
    describe_refusal,
    encode_dtype,
    encode_pattern,
    key_of,
    read_fields,
    store,
)

Results = tuple[tuple[tuple[int, ...], np.dtype], ...]
Body = Callable[[list[Any]], Any]
Row = tuple[list[str], np.dtype]
_MAX_VARIANTS = 8  # shape functions of one pattern, after which its sizes are taken not to be free


class ShapeFunctions:
    """The shape functions of one call, by the pattern of its inputs' sizes.

    Those that an earlier process made serve at once. Else a pattern gets one when it is met with a second set of sizes:
    a trace with symbols costs two to three times one with numbers, and ten times where it is in vain.

    Args:
        known: inputs for which the results are known.
        call: what the functions are of; None for something that is not kept between processes.
    """

    __slots__ = ("_by_pattern", "_call")

    def __init__(self, known: Iterable[Avals] = (), call: Any = None) -> None:
        self._by_pattern: dict[Pattern, list[tuple[Any, Any]] | None] = {pattern_of(avals)[0]: [] for avals in known}
        self._call = call

    @property
    def count(self) -> int:
        """How many functions there are."""
        return sum(len(known) for known in self._by_pattern.values() if known)

    def infer(self, avals: Avals, body: Body) -> Results | None:
        """Return shapes and dtypes of the results of `body`; None where only a trace with these sizes can tell."""
        pattern, sizes = pattern_of(avals)
        is_new = pattern not in self._by_pattern
        if is_new:
            self._by_pattern[pattern] = read_shapes(self._call, pattern, sizes) if self._call is not None else []
        known = self._by_pattern[pattern]
        if known is None:
            return None
        for guard, shapes in known:
            if guard(sizes):
                return shapes(sizes)
        if is_new or not sizes:
            return None
        if len(known) >= _MAX_VARIANTS:
            self._by_pattern[pattern] = None
            return None
        try:
            traced = trace_symbolically(body, pattern, sizes)
        except MXNetError:
            return None  # these sizes are wrong, or seem so to a body that was given symbols
        except NotSymbolic:
            self._by_pattern[pattern] = None
            return None
        if self._call is not None and (key := key_of(self._call, pattern)) is not None:
            _keep(key, pattern, traced.guards, traced.result)
        shapes = shape_function(traced.names, rows_of(traced.result))
        known.append((guard_function(traced.names, traced.guards), shapes))
        return shapes(sizes)

    def note_refusal(self, avals: Avals) -> None:
        """Try the next sizes of this pattern with numbers first: these were wrong, as those of a search mostly are."""
        pattern = pattern_of(avals)[0]
        if self._by_pattern.get(pattern) == []:
            self._by_pattern.pop(pattern, None)


def rows_of(results: Iterable[Any]) -> list[Row]:
    """Return the sources of the sizes of abstract results, with their dtypes."""
    return [([size_source(n) for n in r.shape], np.dtype(r.dtype)) for r in results]


def shape_function(names: Sequence[str], rows: Sequence[Row]) -> Callable[[tuple[int, ...]], Results]:
    """Return the function from sizes, which `names` stand for, to shapes and dtypes."""
    dtypes = {f"t{k}": dtype for k, (_, dtype) in enumerate(rows)}
    pairs = "".join(f"(({''.join(n + ',' for n in shape)}), t{k})," for k, (shape, _) in enumerate(rows))
    unpack = f" {''.join(n + ',' for n in names)} = sizes\n" if names else ""
    return define(f"def shapes(sizes):\n{unpack} return ({pairs})\n", "shapes", dtypes)


# -- between processes


def encode_shapes(pattern: Pattern, guards: Sequence[str], results: Iterable[Any]) -> Data:
    """Return the shapes of abstract results, which hold for a pattern under guards, as data."""
    rows = [[[encode_expression(n) for n in shape], encode_dtype(dtype)] for shape, dtype in rows_of(results)]
    return {"pattern": encode_pattern(pattern), "guards": [encode_expression(g) for g in guards], "results": rows}


def _keep(key: str, pattern: Pattern, guards: Sequence[str], results: Iterable[Any]) -> None:
    try:
        store.add(key, {"shapes": encode_shapes(pattern, guards, results)})
    except FormatError as e:
        describe_refusal(key, e)


def read_shapes(call: Any, pattern: Pattern, sizes: tuple[int, ...]) -> list[tuple[Any, Any]]:
    """Return guards and shape functions of a call that earlier processes kept, if they can be used."""
    key = key_of(call, pattern)
    if key is None:
        return []
    found = []
    try:
        for variant in store.read(key).get("shapes", []):
            stored_pattern, guards, results = read_fields(variant, pattern=list, guards=list, results=list)
            which = decode_refinement(stored_pattern, pattern)
            if which is None or len(found) == _MAX_VARIANTS:
                continue
            names = names_of_sizes(len(which))
            reader = SourceReader(names)
            rows = [([reader.expression(n) for n in shape], decode_dtype(dtype)) for shape, dtype in results]
            if len(rows) != call.n_results:
                raise FormatError(f"{len(rows)} results")
            guard = of_sizes(guard_function(names, [reader.expression(g) for g in guards]), which)
            shapes = of_sizes(shape_function(names, rows), which)
            if guard(sizes):
                shapes(sizes)
            found.append((guard, shapes))
    except UNUSABLE as e:
        describe_refusal(key, e)
        return []
    return found


def of_sizes(function: Callable[[tuple[int, ...]], Any], which: tuple[int, ...]) -> Callable[[tuple[int, ...]], Any]:
    """Return a function of sizes as one of others, of which it takes those of some numbers."""
    return lambda sizes: function(tuple([sizes[i] for i in which]))
