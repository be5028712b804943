"""Programs that run operator by operator on NumPy arrays, with the interface of compiled ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph.interpreter import run
from ..graph.trie import State
from .cpu.kernels.executor import NumpyExecutor, ProgramKernels, TimingExecutor
from .cpu.kernels.matmul import one_blas_thread
from .devices import accepts_numpy, jax_from_numpy_nocopy
from .events import counters, listeners
from .first_tier import Cost, FirstTierExecutable, Work

# Microseconds of CPU time, from convolutional, recurrent and dense networks on two cores; only the order of magnitude
# counts. What compiling any program takes, and more for each of what it does.
_COMPILE_US, _COMPILE_EACH_US = (
    50_000.0,
    Work(statements=1_500, products=10_000, convolutions=80_000, loops=300_000, layers=4_000),
)
# A compiled program saves some for each statement, and each byte that these write; products and convolutions save none.
_STATEMENT_US, _BYTE_US = 10.0, 0.000012


class NumpyExecutable(FirstTierExecutable):
    """A program that runs operator by operator on NumPy arrays.

    Its results are NumPy memory that nobody writes any more, but for types that JAX narrows.
    """

    __slots__ = ("kernels",)
    how = "on NumPy arrays"

    def _prepare(self, leaves: Sequence[tuple[tuple[int, ...], Any]], steps: Sequence[State]) -> str:
        self.kernels = ProgramKernels(self.program, leaves)
        return "without compiling"

    def _interpret(self, leaves: Sequence[Any], keys: Sequence[Any], runtime: Sequence[Any]) -> list[Any]:
        executor_type = TimingExecutor if any(w.times_operators for w in listeners) else NumpyExecutor
        executor = executor_type(self.kernels, keys.__getitem__, runtime)
        with np.errstate(all="ignore"), one_blas_thread:
            results = run(self.program, [np.asarray(x) for x in leaves], executor, self.kernels.lifetimes)
        counters.numpy_runs += 1
        return [self._to_data(x) for x in results]

    def _to_data(self, value: Any) -> Any:
        """Return memory of its own, as arrays hold it."""
        x = np.asarray(value)
        if not (x.flags.c_contiguous and x.flags.owndata):
            x = np.array(x, order="C")
        x.flags.writeable = False
        return x if accepts_numpy(x, self.ctx) else jax_from_numpy_nocopy(x, self.ctx)

    def cost(self) -> Cost:
        """Return what it would take to compile it, and what that would save."""
        work, n_bytes = self.kernels.work()
        compiling = _COMPILE_US + sum(n * each for n, each in zip(work, _COMPILE_EACH_US, strict=True))
        return Cost(compiling, _STATEMENT_US * work.statements + _BYTE_US * n_bytes)
