"""Programs that run by executables of their operators, with the interface of those that are compiled as a whole."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ..graph.interpreter import lifetimes_of, run
from ..graph.trie import State
from .devices import jax_from_numpy_nocopy
from .events import counters, listeners
from .executable import announcement, describe_program
from .first_tier import Cost, FirstTierExecutable, Work
from .operator_cache import OperatorExecutable, compile_all
from .operator_executor import OperatorExecutor, TimingOperatorExecutor, prepare

# Microseconds. Not measured, on no device: orders of magnitude from what is known of GPUs. Compiling takes longer than
# for the CPU, since products and convolutions are tried in several ways.
_COMPILE_US = 200_000.0
_COMPILE_EACH_US = Work(statements=1_500, products=50_000, convolutions=400_000, loops=300_000)
# Unlike on NumPy arrays the statements of an operator are one kernel already, or few: what a compiled program saves is
# the launch of each operator, and writing and reading again what it fuses, at the speed of the device's memory.
_LAUNCH_US, _BYTE_US = 15.0, 0.000001


class OperatorsExecutable(FirstTierExecutable):
    """A program that runs by executables of its operators, which other programs share.

    Its values are arrays of the device, and nothing waits for them.
    """

    __slots__ = ("_tape", "_lifetimes", "_cost")
    how = "by executables of its operators"

    def _prepare(self, leaves: Sequence[tuple[tuple[int, ...], Any]], steps: Sequence[State]) -> str:
        began = time.perf_counter()
        inputs = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in leaves]
        tape = prepare(self.program, inputs, steps[-1].n_runtime, self.ctx)
        executables = [part for part in tape if isinstance(part, OperatorExecutable)]
        with announcement(describe_program(steps)):
            n_compiled = compile_all(executables)
        if n_compiled:
            counters.compile_seconds += time.perf_counter() - began
        self._tape = [part.call if isinstance(part, OperatorExecutable) else part for part in tape]
        self._lifetimes = lifetimes_of(self.program)
        self._cost = _cost_of(executables)
        return f"as {len(executables)} executables of operators, {n_compiled} of them new"

    def _interpret(self, leaves: Sequence[Any], keys: Sequence[Any], runtime: Sequence[Any]) -> list[Any]:
        executor_type = TimingOperatorExecutor if any(w.times_operators for w in listeners) else OperatorExecutor
        executor = executor_type(iter(self._tape), keys.__getitem__, runtime)
        arrays = [jax_from_numpy_nocopy(x, self.ctx) if type(x) is np.ndarray else x for x in leaves]
        counters.operator_runs += 1
        return run(self.program, arrays, executor, self._lifetimes)

    def cost(self) -> Cost:
        """Return what it would take to compile it as a whole, and what that would save."""
        return self._cost


def _cost_of(executables: Sequence[OperatorExecutable]) -> Cost:
    work = Work(*map(sum, zip(Work(0, 0, 0, 0), *[exe.work for exe in executables], strict=True)))
    compiling = _COMPILE_US + sum(n * each for n, each in zip(work, _COMPILE_EACH_US, strict=True))
    n_bytes = sum(exe.n_bytes for exe in executables)
    return Cost(compiling, _LAUNCH_US * len(executables) + _BYTE_US * n_bytes)
