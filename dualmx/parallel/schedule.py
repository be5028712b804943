"""Schedules of pipelines: in which order the stages work on micro-batches, and how long they wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..core.checks import integer
from ..core.errors import ArgumentError, suggest


class PipelineAction(NamedTuple):
    """What a stage does at one time.

    Attributes:
        stage, micro: numbers of the stage and of the micro-batch.
        backward: false for the forward pass.
        begin, end: times.
    """

    stage: int
    micro: int
    backward: bool
    begin: float
    end: float


class Schedule:
    """The order in which each stage of a pipeline makes the forward and backward passes of micro-batches.

    `"gpipe"`: all forward passes, then all backward passes. `"1f1b"`: as soon as a stage can, it makes a backward pass
    after each forward pass; it takes the same time, but stage s of S holds at most S - s micro-batches.

    Args:
        stages: number of stages.
        micro_batches: number of micro-batches.
        kind: `"gpipe"` or `"1f1b"`.

    Attributes:
        orders: for each stage its passes in order, as pairs (number of the micro-batch, is it a backward pass).

    Raises:
        ArgumentError: a number below 1, or an unknown kind.

    Reference: Huang et al. 2019, GPipe; Narayanan et al. 2021, Megatron-LM (1F1B).

    Example:
        >>> s = Schedule(2, 3, "1f1b")
        >>> print(s)
        0 |F0 F1 .  B0 F2 B1 .  B2
        1 |.  F0 B0 F1 B1 F2 B2 .
        >>> round(s.bubble(), 3), s.in_flight()
        (0.25, [2, 1])
    """

    def __init__(self, stages: int, micro_batches: int, kind: str = "1f1b"):
        self.stages = integer("Schedule", "stages", stages, 1)
        self.micro_batches = integer("Schedule", "micro_batches", micro_batches, 1)
        if kind not in ("gpipe", "1f1b"):
            raise ArgumentError(f"Schedule: kind={kind!r}: {suggest(kind, ('gpipe', '1f1b'))}")
        self.kind = kind
        self.orders = [self._order(s) for s in range(stages)]

    def _order(self, stage: int) -> list[tuple[int, bool]]:
        count = self.micro_batches
        ahead = count if self.kind == "gpipe" else min(self.stages - stage, count)
        found = [(m, False) for m in range(ahead)]
        for m in range(count):
            found.append((m, True))
            if ahead + m < count:
                found.append((ahead + m, False))
        return found

    def timeline(
        self, forward: float | Sequence[float] = 1.0, backward: float | Sequence[float] = 1.0
    ) -> list[PipelineAction]:
        """Return when each pass is made if every pass begins as soon as it can.

        Args:
            forward, backward: duration of a pass, or one for each stage.
        """
        times = [self._durations(forward), self._durations(backward)]
        ended: dict[tuple[int, int, bool], float] = {}
        free, at, found = [0.0] * self.stages, [0] * self.stages, []
        while len(found) < 2 * self.stages * self.micro_batches:
            for s in range(self.stages):
                while at[s] < len(self.orders[s]):
                    micro, back = self.orders[s][at[s]]
                    needs = [(s, micro, False)] * back
                    other = s + 1 if back else s - 1
                    if 0 <= other < self.stages:
                        needs.append((other, micro, back))
                    if not all(n in ended for n in needs):
                        break
                    begin = max([free[s], *(ended[n] for n in needs)])
                    free[s] = ended[s, micro, back] = begin + times[back][s]
                    found.append(PipelineAction(s, micro, back, begin, free[s]))
                    at[s] += 1
        return sorted(found, key=lambda w: (w.begin, w.stage))

    def _durations(self, given: float | Sequence[float]) -> list[float]:
        found = [float(given)] * self.stages if isinstance(given, (int, float)) else [float(t) for t in given]
        if len(found) != self.stages:
            raise ArgumentError(f"Schedule.timeline: {len(found)} durations for {self.stages} stages")
        return found

    def bubble_fraction(self, forward: float | Sequence[float] = 1.0, backward: float | Sequence[float] = 1.0) -> float:
        """Return the fraction of the time that stages wait, on average: (S - 1) / (M + S - 1) if all are alike."""
        found = self.timeline(forward, backward)
        busy, total = sum(w.end - w.begin for w in found), max(w.end for w in found)
        return 1 - busy / (self.stages * total)

    def in_flight(self) -> list[int]:
        """Return for each stage how many micro-batches it holds at most between their two passes."""
        found = []
        for order in self.orders:
            held = most = 0
            for _, back in order:
                held += -1 if back else 1
                most = max(most, held)
            found.append(most)
        return found

    def __str__(self) -> str:
        """A row per stage, a column per unit of time; dots are waiting."""
        found = self.timeline()
        width = len(str(self.micro_batches - 1)) + 2
        rows = [["."] * int(max(w.end for w in found)) for _ in range(self.stages)]
        for w in found:
            rows[w.stage][int(w.begin)] = f"{'B' if w.backward else 'F'}{w.micro}"
        return "\n".join(f"{s} |{''.join(c.ljust(width) for c in row)}".rstrip() for s, row in enumerate(rows))
