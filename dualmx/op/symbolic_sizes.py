"""Tracing a body once for many sizes: sizes are symbols, and what was decided about them is a guard.

The sizes of an application are symbols of `jax.export`; equal sizes are one symbol, 0 and 1 stand for themselves. Where
JAX or the body asks what symbols cannot answer ("is n at least k?"), the sizes of the first application answer, and
the answer becomes a condition on the sizes of later ones.
"""

from __future__ import annotations

import contextvars
import itertools
import math
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from jax import export

from ..core.errors import MXNetError

_T = TypeVar("_T")
Avals = Sequence[tuple[tuple[int, ...], np.dtype]]
# Per input its dtype and, per axis, 0, 1, or -1-k for the k-th different size.
Pattern = tuple[tuple[tuple[int, ...], np.dtype], ...]
_MAX_REMAINDER = 32
_MAX_FIXED_TRIALS = 12  # sizes and pairs of sizes that are tried as constants before all that a body asks for are


def pattern_of(avals: Avals) -> tuple[Pattern, tuple[int, ...]]:
    """Return which sizes are equal, and the different ones in order of appearance.

    Example:
        >>> import numpy as np
        >>> f = np.dtype("float32")
        >>> pattern_of([((2, 3, 1), f), ((3, 2), f)])
        ((((-1, -2, 1), dtype('float32')), ((-2, -1), dtype('float32'))), (2, 3))
    """
    numbers: dict[int, int] = {}
    rows = [
        (tuple([n if n < 2 else numbers.setdefault(n, -1 - len(numbers)) for n in shape]), dtype)
        for shape, dtype in avals
    ]
    return tuple(rows), tuple(numbers)


def refinement(fine: Pattern, coarse: Pattern) -> tuple[int, ...] | None:
    """Return which of the sizes of `coarse` each of `fine` is, where sizes of `fine` may be equal by chance.

    What was traced for the finer pattern serves for the other if its guards hold; None if it has other sizes.

    Example:
        >>> f = np.dtype("float32")
        >>> refinement((((-1, -2), f), ((-2, -3), f)), (((-1, -2), f), ((-2, -1), f)))
        (0, 1, 0)
    """
    found: dict[int, int] = {}
    for (a, kind), (b, other) in zip(fine, coarse, strict=True):
        if len(a) != len(b) or kind != other:
            return None
        for p, q in zip(a, b, strict=True):
            if p != q if p >= 0 or q >= 0 else found.setdefault(p, q) != q:
                return None
    return tuple([-1 - found[-1 - k] for k in range(len(found))])


class SymbolicTrace(NamedTuple):
    """What a body gave for symbols.

    Attributes:
        result: what it returned.
        names: the symbols' names, one for each different size.
        guards: conditions on them, as Python source, under which the result holds.
        fixed: numbers of the sizes that are constants in it.
    """

    result: Any
    names: list[str]
    guards: list[str]
    fixed: frozenset[int]


class NotSymbolic(Exception):
    """A body cannot be traced without knowing all sizes."""


class _Guards:
    """What one trace asked about its symbols."""

    def __init__(self, names: Sequence[str], sizes: Sequence[int], scope: Any, use_as_index: bool):
        self.sizes = dict(zip(names, sizes, strict=True))
        self.scope, self.use_as_index = scope, use_as_index
        self.pinned: set[str] = set()  # symbols that a guard makes equal to a number
        self.conditions: dict[str, None] = {}

    def value(self, size: Any) -> int:
        return int(size._evaluate(self.sizes) if isinstance(size, _dim_expr) else size)

    def require(self, condition: str) -> None:
        self.conditions[condition] = None

    def require_equal(self, size: Any, value: int) -> None:
        if (name := size._to_var()) is not None:
            self.pinned.add(name)
        self.require(f"({size_source(size)}) == {value}")

    def owns(self, size: Any) -> bool:
        return isinstance(size, _dim_expr) and size.scope is self.scope


class _Thread(threading.local):
    """The guards of the trace under way in a thread."""

    guards: _Guards | None = None


_thread = _Thread()


def _load_internals() -> tuple[Any, Any, Any]:
    try:
        from jax._src import core
        from jax._src.export import shape_poly

        needed = (
            shape_poly._DimExpr, shape_poly._geq_decision, core.divide_shape_sizes,
            core.InconclusiveDimensionOperation, shape_poly._DimExpr._evaluate, shape_poly._DimExpr._to_var,
            shape_poly._DimExpr.rmin,
        )  # fmt: skip
        assert all(needed)
    except (ImportError, AttributeError):
        return None, None, None
    return core, shape_poly, shape_poly._DimExpr


# Symbols of `jax.export` have no public way to decide what they cannot. Without these names all traces are concrete.
_core, _poly, _dim_expr = _load_internals()
is_available = _core is not None


