"""Programs that run operator by operator on NumPy arrays, with the interface of compiled ones."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.context import Context
from ..graph.explain import cache_miss_reason
from ..graph.interpreter import run
from ..graph.program import program_of_prefix
from ..graph.trie import LEAF, State, Value
from .cpu.kernels.executor import NumpyExecutor, ProgramKernels, TimingExecutor
from .cpu.kernels.matmul import one_blas_thread
from .devices import accepts_numpy, jax_from_numpy_nocopy
from .events import ProgramEvent, counters, listeners
from .executable import Executable
from .multi_device import DeviceGroup


class NumpyExecutable(Executable):
    """A program that runs operator by operator on NumPy arrays, with the interface of a compiled one.

    Nothing is donated to it. Its results are NumPy memory that nobody writes any more, but for types that JAX narrows.

    Raises:
        Unsupported: an operator has no kernel.
    """

    __slots__ = ("_ctx", "_program", "kernels")

    def __init__(self, steps: Sequence[State], wanted: Sequence[Value], ctx: Context):
        began = time.perf_counter()
        self._ctx = ctx
        self._program = program_of_prefix(steps, wanted)
        leaves = [(s.out.shape, s.out.dtype) for s in steps if s.kind == LEAF]
        self.kernels = ProgramKernels(self._program, leaves)
        super().__init__(steps, wanted, (), (), ctx, ())
        if listeners:
            reason = cache_miss_reason(steps[-1])
            event = ProgramEvent(steps, len(self.outputs), reason, began, time.perf_counter() - began)
            for w in list(listeners):
                w.prepared(event)

    def _compile(
        self,
        steps: Sequence[State],
        last: State,
        ctx: Context,
        leaf_shardings: Sequence[Any],
        group: DeviceGroup | None,
        promoted_at: int,
    ) -> Any:
        return self._run

    def describe(self) -> str:
        """Return that it runs on NumPy arrays, and until when."""
        promotion = self.promotion
        until = f", run {promotion.n_runs}; compiled from run {promotion.run} on" if promotion is not None else ""
        return f"on NumPy arrays{until}"

    def _run(self, *args: Any) -> list[Any]:
        offset = self.has_runtime + self.has_keys
        keys = args[self.has_runtime] if self.has_keys else ()
        executor_type = TimingExecutor if any(w.times_operators for w in listeners) else NumpyExecutor
        executor = executor_type(self.kernels, keys.__getitem__, args[0] if self.has_runtime else ())
        with np.errstate(all="ignore"), one_blas_thread:
            results = run(self._program, [np.asarray(x) for x in args[offset:]], executor, self.kernels.lifetimes)
        counters.numpy_runs += 1
        return [self._to_data(x) for x in results]

    def _to_data(self, value: Any) -> Any:
        """Return memory of its own, as arrays hold it."""
        x = np.asarray(value)
        if not (x.flags.c_contiguous and x.flags.owndata):
            x = np.array(x, order="C")
        x.flags.writeable = False
        return x if accepts_numpy(x, self._ctx) else jax_from_numpy_nocopy(x, self._ctx)
