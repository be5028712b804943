"""Tiers: whether a program is compiled, or runs operator by operator on NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import knobs
from ..core.context import Context
from ..graph.interpreter import run
from ..graph.program import program_of_prefix
from ..graph.trie import LEAF, State, Value
from .cpu.kernels.codegen import Unsupported
from .cpu.kernels.executor import NumpyExecutor
from .devices import accepts_numpy, device_of, jax_from_numpy_nocopy
from .events import counters
from .executable import Executable
from .multi_device import DeviceGroup


class NumpyExecutable(Executable):
    """A program that runs operator by operator on NumPy arrays, with the interface of a compiled one.

    Nothing is donated to it. Its results are NumPy memory that nobody writes any more, but for types that JAX narrows.

    Raises:
        Unsupported: an operator has no kernel.
    """

    __slots__ = ("_ctx", "_executor", "_program")

    def __init__(self, steps: Sequence[State], wanted: Sequence[Value], ctx: Context):
        self._ctx = ctx
        self._program = program_of_prefix(steps, wanted)
        leaves = [(s.out.shape, s.out.dtype) for s in steps if s.kind == LEAF]
        self._executor = NumpyExecutor(self._program, leaves)
        super().__init__(steps, wanted, (), (), ctx, ())

    def _compile(self, steps: Sequence[State], last: State, *rest: Any) -> Any:
        return self._run

    def _run(self, *args: Any) -> list[Any]:
        executor, offset = self._executor, self.has_runtime + self.has_keys
        keys = args[self.has_runtime] if self.has_keys else ()
        executor.runtime, executor.key = (args[0] if self.has_runtime else ()), keys.__getitem__
        with np.errstate(all="ignore"):
            results = run(self._program, [np.asarray(x) for x in args[offset:]], executor)
        counters.numpy_runs += 1
        return [self._to_data(x) for x in results]

    def _to_data(self, value: Any) -> Any:
        """Return memory of its own, as arrays hold it."""
        x = np.asarray(value)
        if not (x.flags.c_contiguous and x.flags.owndata):
            x = np.array(x, order="C")
        x.flags.writeable = False
        return x if accepts_numpy(x, self._ctx) else jax_from_numpy_nocopy(x, self._ctx)


def make_executable(
    steps: Sequence[State],
    wanted: Sequence[Value],
    donate: Sequence[int],
    scratch: Sequence[Value],
    ctx: Context,
    leaf_shardings: Sequence[Any],
    group: DeviceGroup | None = None,
) -> Executable:
    """Return the executable of a program in the tier that `DUALMX_TIER` names; what tier 0 lacks is compiled."""
    on_one_cpu = group is None and ctx.mesh is None and not getattr(ctx, "remote", False)
    if knobs.TIER.read() == "numpy" and wanted and on_one_cpu and device_of(ctx).platform == "cpu":
        try:
            return NumpyExecutable(steps, wanted, ctx)
        except Unsupported:
            pass  # it is compiled
    return Executable(steps, wanted, donate, scratch, ctx, leaf_shardings, group)
