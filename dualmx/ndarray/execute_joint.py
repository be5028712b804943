"""Programs of several contexts that exchange values: recorded once per context, executed together as one program."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Protocol

import numpy as np

from ..compile.devices import copy_buffer, device_put, jax_from_numpy_nocopy
from ..compile.events import counters, listeners
from ..compile.executable import Executable
from ..compile.multi_device import DeviceGroup, group_of, group_over_processes
from ..core.context import Context
from ..core.errors import MXNetError
from ..core.process import fork_guard
from ..graph.trie import BACKWARD, LEAF, REENTER, State, Value, aval, steps_of
from ..op.lowering_context import psum
from ..op.registry import Call, Op
from ..op.schema import UNTYPED, Input
from . import execute as single
from .exposed import protected
from .handle import Handle, invoke, publish
from .recorder import Trace, engine, execution_error, local
from .tape import live_tape, save_tape

ValueIndex = tuple[int, int]


class ProcessRunner(Protocol):
    """Other processes that XLA has joined, which run the same programs."""

    def same_on_all(self, text: str) -> bool:
        """Whether all processes say the same; called by all of them."""
        ...

    def run(self, work: Any) -> Any:
        """Run a program of all processes, and wait for its results."""
        ...


_signatures: dict[Any, object] = {}
_BOUND = 200_000


def index_of(v: Value) -> ValueIndex:
    """Return where a value of a prefix comes from: the depth of its step and its number there."""
    assert v.state is not None
    return v.state.depth, v.index


def context_free_signature(state: State) -> object:
    """Return an object that is the same for prefixes that differ in their context only."""
    fresh = []
    st: State | None = state
    while st is not None and context_free_signature not in st.memo:
        fresh.append(st)
        st = st.parent
    for step in reversed(fresh):
        if len(_signatures) > _BOUND:
            _signatures.clear()
        step.memo[context_free_signature] = _signatures.setdefault(_step_key(step), object())
    return state.memo[context_free_signature]


def _step_key(st: State) -> Any:
    if st.parent is None:
        return ()
    before, ins = st.parent.memo[context_free_signature], tuple(index_of(v) for v in st.ins)
    if st.kind == LEAF:
        return before, st.out.shape, st.out.dtype, st.out.tracked, st.payload
    if st.kind == BACKWARD:
        p = st.payload
        seeds, adds = (
            tuple(None if v is None else index_of(v) for v in group) for group in (p.head_grads, p.accumulate_into)
        )
        targets = tuple(tuple(index_of(v) for v in group) for group in p.targets)
        return before, st.kind, tuple(index_of(v) for v in p.heads), seeds, targets, adds, p.retain_graph
    outs = tuple(index_of(v) for v in st.outs) if st.kind == REENTER else ()
    payload = st.payload if isinstance(st.payload, tuple) else None
    return before, st.kind, st.call, ins, outs, payload, st.recording


def value_at_index(steps: Sequence[State], where: ValueIndex) -> Value:
    """Return the value at a place of a chain of steps."""
    return steps[where[0] - 1].outs[where[1]]


@cache
def _sum_call(count: int) -> Call:
    inputs = (Input("data", UNTYPED, variadic=True),)
    op = Op(
        "_joint_sum", lambda *data: tuple(psum(data)), inputs, {}, outputs=count, is_collective=lambda p, train: True
    )
    return Call(op, {}, False)


def _describe_pending(contexts: Sequence[Context]) -> str:
    """Tell what is recorded on contexts and asked for, in words that other processes would use as well."""
    told = []
    for c in contexts:
        tr = local.use_trace(c)
        steps = tr.state.memo.get(_describe_step)
        if steps is None:
            steps = tr.state.memo[_describe_step] = ";".join(map(_describe_step, steps_of(tr.state)))
        live = {index_of(h._value) for r in tr.handles if (h := r()) is not None and h._trace is tr and h._data is None}
        told.append(f"{steps} {sorted(live)}")
    return "|".join(told)


def _describe_step(st: State) -> str:
    if st.kind == LEAF:
        return f"leaf {st.out.shape} {st.out.dtype} {st.out.tracked}"
    if st.kind == BACKWARD:
        p = st.payload
        groups = (p.heads, p.head_grads, p.accumulate_into, *p.targets)
        places = [[None if v is None else index_of(v) for v in group] for group in groups]
        return f"backward {places} {p.retain_graph}"
    return f"{st.kind} {st.call!r} {st.call and st.call.train} {[index_of(v) for v in st.ins]} {st.recording}"


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
        or first.depth + inputs >= engine.flush_after
        or first.unrecorded_ops >= engine.max_unrecorded_ops
    ):
        for c in contexts:
            engine.flush(local.use_trace(c))
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


def traces_with_same_program(tr: Trace) -> list[Trace]:
    """Return the traces of this thread that recorded the same program as `tr`, in the order of their contexts."""
    live = [t for t in local.traces.values() if not t.executed]
    for t in live:
        # Switching recording off marks the trace of the current context only.
        t.set_recording(local.recording)
    found = [t for t in live if context_free_signature(t.state) is context_free_signature(tr.state)]
    if tr not in found:
        found.append(tr)
    return sorted(found, key=lambda t: t.ctx.device_id)


def flush_spmd_trace(tr: Trace) -> None:
    """Execute a trace that exchanges values, together with its peers."""
    together = traces_with_same_program(tr)
    flush_spmd(together)


def flush_spmd(traces: Sequence[Trace], everywhere: ProcessRunner | None = None) -> None:
    """Execute traces that recorded the same program as one program on all their devices, and those of other processes.

    Raises:
        MXNetError: they recorded different programs, two of them share a device, or the program failed; the arrays
            that depended on it raise the same error when read.
    """
    with contextlib.ExitStack() as held:
        for tr in traces:
            held.enter_context(tr.lock)
        lives = []
        for tr in traces:
            tr.executed = True
            if local.trace is tr:
                local.new_trace(tr.ctx)
            elif local.traces.get(tr.ctx) is tr:
                del local.traces[tr.ctx]
            lives.append([h for r in tr.handles if (h := r()) is not None and h._trace is tr and h._data is None])
        if any(lives):
            _execute(traces, lives, everywhere)


def _execute(traces: Sequence[Trace], lives: list[list[Handle]], everywhere: ProcessRunner | None) -> None:
    states = [tr.state for tr in traces]
    began = time.perf_counter() if listeners else 0.0
    try:
        contexts = tuple(tr.ctx for tr in traces)
        group = group_over_processes(contexts) if everywhere else group_of(contexts) if len(traces) > 1 else None
        if group is None or any(context_free_signature(s) is not context_free_signature(states[0]) for s in states):
            listed = ", ".join(str(tr.ctx) for tr in traces)
            raise MXNetError(
                f"what was recorded on {listed} exchanges values between devices, and must be the same program on "
                "each of several devices, for parts of the same shape"
            )
        wanted = tuple(sorted({index_of(h._value) for live in lives for h in live}))
        key = ("joint", group, wanted)
        exe = states[0].programs.get(key)
        if exe is None:
            exe = states[0].programs[key] = _compile(traces, group, wanted)
        started = time.perf_counter() if listeners else 0.0
        results = _run_spmd(exe, traces, group, everywhere)
    except BaseException as e:
        error = e if isinstance(e, MXNetError) else execution_error(single.last_user_line(states[0]), e)
        for h in (h for live in lives for h in live):
            h._trace = h._data = None
            h._extra().error = error
        if not isinstance(e, Exception):
            raise
        raise error from e
    counters.flushes += 1
    for w in list(listeners):
        w.executed(states[0], began, started, results[0])
    for tr, live, own in zip(traces, lives, results, strict=True):
        values = tuple([h._value for h in live])
        for h, v in zip(live, values, strict=True):
            h._data = own[exe.output_index[index_of(v)]]
            h._trace, h._value = None, v.aval
        if exe.saved_steps:
            _keep_tape(exe, tr, live, values, own)
        publish(tr)
        tr.release()
        if tr.value_checks:
            single.value_checks.run_value_checks(tr, live, values)


class _TapeSteps:
    """The steps of one member's tape."""

    def __init__(self, tape: Any):
        self.saved_steps = tape


