"""Promotion: a program that was interpreted often enough is compiled, and the compiled one takes its place.

When it does follows from counts of its work and never from clocks: the same script gives the same bits every time, on a
busy machine as on an idle one, and in every process of a job.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ..core import knobs
from .background import Compilation, submit
from .executable import Executable
from .first_tier import Cost, FirstTierExecutable

# Half of them run before anything is compiled: what runs once or twice never is.
_MIN_RUNS, _MAX_RUNS = 6, 1_000_000


def promotion_run(cost: Cost) -> int:
    """Return the run from which a program is used compiled: when what it could have saved is what compiling costs.

    This rule costs at most twice as much as knowing the number of runs beforehand. See "Competitive Snoopy Caching"
    (Karlin et al., 1988).
    """
    if knobs.PROMOTE_AT.is_set():
        return knobs.PROMOTE_AT.integer(1)
    return min(max(_MIN_RUNS, int(cost.compile_us / max(cost.saved_us, 1e-3))), _MAX_RUNS)


def promotion_of(executable: FirstTierExecutable) -> Promotion | None:
    """Return what counts the runs of a program, None if it is never compiled."""
    if knobs.TIER.read() != "auto":
        return None
    cost = executable.cost()
    return Promotion(promotion_run(cost), cost.compile_us)


class Promotion:
    """The way of one program from the interpreter to XLA.

    It is compiled in a thread in the second half of the way, as late as it will be ready in time: what a script that
    ends before does not use costs it nothing. At the end of the way the program waits for it. A program that was
    interpreted is right, so that one that cannot be compiled goes on so.

    Attributes:
        run: the first run that uses the compiled program.
        n_runs: how many there were.

    Args:
        compile_us: how long it takes to compile it, in microseconds.
    """

    __slots__ = ("run", "n_runs", "_compile_s", "_first_run_s", "_lock", "_compilation")

    def __init__(self, run: int, compile_us: float):
        self.run, self.n_runs = run, 0
        self._compile_s, self._first_run_s = compile_us * 1e-6, 0.0
        self._lock = threading.Lock()  # threads that record the same program count together
        self._compilation: Compilation[Executable] | None = None

    def next_run(self, compile_later: Callable[[], Compilation[Executable]]) -> Executable | None:
        """Count a run; returns the compiled program if it is to be used from now on.

        Args:
            compile_later: looks at what is recorded now, and returns the compilation of the program.
        """
        with self._lock:
            self.n_runs += 1
            if self._compilation is None and (self.n_runs >= self.run or self._is_time_to_compile()):
                self._compilation = compile_later()
                if self.n_runs < self.run:
                    submit(self._compilation)
            if self.n_runs < self.run or self._compilation is None:
                return None
        return self._compilation.result()

    def _is_time_to_compile(self) -> bool:
        """Whether the runs that are left take no longer than compiling; which run is the first compiled one stays."""
        now = time.perf_counter()
        if self.n_runs == 1:
            self._first_run_s = now
        if self.n_runs < max(2, self.run // 2):
            return False
        seconds_per_run = (now - self._first_run_s) / (self.n_runs - 1)
        return (self.run - self.n_runs) * seconds_per_run <= self._compile_s