def _install_decisions() -> None:
    """Let the symbols of a trace under way decide by its sizes; all other symbols are as before."""
    decide_geq, as_int, equal, divide = (
        _poly._geq_decision,
        _dim_expr.__int__,
        _dim_expr.__eq__,
        _core.divide_shape_sizes,
    )
    inconclusive = _core.InconclusiveDimensionOperation
    interner = getattr(_core.ShapedArray.__new__, "__code__", None)

    def is_remainder(size: Any) -> bool:
        """Whether it has few values, for all sizes, as what divisions leave has; a guard then holds for many sizes."""
        if size._to_var() is not None:
            return False
        try:
            ends = (size, -_MAX_REMAINDER), (_MAX_REMAINDER, size)
            return all(decide_geq(a, b, lambda: "") for a, b in ends)
        except inconclusive:
            return False

    def geq(a: Any, b: Any, comparison: Any) -> bool:
        try:
            return decide_geq(a, b, comparison)
        except inconclusive:
            now = _thread.guards
            if now is None:
                raise
            result = now.value(a) >= now.value(b)
            now.require(f"({size_source(a)}) {'>=' if result else '<'} ({size_source(b)})")
            return result

    def to_int(self: Any) -> int:
        try:
            return as_int(self)
        except inconclusive:
            now = _thread.guards
            if now is None or not now.owns(self):
                raise
            value = now.value(self)
            now.require_equal(self, value)
            return value

    def to_index(self: Any) -> int:
        # JAX asks for an index to know whether a size is constant: that must not fix it, unless it is fixed already.
        now = _thread.guards
        if now is not None and now.owns(self):
            if now.use_as_index or is_remainder(self):
                return to_int(self)
            if now.pinned.issuperset(self._get_vars()):
                return now.value(self)
        raise TypeError(f"the size {self} is not a number")

    def equals(self: Any, other: Any) -> Any:
        result, now = equal(self, other), _thread.guards
        if result or now is None or not now.owns(self) or sys._getframe(1).f_code is interner:
            return result  # types are interned: what else is in that table is compared by chance of its hash
        is_symbolic = now.owns(other)
        if not is_symbolic and not isinstance(other, (int, np.integer)):
            return result
        # JAX takes what may differ for different: here it is what it was at first, under a guard.
        result = now.value(self) == now.value(other)
        if result and not is_symbolic:
            now.require_equal(self, int(other))
        elif result or is_symbolic or other > 1 or self._to_var() is None:  # a symbol is no 0 and no 1
            now.require(f"({size_source(self)}) {'==' if result else '!='} ({size_source(other)})")
        return result

    def truth(self: Any) -> bool:
        now = _thread.guards
        if now is None or not now.owns(self):
            return True
        value = now.value(self)
        if self._to_var() is None:
            now.require(f"({size_source(self)}) {'!=' if value else '=='} 0")
        return value != 0

    def divide_sizes(a: Any, b: Any) -> Any:
        try:
            return divide(a, b)
        except inconclusive:
            now = _thread.guards
            if now is None:
                raise
            over, under = math.prod(a), math.prod(b)
            if now.value(over) % now.value(under):
                raise
            now.require(f"({size_source(over)}) % ({size_source(under)}) == 0")
            return over // under

    def deciding(plain: Callable[[Any, Any], Any], keeps_larger: bool) -> Callable[[Any, Any], Any]:
        def extreme(self: Any, other: Any) -> Any:
            now = _thread.guards
            if now is None or not now.owns(self):
                return plain(self, other)
            # JAX takes paddings as numbers only; a size with a maximum in it seldom becomes one.
            return self if (self >= other) == keeps_larger else other

        return extreme

    _poly._geq_decision, _core.divide_shape_sizes = geq, divide_sizes
    for name in ("max", "rmax", "min", "rmin"):
        setattr(_dim_expr, name, deciding(getattr(_dim_expr, name), "max" in name))
    _dim_expr.__int__, _dim_expr.__index__, _dim_expr.__eq__, _dim_expr.__bool__ = to_int, to_index, equals, truth


def size_source(size: Any) -> str:
    """Return a size as Python source over the names of its symbols."""
    if not is_available or not isinstance(size, _dim_expr):
        return str(int(size))
    terms = []
    for term, count in size._sorted_terms:
        factors = []
        for factor, power in term._factors:
            if factor.var is not None:
                text = factor.var
            else:
                a, b = (size_source(o) for o in factor.operands)
                text = {
                    "floordiv": f"(({a})//({b}))",
                    "mod": f"(({a})%({b}))",
                    "max": f"max({a},{b})",
                    "min": f"min({a},{b})",
                }[factor.operation]
            factors += [text] * power
        terms.append("*".join([str(count), *factors] if count != 1 or not factors else factors))
    return f"({'+'.join(terms)})" if len(terms) != 1 else terms[0]


def sizes_source(sizes: Sequence[Any]) -> str:
    """Return several sizes as the source of a tuple."""
    return "(" + "".join(size_source(n) + "," for n in sizes) + ")"