def _keep_tape(exe: Executable, tr: Trace, live: list[Handle], values: tuple[Value, ...], own: list[Any]) -> None:
    steps = steps_of(tr.state)
    entries, _ = live_tape(steps, values)
    known = {value_at_index(steps, at): own[k] for at, k in exe.output_index.items()}
    save_tape(_TapeSteps(entries), tr, known, live, values)


def _compile(traces: Sequence[Trace], group: DeviceGroup, places: tuple[ValueIndex, ...]) -> Executable:
    fork_guard.require_compute()
    first = traces[0]
    steps = steps_of(first.state)
    wanted = [value_at_index(steps, at) for at in places]
    entries, kept = live_tape(steps, wanted)
    unique = list(dict.fromkeys((*wanted, *kept)))
    leaves = [s.out for s in steps if s.kind == LEAF]
    at = {v: i for i, v in enumerate(leaves)}
    constants = [v for v in unique if single.is_constant(v)]
    passed = [v for v in unique if single.resolve_alias(v) in at]
    apart = {*constants, *passed}
    computed = [v for v in unique if v not in apart]
    donate, paired = _common_donations(traces, leaves, computed, {single.resolve_alias(v) for v in passed})
    scratch, recycled = single._match_dead_buffers(first, [v for v in computed if v not in paired])
    rest = [v for v in computed if v not in paired and v not in recycled]
    order = [*paired, *recycled, *rest]
    exe = Executable(steps, order, donate, scratch, first.ctx, [None] * len(leaves), group)
    exe.constant_outputs = tuple(index_of(v) for v in constants)
    exe.passthrough_leaves = tuple(at[single.resolve_alias(v)] for v in passed)
    exe.outputs = (*order, *constants, *passed)
    exe.saved_steps = entries
    exe.output_index = {index_of(v): k for k, v in enumerate(exe.outputs)}
    return exe


