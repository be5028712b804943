"""Heartbeat payload of workers, and the status that the scheduler derives from it for `dualmx status`."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from ..core.errors import FormatError
from ..core.job_status import MAX_NAME_LENGTH, latest_metrics
from .protocol import MAX_AWAITED, SCHEDULER_PINGS, Heartbeat, WaitStatus, header, parse
from .van.frame import Message

PERIOD = 5.0  # seconds over which speeds are measured
COUNTS = ("rounds", "sent", "received")


class ExchangeCounters:
    """Exchanges of this process with other workers, counted.

    Attributes:
        rounds: exchanges that were begun.
        sent, received: bytes of their arrays.
    """

    def __init__(self) -> None:
        self.rounds = self.sent = self.received = 0
        self._waits: dict[int, tuple[float, str, Sequence[int]]] = {}  # by thread

    def begin_wait(self, workers: Sequence[int], what: str, since: float) -> None:
        """This thread waits for workers, by their numbers in the job."""
        self._waits[threading.get_ident()] = since, what, workers

    def end_wait(self) -> None:
        """This thread does not wait any more."""
        self._waits.pop(threading.get_ident(), None)

    def heartbeat_payload(self) -> dict[str, Any]:
        """Return the heartbeat payload: counts, the longest current wait, reported metrics."""
        now = time.monotonic()
        wait = None
        if (longest := min(list(self._waits.values()), default=None)) is not None:
            wait = header(WaitStatus(now - longest[0], longest[1][:MAX_NAME_LENGTH], list(longest[2])[:MAX_AWAITED]))
        return header(Heartbeat(now, self.rounds, self.sent, self.received, wait, latest_metrics() or None))


class WorkerStatus:
    """A worker's status as its scheduler knows it."""

    def __init__(self) -> None:
        self._last_seen = 0.0
        self._samples: deque[tuple[float, ...]] = deque()  # time at the worker, counts
        self._last: dict[str, Any] = {}

    def update(self, message: Message) -> None:
        """Take a sign of life.

        Raises:
            FormatError: it is not as expected.
        """
        heartbeat: Heartbeat = SCHEDULER_PINGS.read(message)
        sample, figures, wait = (
            (heartbeat.at, heartbeat.rounds, heartbeat.sent, heartbeat.received),
            heartbeat.figures or {},
            None,
        )
        if not all(map(_is_number, figures.values())):
            raise FormatError("a sign of life: figures: expected numbers")
        if heartbeat.wait is not None:
            seconds, where, ranks = parse(WaitStatus, heartbeat.wait)
            wait = {"seconds": round(seconds, 3), "in": _printable(where), "for": ranks}
        self._last_seen = time.monotonic()
        if self._samples and sample < self._samples[-1]:
            self._samples.clear()  # of another process in this one's place
        self._samples.append(sample)
        while len(self._samples) > 2 and sample[0] - self._samples[1][0] >= PERIOD:
            self._samples.popleft()
        # JSON has no numbers for what is not finite.
        shown = {_printable(name): v if math.isfinite(v) else None for name, v in figures.items()}
        self._last = {"wait": wait, "figures": shown}

    def as_dict(self, now: float) -> dict[str, Any]:
        """Return counts, rates, the current wait, metrics and their age in seconds; {} without a heartbeat."""
        if not self._samples:
            return {}
        first, last = self._samples[0], self._samples[-1]
        seconds = last[0] - first[0]
        speeds = [(b - a) / seconds if seconds > 0 else 0.0 for a, b in zip(first[1:], last[1:], strict=True)]
        status = {"age": round(now - self._last_seen, 1)}
        for name, count, speed in zip(COUNTS, last[1:], speeds, strict=True):
            status |= {name: count, f"{name}_per_s": round(speed, 3)}
        return {**status, **self._last}


def _printable(text: str) -> str:
    """A name that can be written to a terminal."""
    return "".join(c if c.isprintable() else " " for c in text[:MAX_NAME_LENGTH])


def _is_number(value: object) -> bool:
    return isinstance(value, float) or (type(value) is int and abs(value) < 1 << 63)


__all__ = ["COUNTS", "PERIOD", "ExchangeCounters", "WorkerStatus"]
