"""What was recorded once and is to be run again on other arrays, without recording it anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .array import NDArray
from .flush import flush


class ReplayableProgram:
    """The program of a pending computation, which overwrites arrays, as a function of what entered it.

    It is made when all has been recorded and nothing executed, and executes it.

    Args:
        entered: the data (JAX arrays or NumPy buffers) that the computation reads, in the order of later arguments.
        outs: arrays that it overwrites.

    Attributes:
        numbers: runtime parameters of its operators, in the order in which they were recorded; they may be changed.

    Raises:
        ValueError: it is no such program: it reads something else, draws random numbers, or is more than one program.

    Example:
        >>> import dualmx as mx
        >>> w, g = mx.nd.ones((2,)), mx.nd.ones((2,))
        >>> entered = [w.as_jax(), g.as_jax()]
        >>> w -= 0.5 * g
        >>> step = Again(entered, [w])
        >>> [r.tolist() for r in step([w.as_jax(), mx.nd.ones((2,)).as_jax() * 2])]
        [[-0.5, -0.5]]
    """

    __slots__ = ("_at", "_order", "_run", "numbers")

    def __init__(self, inputs: Sequence[Any], outs: Sequence[NDArray]):
        tr = outs[0]._tr
        if tr is None or any(h._tr is not tr or h._data is not None for h in outs):
            raise ValueError("not pending in one program")
        state, values, leaves, runtime = tr.state, [h._v for h in outs], list(tr.leaves), list(tr.runtime)
        keyed = bool(tr.keys)
        flush(tr)
        exe = next((e for e in state.programs.values() if set(values) <= set(e.wanted)), None)
        places = {id(data): i for i, data in enumerate(inputs)}
        if exe is None or exe.run is None or keyed or exe.tape or exe.constants or exe.passed or exe.scratch:
            raise ValueError("not one plain program")
        if any(id(data) not in places for data in leaves):
            raise ValueError("it reads something else")
        self._run = exe.run
        self._order = [places[id(data)] for data in leaves]
        self._at = [exe.wanted.index(v) for v in values]
        self.numbers = np.array(runtime, np.float32) if exe.has_runtime else None

    def __call__(self, entered: Sequence[Any]) -> list[Any]:
        """Run it on other data of the same shapes and types; buffers that it overwrote before are taken over."""
        args = map(entered.__getitem__, self._order)
        results = self._run(*args) if self.numbers is None else self._run(self.numbers, *args)
        return list(map(results.__getitem__, self._at))


__all__ = ["ReplayableProgram"]