def _common_donations(
    traces: Sequence[Trace], leaves: list[Value], outs: list[Value], kept: set[Value]
) -> tuple[list[int], list[Value]]:
    """Pair leaves that every member overwrote with the outputs that overwrite them."""
    donate, paired = single._pair_donations(traces[0], leaves, outs, kept)
    wanted = [(i, index_of(v)) for i, v in zip(donate, paired, strict=True)]
    for tr in traces[1:]:
        steps = steps_of(tr.state)
        own = [s.out for s in steps if s.kind == LEAF]
        there = [value_at_index(steps, index_of(v)) for v in outs]
        same = set(zip(*single._pair_donations(tr, own, there, set()), strict=True))
        wanted = [(i, at) for i, at in wanted if (i, value_at_index(steps, at)) in same]
    steps = steps_of(traces[0].state)
    return [i for i, _ in wanted], [value_at_index(steps, at) for _, at in wanted]


def _run_spmd(
    exe: Executable, traces: Sequence[Trace], group: DeviceGroup, everywhere: ProcessRunner | None
) -> list[list[Any]]:
    """Run the program; returns each member's results."""
    wholes: list[Any] = []
    if exe.call is not None:
        fork_guard.require_compute()
        for tr in traces:
            tr.leaves = [jax_from_numpy_nocopy(d, tr.ctx) if type(d) is np.ndarray else d for d in tr.leaves]
            for i in exe.donate:
                alone = single.takes_over and single._getrefcount(tr.leaves[i]) <= single._SOLE_REFCOUNT
                if not alone or id(tr.leaves[i]) in protected:
                    tr.leaves[i] = copy_buffer(tr.leaves[i])
                    counters.kept_copies += 1
        args = [group.from_shards(list(parts)) for parts in zip(*[tr.leaves for tr in traces], strict=True)]
        if exe.donated_types:
            recycled = [
                single._take_donated([aval(v.shape, v.dtype, tr.ctx) for v in exe.donated_types], tr.dead_buffers)
                for tr in traces
            ]
            args += [group.from_shards(list(parts)) for parts in zip(*recycled, strict=True)]
        if exe.has_keys:
            args.insert(0, group.stack_scalars([tr.keys for tr in traces], np.uint32))
        if exe.has_runtime:
            args.insert(0, group.stack_scalars([tr.runtime for tr in traces], np.float32))
        program = exe.call
        wholes = program(*args) if everywhere is None else everywhere.run(lambda: program(*args))
    members = [list(parts) for parts in zip(*map(group.local_shards, wholes), strict=True)] or [[] for _ in traces]
    for tr, own in zip(traces, members, strict=True):
        if exe.call is not None:
            single.track_in_flight(own)
        if exe.constant_outputs:
            steps = steps_of(tr.state)
            own += [
                device_put(single.materialize_constant(value_at_index(steps, at)), tr.ctx)
                for at in exe.constant_outputs
            ]
        own += [tr.leaves[i] for i in exe.passthrough_leaves]
    return members


engine.flush_joint = flush_spmd_trace
