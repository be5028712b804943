"""Recorded events and totals by name, in memory."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time
import weakref
from collections import Counter as Tally
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

from ..compile.events import CompileEvent, Listener, ProgramEvent, format_where
from ..graph.trie import BACKWARD, OP, State, steps_of
from ..op.registry import Call

# Times of the trace count from here: microseconds since 1970 have more digits than a float.
_ZERO = time.perf_counter()
EPOCH = time.time()


class Event(NamedTuple):
    """One entry of the trace; times in seconds on the clock of `time.perf_counter`, `seconds` None for instants."""

    kind: str
    name: str
    category: str
    began: float
    seconds: float | None
    thread: int
    details: Any = None


class Program(NamedTuple):
    """The operations of one executed prefix: name, user line, and what each yields; by name and line how often."""

    operations: tuple[tuple[str, str, str], ...]
    where: str
    context: str
    counts: Tally[str]
    lines: dict[str, dict[str, int]]


class Stat:
    """Count, total, least and greatest time (or value) of one name."""

    __slots__ = ("count", "total", "min", "max")

    def __init__(self) -> None:
        self.count, self.total, self.min, self.max = 0, 0.0, float("inf"), float("-inf")

    def add(self, amount: float) -> None:
        """Count one more."""
        self.count += 1
        self.total += amount
        self.min, self.max = min(self.min, amount), max(self.max, amount)


def program_of(state: State) -> Program:
    """Return the operations recorded in a prefix."""
    steps = [s for s in steps_of(state) if s.kind in (OP, BACKWARD)]
    operations = tuple(
        (
            s.call.op.name if s.call else "backward",
            format_where(s.user_line),
            ", ".join(f"{v.dtype}{list(v.shape)}" for v in s.outs),
        )
        for s in steps
    )
    last = next((s.user_line for s in reversed(steps) if s.user_line), None)
    context = str(steps[-1].outs[0].ctx) if steps and steps[-1].outs else ""
    lines: dict[str, dict[str, int]] = {}
    for name, where, _ in operations:
        of_line = lines.setdefault(where, {})
        of_line[name] = of_line.get(name, 0) + 1
    return Program(operations, format_where(last), context, Tally(name for name, _, _ in operations), lines)


class Recorder(Listener):
    """Collects events of all threads while it watches; at most `capacity` of them, the later ones are only counted.

    Attributes:
        single: every operation runs by itself, so the time of a program's execution is that of its operation.
        timed_threads: threads whose program has told of its operators one by one.
        totals, values: of times in milliseconds and of counters, by category and name.
        dropped: events that did not fit.
    """

    measures = True

    def __init__(self, capacity: int):
        self.capacity = capacity
        self.single = self.memory = False
        self.timed_threads: set[int] = set()
        self.lock = threading.Lock()
        self.owner = os.getpid()
        self.programs: weakref.WeakKeyDictionary[State, Program] = weakref.WeakKeyDictionary()
        self.op_counts: Tally[str] = Tally()
        self.totals: dict[tuple[str, str], Stat] = {}
        self.values: dict[tuple[str, str], Stat] = {}
        self.last_end_by_thread: dict[int, float] = {}
        self.numbers = itertools.count(1)
        self.clear()

    def clear(self) -> None:
        """Forget the events."""
        self.events: list[Event] = []
        self.dropped = 0

    def forget_totals(self) -> None:
        """Reset the totals."""
        with self.lock:
            self.totals.clear()
            self.values.clear()
            self.op_counts.clear()

    def add(self, event: Event) -> None:
        """Keep an event."""
        with self.lock:
            if len(self.events) >= self.capacity:
                self.dropped += 1
            else:
                self.events.append(event)

    def count(self, category: str, name: str, amount: float) -> None:
        """Add milliseconds to the totals of a name."""
        with self.lock:
            self.totals.setdefault((category, name), Stat()).add(amount)

    def note_value(self, category: str, name: str, value: float) -> None:
        """Add a value of a counter."""
        with self.lock:
            self.values.setdefault((category, name), Stat()).add(value)

    def span(self, name: str, category: str, began: float, ended: float, details: Any = None) -> None:
        """Keep something that took time on this thread."""
        self.count(category, name, (ended - began) * 1e3)
        self.add(Event("X", name, category, began, ended - began, threading.get_ident(), details))

    # -- what the engine tells

    def prepared(self, event: ProgramEvent) -> None:
        """Record that a program was prepared, and the reason."""
        self._note_build("prepare", event, {})

    def compiled(self, event: CompileEvent) -> None:
        """Record a compilation and its reason."""
        self._note_build("compile", event, {"donated": event.donated})

    def _note_build(self, kind: str, event: ProgramEvent, more: dict[str, Any]) -> None:
        details = {
            "reason": event.reason,
            "where": format_where(event.where),
            "operations": event.n_operations,
            "results": event.results,
            **more,
        }
        self.span(kind, kind, event.start, event.start + event.seconds, details)

    def ran_operator(self, name: str, began: float, ended: float) -> None:
        """Record an operator of a program that is not compiled."""
        self.span(name, "operator", began, ended)
        self.timed_threads.add(threading.get_ident())

    def executed(self, state: State, began: float, started: float, results: Sequence[Any], how: str) -> None:
        """Wait for the program, so that its duration is known, and record it with the names of its operations."""
        # A failed execution is reported where its result is read.
        with contextlib.suppress(Exception):
            jax.block_until_ready(list(results))
        ended = time.perf_counter()
        with self.lock:
            program = self.programs.get(state)
            if program is None:
                program = self.programs[state] = program_of(state)
            alone = self.single and len(program.operations) == 1
            me = threading.get_ident()
            if not alone and me not in self.timed_threads:
                self.op_counts.update(program.counts)
            self.timed_threads.discard(me)
        before = self.last_end_by_thread.get(me)
        if before is not None and before < began:
            self.span("record", "record", before, began)
        self.last_end_by_thread[me] = ended
        if alone:
            name, where, yields = program.operations[0]
            self.span(name, "operator", started, ended, {"where": where, "yields": yields})
        else:
            details = {
                "operations": len(program.operations),
                "results": len(results),
                "where": program.where,
                "context": program.context,
                "operators": program.counts,
                "lines": program.lines,
            }
            self.span("flush", "flush", began, ended, details)
            # From the hand-over of its inputs on; before, the program was looked up, perhaps compiled.
            self.span("execute", "execute", started, ended)
        self._note_memory(results)

    def ran_eagerly(self, call: Call, began: float, started: float, results: Sequence[Any]) -> None:
        """Record an operation that ran outside programs, and the run before it, which compiles what is new."""
        with contextlib.suppress(Exception):
            jax.block_until_ready(list(results))
        self.span("first run", "first run", began, started, {"operator": call.op.name})
        self.span(call.op.name, "operator", started, time.perf_counter())

    def _note_memory(self, results: Sequence[Any]) -> None:
        on_device = next((x for x in results if isinstance(x, jax.Array)), None) if self.memory else None
        if on_device is None:
            return
        for device in on_device.devices():
            found = device.memory_stats()
            if found and "bytes_in_use" in found:
                name = f"Memory: {device}"
                self.add(Event("C", name, "memory", time.perf_counter(), None, 0, {name: found["bytes_in_use"]}))


def microseconds(moment: float) -> float:
    """Return a moment of `time.perf_counter` as microseconds since the profiler was imported."""
    return round((moment - _ZERO) * 1e6, 3)
