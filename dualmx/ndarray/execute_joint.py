"""Record the same steps on several contexts and execute them as one program that exchanges values."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import cache

from ..compile.multi_device import group_of, group_over_processes
from ..core.context import Context
from ..core.errors import MXNetError
from ..graph.signature import context_free_signature, index_of, program_text
from ..op.lowering_context import psum
from ..op.registry import Call, Op
from ..op.schema import UNTYPED, Input
from .execute import ProcessRunner, flush, flush_spmd
from .handle import invoke
from .recorder import Handle, engine, local


@cache
def _sum_call(count: int) -> Call:
    inputs = (Input("data", UNTYPED, variadic=True),)
    op = Op(
        "_joint_sum", lambda *data: tuple(psum(data)), inputs, {}, outputs=count, is_collective=lambda p, train: True
    )
    return Call(op, {}, False)


def _describe_pending(contexts: Sequence[Context]) -> str:
    """Tell what is recorded on contexts and asked for, in words that other processes would use as well."""
    texts = []
    for c in contexts:
        tr = local.use_trace(c)
        live = {index_of(h._value) for r in tr.handles if (h := r()) is not None and h._trace is tr and h._data is None}
        texts.append(f"{program_text(tr.state)} {sorted(live)}")
    return "|".join(texts)


def can_run_as_spmd(
    contexts: Sequence[Context], inputs: int, processes: ProcessRunner | None = None, possible: bool = True
) -> bool:
    """Make ready for one program on several contexts; true if that is possible.

    It needs a device for each context, and lazy execution. What this thread has recorded becomes part of the program if
    it is the same everywhere; otherwise each context first executes its own.

    Args:
        contexts: at least one.
        inputs: number of arrays that the first exchange reads; there must be room for them in the program.
        everywhere: other processes, which must all be ready as well, and have recorded the same.
        possible: whether nothing else here stands against it.
    """
    grouped = group_of if processes is None else group_over_processes
    if not possible or engine.naive or local.record_depth or local.recording or grouped(tuple(contexts)) is None:
        return processes is not None and processes.same_on_all("no") and False
    states = [local.use_trace(c).state for c in contexts]
    first = states[0]
    if (
        any(context_free_signature(s) is not context_free_signature(first) for s in states[1:])
        or first.n_operations + inputs >= engine.flush_after
        or first.unrecorded_ops >= engine.max_unrecorded_ops
    ):
        for c in contexts:
            flush(local.use_trace(c))
    return processes is None or processes.same_on_all(_describe_pending(contexts))


@contextlib.contextmanager
def spmd_region(contexts: Sequence[Context], everywhere: ProcessRunner | None = None) -> Iterator[None]:
    """Execute what these contexts record in this scope as one program at its end; only if they are `can_run_as_spmd`.

    Within the scope each context must record the same steps, reading no values.
    """
    traces = [local.use_trace(c) for c in contexts]
    with contextlib.ExitStack() as held:
        for tr in traces:
            held.enter_context(tr.lock)
        try:
            yield
        except BaseException:
            # The contexts differ now: what depends on the exchange is lost.
            with contextlib.suppress(MXNetError):
                flush_spmd(traces, everywhere)
            raise
        flush_spmd(traces, everywhere)


def all_reduce(groups: Sequence[Sequence[Handle]]) -> list[list[Handle]]:
    """Record the sums of groups of arrays, one of each group per context, on all contexts; inside `spmd_region`."""
    sums = [invoke(_sum_call(len(groups)), list(arrays)) for arrays in zip(*groups, strict=True)]
    return [list(group) for group in zip(*sums, strict=True)]
