"""Rounds of a job: the processes change to compiled programs together, at a round of their synchronous store.

Runs of programs are no measure there: one worker evaluates between two rounds and another one does not, so that the
weights that each of them updates by itself would differ in their last bits. Rounds are the same for all of them. A
server changes with each array by itself, at its update of that number: which arrays arrive together depends on chance.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..core import knobs

# About what tier 0 may cost until compiling would have paid for networks of a few layers; the same for all of a job.
_CHANGE_ROUND = 50


def must_compile() -> bool:
    """Return whether each program of this process is compiled before its first run, where nothing is set.

    A worker whose place another one may take would be followed by one that prepares its data in the second of the two
    ways, and weights must not depend on deaths. What servers compute besides updates has no rounds. Nor must sums
    depend on how many processes there are, of which one alone counts runs.
    """
    is_deterministic = knobs.DETERMINISM.read() == "1"
    if job_rounds.update:
        return not knobs.TIER.is_set() and is_deterministic
    if knobs.ROLE.read() != "worker":
        return True
    waits = knobs.ON_WORKER_DEATH.read() == "wait" or is_deterministic
    return not knobs.TIER.is_set() and (waits or job_rounds.is_joined)


class JobRounds:
    """Where this process is in its job.

    Attributes:
        number: rounds that this worker has pushed to synchronous stores, or that a snapshot tells of.
        thread: the one that pushes; others are at no round, since they do not wait for it.
        next_change: a round below which no push changes anything but the two of these.
        is_joined: the processes exchange arrays by collectives, of which no round is known.

    Example:
        >>> rounds = JobRounds()
        >>> rounds.progress(run=9, n_runs=3)
        (9, 3)
        >>> rounds.advance(1, flush=lambda: None)
        >>> rounds.progress(run=9, n_runs=3)
        (50, 2)
    """

    def __init__(self) -> None:
        self.number = 0
        self.is_joined = False
        self.thread = 0
        self.next_change: float = 0
        self._update = threading.local()

    @property
    def change(self) -> int:
        """The round from which all programs of a job are compiled."""
        return knobs.PROMOTE_AT.integer(1) if knobs.PROMOTE_AT.is_set() else _CHANGE_ROUND

    @property
    def is_counting(self) -> bool:
        """Whether this thread's programs change by rounds, and no longer by their runs."""
        return bool(self.update) or self.number > 0 and self.thread == threading.get_ident()

    @property
    def is_changed(self) -> bool:
        """Whether this thread's programs are compiled before their first runs by now."""
        return self.is_counting and not self.update and self.number + 1 >= self.change

    @property
    def update(self) -> tuple[int, int] | None:
        """The number of the update that this thread computes, and from which on it is compiled; None if it is none."""
        return getattr(self._update, "progress", None)

    @contextmanager
    def of_update(self, number: int, change: int) -> Iterator[None]:
        """Inside the `with` block this thread computes updates, each of which has this number among those of its array.

        Below `change` what is run there is not compiled, whatever was compiled already for others.
        """
        self._update.progress = number, change
        try:
            yield
        finally:
            self._update.progress = None

    def advance(self, number: int, flush: Callable[[], None]) -> None:
        """Count rounds that were pushed.

        Args:
            number: of them.
            flush: runs what is recorded; called before the change, so that nothing is left for after it.
        """
        if number > self.number:
            if self.number + 1 < self.change <= number + 1:
                flush()
            self.number, self.thread = number, threading.get_ident()
            self.next_change = self.change if number + 1 < self.change else math.inf

    def counts_rounds_of(self, is_varied: bool) -> bool:
        """Whether rounds tell when a program of this thread is compiled, or of a thread that computes an update.

        Of one that has ever other sizes its runs do.
        """
        return bool(self.update) or (self.is_counting and not is_varied)

    def progress(self, run: int, n_runs: int, is_varied: bool = False) -> tuple[int, int]:
        """Return from where on a program is used compiled, and where it is: by rounds if there are any, or by runs."""
        if self.update:
            number, change = self.update
            return change, number
        if self.is_joined and knobs.ROOT_URI.is_set() and must_compile():
            return 0, n_runs
        return (self.change, self.number + 1) if self.counts_rounds_of(is_varied) else (run, n_runs)


job_rounds = JobRounds()

__all__ = ["JobRounds", "job_rounds", "must_compile"]
