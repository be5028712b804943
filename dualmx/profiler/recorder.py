"""What was measured: events in memory, and the totals per name."""

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

from ..compile.watch import Compilation, Watcher, format_where
from ..graph.trie import BACKWARD, OP, State, chain
from ..op.registry import Call

# Times of the trace count from here: microseconds since 1970 have more digits than a float.
_ZERO = time.perf_counter()
STARTED = time.time()


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
    """The operations of one executed prefix: name, user line, and what each yields; `counts` by name."""

    operations: tuple[tuple[str, str, str], ...]
    where: str
    context: str
    counts: Tally[str]


class Totals:
    """Count, total, least and greatest time (or value) of one name."""

    __slots__ = ("count", "total", "least", "most")

    def __init__(self) -> None:
        self.count, self.total, self.least, self.most = 0, 0.0, float("inf"), 0.0

    def add(self, amount: float) -> None:
        """Count one more."""
        self.count += 1
        self.total += amount
        self.least, self.most = min(self.least, amount), max(self.most, amount)


def program_of(state: State) -> Program:
    """Return the operations recorded in a prefix."""
    steps = [s for s in chain(state) if s.kind in (OP, BACKWARD)]
    operations = tuple(
        (
            s.call.op.name if s.call else "backward",
            format_where(s.where),
            ", ".join(f"{v.dtype}{list(v.shape)}" for v in s.outs),
        )
        for s in steps
    )
    last = next((s.where for s in reversed(steps) if s.where), None)
    context = str(steps[-1].outs[0].ctx) if steps and steps[-1].outs else ""
    return Program(operations, format_where(last), context, Tally(name for name, _, _ in operations))


class Recorder(Watcher):
    """Collects events of all threads while it watches; at most `capacity` of them, the later ones are only counted.

    Attributes:
        single: every operation runs by itself, so a program's time is that of its operation.
        dropped: events that did not fit.
    """

    def __init__(self, capacity: int):
        self.capacity = capacity
        self.single = self.memory = False
        self.lock = threading.Lock()
        self.owner = os.getpid()
        self.programs: weakref.WeakKeyDictionary[State, Program] = weakref.WeakKeyDictionary()
        self.fused: Tally[str] = Tally()
        self.totals: dict[tuple[str, str], Totals] = {}
        self.ends: dict[int, float] = {}
        self.numbers = itertools.count(1)
        self.clear()

    def clear(self) -> None:
        """Forget the events."""
        self.events: list[Event] = []
        self.size = self.dropped = 0

    def forget_totals(self) -> None:
        """Start the totals again."""
        with self.lock:
            self.totals.clear()
            self.fused.clear()

    def add(self, event: Event, weight: int = 1) -> None:
        """Keep an event that stands for `weight` entries of the trace."""
        with self.lock:
            if self.size + weight > self.capacity:
                self.dropped += weight
                return
            self.size += weight
            self.events.append(event)

    def count(self, category: str, name: str, amount: float) -> None:
        """Add milliseconds (or the value of a counter) to the totals of a name."""
        with self.lock:
            self.totals.setdefault((category, name), Totals()).add(amount)

    def span(self, name: str, category: str, began: float, ended: float, details: Any = None, weight: int = 1) -> None:
        """Keep something that took time on this thread."""
        self.count(category, name, (ended - began) * 1e3)
        self.add(Event("X", name, category, began, ended - began, threading.get_ident(), details), weight)

    # -- what the engine tells

    def compiled(self, event: Compilation) -> None:
        """Record a compilation and its reason."""
        details = {
            "reason": event.reason,
            "where": format_where(event.where),
            "operations": sum(s.call is not None for s in event.steps),
            "results": event.results,
            "donated": event.donated,
        }
        self.span("compile", "compile", event.began, event.began + event.seconds, details)

    def flushed(self, state: State, began: float, results: Sequence[Any]) -> None:
        """Wait for the program, so that its duration is known, and record it with its operations."""
        dispatched = time.perf_counter()
        # A failed execution is reported where its result is read.
        with contextlib.suppress(Exception):
            jax.block_until_ready(list(results))
        ended = time.perf_counter()
        with self.lock:
            program = self.programs.get(state)
            if program is None:
                program = self.programs[state] = program_of(state)
            if not self.single:
                self.fused.update(program.counts)
        me = threading.get_ident()
        before = self.ends.get(me)
        if before is not None and before < began:
            self.span("record", "record", before, began)
        self.ends[me] = ended
        if self.single and len(program.operations) == 1:
            name, where, yields = program.operations[0]
            self.span(name, "operator", began, ended, {"where": where, "yields": yields, "measured": True})
        else:
            timing = {"dispatched": dispatched, "program": program, "results": len(results)}
            self.span("flush", "flush", began, ended, timing, 2 + len(program.operations))
        self._note_memory(results)

    def ran(self, call: Call, began: float, results: Sequence[Any]) -> None:
        """Record an operation that ran outside programs."""
        with contextlib.suppress(Exception):
            jax.block_until_ready(list(results))
        self.span(call.op.name, "operator", began, time.perf_counter(), {"measured": True})

    def _note_memory(self, results: Sequence[Any]) -> None:
        if not self.memory or not results:
            return
        for device in results[0].devices():
            found = device.memory_stats()
            if found and "bytes_in_use" in found:
                name = f"Memory: {device}"
                self.add(Event("C", name, "memory", time.perf_counter(), None, 0, {name: found["bytes_in_use"]}))


def microseconds(moment: float) -> float:
    """Return a moment of `time.perf_counter` as microseconds since the profiler was imported."""
    return round((moment - _ZERO) * 1e6, 3)
