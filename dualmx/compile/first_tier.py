"""Programs that the interpreter runs operator by operator, with the interface of compiled ones."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..core.context import Context
from ..graph.explain import cache_miss_reason
from ..graph.program import program_of_prefix
from ..graph.trie import LEAF, State, Value
from .events import ProgramEvent, listeners
from .executable import Executable
from .multi_device import DeviceGroup


class Unsupported(Exception):
    """An operator, or a primitive of one, that does not run in this way; its program is compiled."""


class Work(NamedTuple):
    """What functions do, as counts.

    Attributes:
        statements: those that compute or move elements one by one.
        products, convolutions, loops: matrix products, convolutions, and loops, whose bodies count once.
        layers: batch normalizations, which are several statements when compiled.
    """

    statements: int
    products: int
    convolutions: int
    loops: int
    layers: int = 0


class Cost(NamedTuple):
    """Microseconds, from counts, that compiling a program takes and that each of its runs would be shorter by."""

    compile_us: float
    saved_us: float


class FirstTierExecutable(Executable):
    """A program that the interpreter runs operator by operator, with the interface of a compiled one.

    Nothing is donated to it.

    Raises:
        Unsupported: an operator cannot be run so.
    """

    __slots__ = ("ctx", "program")
    how = ""  # it runs

    def __init__(self, steps: Sequence[State], wanted: Sequence[Value], ctx: Context):
        began = time.perf_counter()
        self.ctx, self.program = ctx, program_of_prefix(steps, wanted)
        built = self._prepare([(s.out.shape, s.out.dtype) for s in steps if s.kind == LEAF], steps)
        super().__init__(steps, wanted, (), (), ctx, ())
        if listeners:
            reason = cache_miss_reason(steps[-1])
            seconds = time.perf_counter() - began
            event = ProgramEvent(steps, len(self.outputs), reason, began, seconds, built=built)
            for w in list(listeners):
                w.prepared(event)

    def _prepare(self, leaves: Sequence[tuple[tuple[int, ...], Any]], steps: Sequence[State]) -> str:
        """Make what a run needs, for leaves of these shapes and dtypes; returns what was made."""
        raise NotImplementedError

    def _interpret(self, leaves: Sequence[Any], keys: Sequence[Any], runtime: Sequence[Any]) -> list[Any]:
        """Run it."""
        raise NotImplementedError

    def cost(self) -> Cost:
        """Return what it would take to compile it, and what that would save."""
        raise NotImplementedError

    def _compile(
        self,
        steps: Sequence[State],
        last: State,
        ctx: Context,
        leaf_shardings: Sequence[Any],
        group: DeviceGroup | None,
        promoted_at: str,
    ) -> Any:
        return self._run

    def _run(self, *args: Any) -> list[Any]:
        keys = args[self.has_runtime] if self.has_keys else ()
        return self._interpret(args[self.has_runtime + self.has_keys :], keys, args[0] if self.has_runtime else ())

    def describe(self) -> str:
        """Return how it runs, and until when."""
        promotion = self.promotion
        until = f", run {promotion.n_runs}; compiled from {promotion.first_use} on" if promotion is not None else ""
        return f"{self.how}{until}"
