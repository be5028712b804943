"""Promotion: a program that was interpreted often enough is compiled, and the compiled one takes its place.

When it does follows from counts of its work and never from clocks: the same script gives the same bits every time, on a
busy machine as on an idle one, and in every process of a job.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from ..core import knobs
from .background import Compilation, submit
from .executable import Executable
from .first_tier import FirstTierExecutable

# Half of them run before anything is compiled: what runs once or twice never is.
_MIN_RUNS, _MAX_RUNS = 6, 1_000_000


def promotion_run(executable: FirstTierExecutable) -> int:
    """Return the run from which a program is used compiled: when what it could have saved is what compiling costs.

    This rule costs at most twice as much as knowing the number of runs beforehand. See "Competitive Snoopy Caching"
    (Karlin et al., 1988).
    """
    if knobs.PROMOTE_AT.is_set():
        return knobs.PROMOTE_AT.integer(1)
    cost = executable.cost()
    return min(max(_MIN_RUNS, int(cost.compile_us / max(cost.saved_us, 1e-3))), _MAX_RUNS)


def promotion_of(executable: FirstTierExecutable) -> Promotion | None:
    """Return what counts the runs of a program, None if it is never compiled."""
    return Promotion(promotion_run(executable)) if knobs.TIER.read() == "auto" else None


class Promotion:
    """The way of one program from the interpreter to XLA.

    It is compiled in a thread from half of the way on, and waited for at its end. A program that was interpreted is
    right, so that one that cannot be compiled goes on so.

    Attributes:
        run: the first run that uses the compiled program.
        n_runs: how many there were.
    """

    __slots__ = ("run", "n_runs", "_lock", "_compilation")

    def __init__(self, run: int):
        self.run, self.n_runs = run, 0
        self._lock = threading.Lock()  # threads that record the same program count together
        self._compilation: Compilation[Executable] | None = None

    def next_run(self, compile_later: Callable[[], Compilation[Executable]]) -> Executable | None:
        """Count a run; returns the compiled program if it is to be used from now on.

        Args:
            compile_later: looks at what is recorded now, and returns the compilation of the program.
        """
        with self._lock:
            self.n_runs += 1
            if self._compilation is None and self.n_runs >= min(self.run, max(2, self.run // 2)):
                self._compilation = compile_later()
                if self.n_runs < self.run:
                    submit(self._compilation)
            if self.n_runs < self.run or self._compilation is None:
                return None
        return self._compilation.result()
