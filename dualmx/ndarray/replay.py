"""A recorded program, compiled once and replayed on other buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .execute import flush
from .ndarray import NDArray


class ReplayableProgram:
    """The program of a pending computation, which overwrites arrays, as a function of what entered it.

    It is made when all has been recorded and nothing executed, and executes it.

    Args:
        entered: the data (JAX arrays or NumPy buffers) that the computation reads, in the order of later arguments.
        outs: arrays that it overwrites.

    Attributes:
        runtime_scalars: runtime parameters of its operators, in the order in which they were recorded; they may be
        changed.

    Raises:
        ValueError: it is no such program: it reads something else, draws random numbers, or is more than one program.

    Example:
        >>> import dualmx as mx
        >>> w, g = mx.nd.ones((2,)), mx.nd.ones((2,))
        >>> entered = [w.as_jax(), g.as_jax()]
        >>> w -= 0.5 * g
        >>> step = ReplayableProgram(entered, [w])
        >>> [r.tolist() for r in step([w.as_jax(), mx.nd.ones((2,)).as_jax() * 2])]
        [[-0.5, -0.5]]
    """

    __slots__ = ("_output_index", "_input_order", "_run", "runtime_scalars")

    def __init__(self, inputs: Sequence[Any], outs: Sequence[NDArray]):
        tr = outs[0]._trace
        if tr is None or any(h._trace is not tr or h._data is not None for h in outs):
            raise ValueError("not pending in one program")
        state, values, leaves, runtime = tr.state, [h._value for h in outs], list(tr.leaves), list(tr.runtime)
        keyed = bool(tr.keys)
        flush(tr)
        exe = next((e for e in list(state.programs.values()) if set(values) <= set(e.outputs)), None)
        if exe is not None and exe.promotion is not None:
            exe = exe.promotion.compiled or exe
        places = {id(data): i for i, data in enumerate(inputs)}
        if (
            exe is None
            or exe.call is None
            or keyed
            or exe.saved_steps
            or exe.constant_outputs
            or exe.passthrough_leaves
            or exe.donated_types
        ):
            raise ValueError("not one plain program")
        if any(id(data) not in places for data in leaves):
            raise ValueError("it reads something else")
        self._run = exe.call
        self._input_order = [places[id(data)] for data in leaves]
        self._output_index = [exe.outputs.index(v) for v in values]
        self.runtime_scalars = np.array(runtime, np.float32) if exe.has_runtime else None

    def __call__(self, entered: Sequence[Any]) -> list[Any]:
        """Run it on other data of the same shapes and types; buffers that it overwrote before are taken over."""
        args = map(entered.__getitem__, self._input_order)
        results = self._run(*args) if self.runtime_scalars is None else self._run(self.runtime_scalars, *args)
        return list(map(results.__getitem__, self._output_index))


__all__ = ["ReplayableProgram"]
