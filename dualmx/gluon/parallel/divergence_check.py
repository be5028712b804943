"""Check that replicas of parameters stay equal."""

from __future__ import annotations

import hashlib
from typing import Any

from ...core.argcheck import integer
from ...core.errors import MXNetError
from ...parallel import all_gather_object
from ..parameter import Parameter
from .distributed import parameters_of


class DivergenceCheck:
    """Compares copies of parameters that should be equal: on the contexts of a process, and in all processes.

    Args:
        params: a Block, a Trainer's parameters, or what `collect_params()` returns.
        every: calls of `step` from one comparison to the next.

    Raises:
        ArgumentError: `every` below 1.

    Example:
        >>> import dualmx as mx
        >>> net = mx.gluon.nn.Dense(1, in_units=2)
        >>> net.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
        >>> sentinel = DivergenceCheck(net, every=100)
        >>> sentinel.step()  # after each trainer.step()
        >>> net.weight.data(mx.cpu(1))[:] = 7
        >>> sentinel.check()
        Traceback (most recent call last):
        dualmx.core.errors.MXNetError: DivergenceSentinel: step 1: parameter ... differs on cpu(1) from cpu(0)
    """

    def __init__(self, params: Any, every: int = 100):
        self._params: list[Parameter] = parameters_of("DivergenceCheck", params)
        self._every = integer("DivergenceCheck", "every", every, 1)
        self.steps = 0

    def step(self) -> None:
        """Count a step, and compare if it is time.

        Raises:
            MXNetError: copies differ; the text names the first such parameter, where, and the step.
        """
        self.steps += 1
        if self.steps % self._every == 0:
            self.check()

    def check(self) -> None:
        """Compare now; all processes call it at the same step.

        Raises:
            MXNetError: see `step`. All processes raise.
        """
        problem, digests = "", []
        for p in self._params:
            copies = [hashlib.sha256(a.asnumpy().tobytes()).hexdigest()[:16] for a in p.arrays()]
            digests.append(copies[0])
            odd = next((i for i, c in enumerate(copies) if c != copies[0]), 0)
            if odd and not problem:
                contexts = p.list_ctx()
                problem = f"parameter {p.name!r} differs on {contexts[odd]} from {contexts[0]}"
        found = all_gather_object((problem, self.steps, digests))
        text = self._difference(found)
        if text:
            raise MXNetError(f"DivergenceSentinel: step {found[0][1]}: {text}")

    def _difference(self, found: list[tuple[str, int, list[str]]]) -> str:
        """What is wrong, by what all processes say."""
        for i, (said, step, digests) in enumerate(found):
            if said:
                return f"{said} in process {i}" if len(found) > 1 else said
            if step != found[0][1]:
                return f"process {i} is at step {step}"
            for p, first, here in zip(self._params, found[0][2], digests, strict=True):
                if first != here:
                    return f"parameter {p.name!r} differs in process {i} from process 0"
        return ""
