"""Recording an executor's forward pass, apart from the gradients that users record on the same arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..core.context import Context
from ..ndarray import NDArray
from ..ndarray.handle import ArrayMeta, assign, invalidate_views, is_tracked, ref, to_jax_array
from ..ndarray.trace import engine, local
from ..op.registry import Call
from ..sparse import BaseSparseNDArray
from .stepwise import EagerGraph, execute

# How gradients that are stored by rows are requested.
ROW_SPARSE_REQS = {"write": "rows", "add": "rows_add"}


@contextmanager
def _mode(recording: bool, training: bool) -> Iterator[None]:
    before = (local.recording, local.training)
    local.record_depth += recording
    local.recording, local.training = recording, training
    local.trace.set_recording(recording)
    try:
        yield
    finally:
        local.record_depth -= recording
        local.recording, local.training = before
        local.trace.set_recording(before[0])


@contextmanager
def recorded_training(training: bool = True) -> Iterator[None]:
    """Record in training mode; what is pending runs first, so that every step begins with the same empty program."""
    if not local.record_depth:
        for trace in list(local.traces.values()):
            engine.flush(trace)
    with _mode(True, training):
        yield


@contextmanager
def without_recording() -> Iterator[None]:
    """Run in inference mode, recording nothing."""
    with _mode(False, False):
        yield


class RecordedForward:
    """One forward pass in training mode, and the variables through which its gradients reach the bound arrays.

    The bound arrays are not made variables themselves: users may record their own gradients on them. Each pass reads
    their present values under variables of its own.
    """

    def __init__(
        self,
        call: Call | EagerGraph,
        ctx: Context,
        args: Sequence[NDArray],
        grads: Sequence[NDArray | None],
        reqs: Sequence[str],
    ):
        self.call, self.ctx, self.args = call, ctx, list(args)
        self.grad_targets = [
            (grad, req) if grad is not None and req != "null" else None for grad, req in zip(grads, reqs, strict=True)
        ]
        self.has_variables = any(t is not None for t in self.grad_targets)
        self._states: list[NDArray] = []
        self._alive: list[NDArray] = []
        self._heads: list[NDArray] | None = None

    def run(self, states: Sequence[NDArray]) -> list[NDArray]:
        """Record the forward pass, update `states`, and return the outputs; call inside `recorded_training`."""
        self._states = list(states)
        for state in states:
            if is_tracked(state):  # by an earlier pass whose backward never came: this one's is not to lead back to it
                to_jax_array(state)
                invalidate_views(state)
        inputs = [self._input(arg, target) for arg, target in zip(self.args, self.grad_targets, strict=True)]
        here = [s.as_in_context(self.ctx) for s in states]
        outputs = execute(self.call, [*inputs, *here], self.ctx)
        for state, used in zip(states, here, strict=True):
            if used is not state:
                used.copyto(state)
        for at in self.call.aux_positions(len(inputs) + len(here)):
            if at < len(inputs) and inputs[at] is not self.args[at]:
                assign(self.args[at], inputs[at].detach(), "forward")
        self._heads = outputs
        self._alive = inputs if self._needs_eager() else []
        return outputs

    def _needs_eager(self) -> bool:
        return isinstance(self.call, EagerGraph) or engine.naive

    def _input(self, arg: NDArray, target: tuple[NDArray, str] | None) -> NDArray:
        value = arg.as_in_context(self.ctx)
        if target is None:
            return value.detach() if is_tracked(value) else value
        if isinstance(value, BaseSparseNDArray):
            return type(value).of_dense(self._input(value.to_dense(), target))
        trace = local.trace if local.trace.ctx is self.ctx else local.use_trace(self.ctx)
        variable: Any = object.__new__(type(value))
        variable._value, variable._trace, variable._data, variable._meta = (
            trace.leaf_of(value),
            trace,
            None,
            ArrayMeta(),
        )
        grad, req = target
        variable._meta.grad, variable._meta.grad_req = grad, ROW_SPARSE_REQS[req] if grad.is_sparse else req
        if self._needs_eager():  # programs end in between, and gradients come back to this value
            trace.handles.append(ref(variable))
        # Otherwise not among the trace's handles: the value is not asked for again, so its buffer may be donated.
        trace.mark_variable(variable)
        return variable

    def heads(self) -> list[NDArray]:
        """Return the recorded outputs for one backward; later calls record the forward pass again, leaving states."""
        heads, self._heads = self._heads, None
        if heads is None:
            with without_recording():
                states = [s.copy() for s in self._states]
            with recorded_training():
                self.run(states)
            heads, self._heads = self._heads, None
        assert heads is not None
        return heads