_install_lock = threading.Lock()
_is_installed = False


def trace_symbolically(
    body: Callable[[list[jax.ShapeDtypeStruct]], _T],
    pattern: Pattern,
    sizes: tuple[int, ...],
) -> SymbolicTrace:
    """Trace a body for inputs of a pattern, with as many sizes free as it allows.

    Args:
        body: takes the abstract inputs.
        pattern, sizes: see `pattern_of`.

    Raises:
        NotSymbolic: it needs all sizes, or this JAX has no symbols that can decide.
        MXNetError: the body refused the inputs.
    """
    global _is_installed
    if not is_available:
        raise NotSymbolic
    with _install_lock:
        if not _is_installed:
            _install_decisions()
            _is_installed = True
    return _run_apart(lambda: _trace_freely(body, pattern, sizes))


def _run_apart(fn: Callable[[], _T]) -> _T:
    """Run a function in a thread of its own, and raise what it raises.

    JAX leaves cycles of exceptions and frames behind where it meets symbols; they would hold the frames of all callers,
    and with them arrays of the user.
    """
    outcome: list[Any] = []

    def target() -> None:
        try:
            outcome.append(fn())
        except Exception as e:
            outcome.append(e.with_traceback(None))

    thread = threading.Thread(target=contextvars.copy_context().run, args=(target,), name="dualmx-trace")
    thread.start()
    thread.join()
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    return outcome[0]


def _trace_freely(
    body: Callable[[list[jax.ShapeDtypeStruct]], _T], pattern: Pattern, sizes: tuple[int, ...]
) -> SymbolicTrace:
    """Trace with all sizes free, else with one or two fixed, else with those that are used as numbers fixed."""
    try:
        return _trace_once(body, pattern, sizes, frozenset(), False)
    except MXNetError:
        raise
    except Exception as e:
        if not sizes:
            raise NotSymbolic(str(e)) from None
    found = _trace_with_few_fixed(body, pattern, sizes)
    if found is not None:
        return found
    try:
        return _trace_once(body, pattern, sizes, frozenset(), True)
    except Exception as e:  # if the body refuses sizes of which some are numbers, those at hand decide
        raise NotSymbolic(str(e)) from None


def _trace_with_few_fixed(
    body: Callable[[list[jax.ShapeDtypeStruct]], _T], pattern: Pattern, sizes: tuple[int, ...]
) -> SymbolicTrace | None:
    """Trace with one constant size, or two; None if that is not enough."""
    numbers = range(len(sizes))
    choices = itertools.chain(itertools.combinations(numbers, 1), itertools.combinations(numbers, 2))
    for fixed in itertools.islice(choices, _MAX_FIXED_TRIALS):
        try:
            return _trace_once(body, pattern, sizes, frozenset(fixed), False)
        except Exception:  # noqa: S112 - a body may raise anything where a size is not a number
            continue
    return None


def _trace_once(
    body: Callable[[list[jax.ShapeDtypeStruct]], _T],
    pattern: Pattern,
    sizes: tuple[int, ...],
    fixed: frozenset[int],
    use_as_index: bool,
) -> SymbolicTrace:
    names = names_of_sizes(len(sizes))
    # A scope of its own: JAX's caches must not answer with the decisions of an earlier trace.
    scope = export.SymbolicScope([f"{n} >= 2" for n in names])
    symbols: list[Any] = list(export.symbolic_shape(",".join(names), scope=scope)) if names else []
    symbols = [sizes[k] if k in fixed else s for k, s in enumerate(symbols)]
    specs = [
        jax.ShapeDtypeStruct(tuple(n if n >= 0 else symbols[-1 - n] for n in row), dtype) for row, dtype in pattern
    ]
    before, now = _thread.guards, _Guards(names, sizes, scope, use_as_index)
    _thread.guards = now
    try:
        with jax.enable_x64(True):
            result = body(specs)
    finally:
        _thread.guards = before
    guards = [f"{names[k]} == {sizes[k]}" for k in sorted(fixed)] + list(now.conditions)
    return SymbolicTrace(result, names, guards, fixed)


def names_of_sizes(count: int) -> list[str]:
    """Return what different sizes are called in generated source."""
    return [f"d{k}" for k in range(count)]


def guard_function(names: Sequence[str], guards: Sequence[str]) -> Callable[[tuple[int, ...]], bool]:
    """Return the function that tells whether sizes satisfy guards."""
    if not guards:
        return lambda sizes: True
    source = f"def guard(sizes):\n {''.join(n + ',' for n in names)} = sizes\n return {' and '.join(guards)}\n"
    return define(source, "guard", {})


def define(source: str, name: str, constants: dict[str, Any]) -> Any:
    """Return a function of generated source, which may use `constants`."""
    scope = dict(constants)
    exec(compile(source, f"<generated {name}>", "exec"), scope)
    return scope[name]
