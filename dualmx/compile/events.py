"""Listeners of compile and execute events (profiler, `DUALMX_DEBUG` printer), and the counters of `mx.debug`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core import knobs
from ..graph.trie import State
from ..op.registry import Call


def format_where(where: tuple[str, int] | None) -> str:
    """Return `file:line`, or a phrase when the line is not known."""
    return f"{where[0]}:{where[1]}" if where else "an unknown line"


@dataclass(frozen=True)
class ProgramEvent:
    """A program was built: compiled, or prepared to run operator by operator.

    Attributes:
        steps: the recorded steps; `results`: how many results it yields.
        reason: why no earlier executable fitted.
        start, seconds: on the clock of `time.perf_counter`.
        built: what was made to run it.
    """

    steps: Sequence[State]
    results: int
    reason: str
    start: float
    seconds: float
    built: str = field(default="", kw_only=True)

    @property
    def where(self) -> tuple[str, int] | None:
        """The last line of the user that recorded it."""
        return next((s.user_line for s in reversed(self.steps) if s.user_line), None)

    @property
    def n_operations(self) -> int:
        """How many operations were recorded."""
        return sum(s.call is not None for s in self.steps)


@dataclass(frozen=True)
class CompileEvent(ProgramEvent):
    """One compilation.

    Attributes:
        donated: how many buffers the program takes over.
        traced, lowered, compiled: JAX's stages, for the program's texts.
        is_promotion: the program is not new: it ran operator by operator until now.
    """

    donated: int
    traced: Any
    lowered: Any
    compiled: Any
    is_promotion: bool


class Listener:
    """Receives every program's events while it is in `listeners`; it must not keep the results it is shown.

    Attributes:
        measures: calls outside programs run twice, so that nothing is compiled in the run that it is told about.
        times_operators: it is told of each operator of programs that are not compiled.
    """

    measures = times_operators = False

    def prepared(self, event: ProgramEvent) -> None:
        """A program was prepared to run operator by operator."""

    def compiled(self, event: CompileEvent) -> None:
        """A program was compiled, perhaps in a thread of its own."""

    def executed(self, state: State, began: float, started: float, results: Sequence[Any], how: str) -> None:
        """The program of the prefix `state` was handed to its device (which may still be computing).

        The flush began at `start`; at `started` the program was there, compiled if need be. Results that are inputs
        handed through may be NumPy memory. `how` says whether it is compiled.
        """

    def ran_operator(self, name: str, began: float, ended: float) -> None:
        """An operator of a program that is not compiled ran, or its VJP, whose name begins with `_backward_`."""

    def ran_eagerly(self, call: Call, began: float, started: float, results: Sequence[Any]) -> None:
        """A call whose shapes depend on values ran outside any program: at `started`, and once before if measured."""


class DebugPrinter(Listener):
    """Prints what happens to stderr; more of it the higher `level`."""

    def __init__(self, level: int):
        self.level = level

    def prepared(self, event: ProgramEvent) -> None:
        """Print the size and the reason, and from level 2 on the program."""
        self._print_program(event, f"prepared {event.n_operations} operations, {event.results} results {event.built}")

    def compiled(self, event: CompileEvent) -> None:
        """Print the size, the reason, and from level 2 on the program's texts."""
        size = f"{event.n_operations} operations, {event.results} results, {event.donated} donated"
        self._print_program(event, f"compiled {size}")
        if self.level >= 3:
            debug_print(f"jaxpr: {event.traced.jaxpr}")
        if self.level >= 4:
            debug_print(f"lowered: {event.lowered.as_text()}")
            debug_print(f"compiled: {event.compiled.as_text()}")

    def _print_program(self, event: ProgramEvent, what: str) -> None:
        debug_print(
            f"{what} in {event.seconds * 1e3:.0f} ms (last recorded at {format_where(event.where)}); "
            f"reason: {event.reason}"
        )
        if self.level >= 2:
            for s in event.steps:
                debug_print(f"  {s.kind:8} {s.call or ''} {list(s.ins)} -> {list(s.outs)}  {format_where(s.user_line)}")

    def executed(self, state: State, began: float, started: float, results: Sequence[Any], how: str) -> None:
        """Print one line."""
        last: State | None = state
        while last is not None and last.user_line is None:
            last = last.parent
        debug_print(
            f"flush of {state.depth} steps, {len(results)} results at "
            f"{format_where(last.user_line if last else None)} ({how})"
        )

    def ran_eagerly(self, call: Call, began: float, started: float, results: Sequence[Any]) -> None:
        """Print one line."""
        debug_print(f"ran {call!r} at once: the shape of its result depends on values")


def debug_print(text: str) -> None:
    """Print one message of the ladder."""
    print(f"[dualmx] {text}", file=sys.stderr)


_level = int(knobs.DEBUG.read())
listeners: list[Listener] = [DebugPrinter(_level)] if _level else []


class Counters:
    """Totals of this process: programs compiled and run, new recorded steps, buffers copied, failures."""

    __slots__ = (
        "compiles", "flushes", "misses", "kept_copies", "failures", "compile_seconds", "numpy_runs",
        "operator_compiles", "operator_runs",
    )  # fmt: skip

    def __init__(self) -> None:
        self.compiles = self.flushes = self.misses = self.kept_copies = self.failures = 0
        self.compile_seconds = 0.0
        self.numpy_runs = self.operator_compiles = self.operator_runs = 0


counters = Counters()
