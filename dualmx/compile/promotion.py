"""Promotion: a program that was interpreted often enough is compiled, and the compiled one takes its place.

When it does follows from counts of its work, or from the round of a job, and never from clocks: the same script gives
the same bits every time, on a busy machine as on an idle one, and in every process of a job.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from ..core import knobs
from ..graph.signature import index_of
from ..graph.trie import State
from .background import Compilation, submit
from .executable import Executable
from .first_tier import Cost, FirstTierExecutable
from .job_rounds import job_rounds

# Half of them run before anything is compiled: what runs once or twice never is.
_MIN_RUNS, _MAX_RUNS = 6, 1_000_000
_VARIED_FROM = 8  # sizes; a few shapes of parameters or batches are worth compiling for
_MAX_PROGRAMS = 4096


class ProgramSizes:
    """Programs of the same operators on the same operands.

    Attributes:
        count: how many of them were made, which differ in sizes or in parameters of operators.
    """

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    @property
    def is_varied(self) -> bool:
        """Whether runs of each one, and not rounds of a job, tell when it is compiled.

        Where another process takes the place of one that died it would have met fewer.
        """
        return self.count >= _VARIED_FROM and knobs.ON_WORKER_DEATH.read() != "wait"


_known_sizes: dict[Any, ProgramSizes] = {}


def sizes_of(steps: Sequence[State]) -> ProgramSizes:
    """Return what is known of the sizes of a new program, which counts as one of them."""
    key = tuple([(s.kind, s.call and s.call.op.name, *[index_of(v) for v in s.ins]) for s in steps])
    if len(_known_sizes) >= _MAX_PROGRAMS and key not in _known_sizes:
        _known_sizes.clear()
    found = _known_sizes.setdefault(key, ProgramSizes())
    found.count += 1
    return found


def promotion_run(cost: Cost) -> int:
    """Return the run from which a program is used compiled: when what it could have saved is what compiling costs.

    This rule costs at most twice as much as knowing the number of runs beforehand. See "Competitive Snoopy Caching"
    (Karlin et al., 1988).
    """
    if knobs.PROMOTE_AT.is_set():
        return knobs.PROMOTE_AT.integer(1)
    return min(max(_MIN_RUNS, int(cost.compile_us / max(cost.saved_us, 1e-3))), _MAX_RUNS)


def promotion_of(executable: FirstTierExecutable, sizes: ProgramSizes) -> Promotion:
    """Return what counts the runs of a program of such sizes."""
    cost = executable.cost()
    return Promotion(promotion_run(cost), cost.compile_us, sizes)


class Promotion:
    """The way of one program from the interpreter to XLA.

    It is compiled in a thread in the second half of the way, as late as it will be ready in time: what a script that
    ends before does not use costs it nothing. At the end of the way the program waits for it. A program that was
    interpreted is right, so that one that cannot be compiled goes on so.

    Attributes:
        run: the first run that uses the compiled program, unless rounds of a job decide.
        n_runs: how many there were.

    Args:
        compile_us: how long it takes to compile it, in microseconds.
        sizes: those of programs of its operators.
    """

    __slots__ = ("run", "n_runs", "_compile_s", "_first_run_s", "_lock", "_compilation", "_is_used", "_sizes")

    def __init__(self, run: int, compile_us: float, sizes: ProgramSizes):
        self.run, self.n_runs, self._sizes = run, 0, sizes
        self._compile_s, self._first_run_s = compile_us * 1e-6, 0.0
        self._lock = threading.Lock()  # threads that record the same program count together
        self._compilation: Compilation[Executable] | None = None
        self._is_used = False

    @property
    def first_use(self) -> str:
        """When the compiled program is used first, in words."""
        if job_rounds.update:
            return f"update {job_rounds.update[1]} of the array"
        by_rounds = job_rounds.counts_rounds_of(self._sizes.is_varied)
        return f"round {job_rounds.change} of the job" if by_rounds else f"run {self.run}"

    @property
    def compiled(self) -> Executable | None:
        """The compiled program, None before its first use."""
        compilation = self._compilation
        return compilation.result() if compilation is not None and self._is_used else None

    def next_run(self, compile_later: Callable[[], Compilation[Executable]]) -> Executable | None:
        """Count a run; returns the compiled program if it is to be used from now on.

        Args:
            compile_later: looks at what is recorded now, and returns the compilation of the program.
        """
        with self._lock:
            self.n_runs += 1
            change, now = job_rounds.progress(self.run, self.n_runs, self._sizes.is_varied)
            if self._compilation is None and (now >= change or self._is_time_to_compile(change, now)):
                self._compilation = compile_later()
                if now < change:
                    submit(self._compilation)
            if now < change or self._compilation is None:
                return None
            self._is_used = True
        return self._compilation.result()

    def _is_time_to_compile(self, change: int, now: int) -> bool:
        """Whether the way that is left takes no longer than compiling; which run is the first compiled one stays.

        A program is taken to run once in a round. A server begins in time in any case, since all workers wait for it.
        """
        if job_rounds.update:
            return now >= change // 2
        seconds = time.perf_counter()
        if self.n_runs == 1:
            self._first_run_s = seconds
        if self.n_runs < 2 or now < change // 2:
            return False
        seconds_per_run = (seconds - self._first_run_s) / (self.n_runs - 1)
        return (change - now) * seconds_per_run <= self._compile_s
