"""Flush: execute a trace as one program and give its live handles their arrays."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..compile.background import Compilation, exit_while_xla_works
from ..compile.devices import copy_buffer, device_put, jax_from_numpy_nocopy, wait_or_raise_lost
from ..compile.events import counters, listeners
from ..compile.executable import Executable, describe_program
from ..compile.job_rounds import job_rounds
from ..compile.multi_device import DeviceGroup, group_of, group_over_processes
from ..compile.tiers import make_executable
from ..core import knobs, process
from ..core.errors import MXNetError
from ..core.process import PausedInterrupt, fork_guard, paused_collection
from ..graph.gradient import variables_of
from ..graph.signature import context_free_signature, index_of, value_at_index
from ..graph.trie import BACKWARD, LEAF, OP, VARIABLE, State, Value, aval, steps_of
from .aliasing import publish, publish_value
from .exposed import COUNTS, protected
from .recorder import Handle, Trace, execution_error, local
from .saved_tape import live_tape, save_tape

# Donation asks whether the trace holds the only reference to a buffer. Reference counts answer that exactly on CPython
# with the GIL up to 3.13; elsewhere nothing is donated, which costs speed only.
_takes_over = COUNTS and knobs.DONATE.read() == "1"
_getrefcount = sys.getrefcount

# Results of the latest programs of all threads, for `waitall`; more programs than XLA lets be in flight at once (32).
in_flight: deque[Sequence[Callable[[], Any]]] = deque(maxlen=64)
in_flight_lock = threading.Lock()
_MANY, _SMALL_BYTES = 64, 4096
EXIT_SECONDS = 5.0


def _measure_sole_refcount() -> int:
    only = [object()]
    return _getrefcount(only[0])


_SOLE_REFCOUNT = _measure_sole_refcount()


class ProcessRunner(Protocol):
    """Other processes that XLA has joined, which run the same programs."""

    def same_on_all(self, text: str) -> bool:
        """Whether all processes say the same; called by all of them."""
        ...

    def run(self, work: Any) -> Any:
        """Run a program of all processes, and wait for its results."""
        ...


def flush(tr: Trace | None = None, *, after_update: bool = False) -> None:
    """Execute everything that this thread has recorded on the current context (or in `tr`).

    A trace that exchanges values is executed together with those of the same program on other contexts.

    Args:
        tr: what to execute.
        after_update: gradients that an operator has read were used by it, and are not kept until somebody reads one.

    Raises:
        MXNetError: compilation or execution failed; the arrays that depended on it raise the same error when read.
    """
    if tr is None:
        tr = local.trace
    with tr.lock:
        if tr.executed or tr.state.depth == 0:
            return
        if tr.state.has_collective:
            flush_spmd(traces_with_same_program(tr))
            return
        # An interrupted program would take the weights with it that it updates.
        with PausedInterrupt():
            if live := _detach(tr):
                _execute([tr], [_without_unread_gradients(tr, live) if after_update else live])


class _Split(NamedTuple):
    """How the live handles of a prefix are parted.

    Attributes:
        values: their values.
        unread: positions of gradients that an operator reads.
        rest: positions of all others.
        kept: the values of the others.
        last: the last backward.
    """

    values: tuple[Value, ...]
    unread: Sequence[int]
    rest: Sequence[int]
    kept: tuple[Value, ...]
    last: State


class UnreadGradients(Trace):
    """Gradients that were used by the program that computed them, and are computed again if somebody reads one.

    From then on the program keeps them.

    Args:
        tr: the trace, before it is executed.
        last: its last backward.
        handles: the gradients.
    """

    __slots__ = ("_overwritten", "_full_state")
    is_recyclable = True

    def __init__(self, tr: Trace, last: State, handles: Sequence[Handle]):
        super().__init__(tr.ctx, False, last)
        self.leaves, self.runtime, self.keys = (
            tr.leaves[: last.n_leaves],
            tr.runtime[: last.n_runtime],
            tr.keys[: last.n_keys],
        )
        self._full_state = tr.state
        self._overwritten = tr.overwritten_by
        self.handles = [weakref.ref(h) for h in handles]
        for h in handles:
            h._trace = self

    def _pending(self) -> list[Handle]:
        return [h for r in self.handles if (h := r()) is not None and h._trace is self]

    def resolve(self) -> bool:
        """Compute the gradients."""
        with self.lock:
            if not self.executed:
                self.executed = True
                self._full_state.memo[UnreadGradients] = True
                if live := self._pending():
                    _execute([self], [live])
        return True

    def recycle_into(self, tr: Trace) -> None:
        """Hand `tr` the buffers that were overwritten since, once nobody waits for the gradients any more."""
        with self.lock:
            if self.executed or self._pending():
                return
            self.executed = True
            for v in self._overwritten:
                if v.state and v.state.n_leaves <= len(self.leaves):
                    tr.dead_buffers.append(self.leaves[v.state.n_leaves - 1])
                    tr.dead_avals.append(v.aval)
            self.release()


def _without_unread_gradients(tr: Trace, live: list[Handle]) -> list[Handle]:
    """Return the handles that a program is to give values; gradients that nobody reads wait apart.

    What those are computed from is not overwritten: the next values of weights take the place of those before them.
    """
    state = tr.state
    if tr.value_checks or tr.exposed or UnreadGradients in state.memo:
        return live
    values = tuple([h._value for h in live])
    split = state.memo.get(_Split)
    if split is None or split.values != values:
        # To look for it in a dictionary takes longer, and a step mostly leaves the same behind as the one before.
        split = state.memo.get((_Split, values))
        if split is None:
            split = state.memo[_Split, values] = _part_unread(tr, values)
        if not split.unread or values in state.programs:
            return live
        exe, n = state.programs.get(split.kept), split.last.n_leaves
        if exe is not None:
            if exe.donate and exe.donate[0] < n:
                return live  # it was compiled when there were no gradients
            if exe.promotion is None:  # otherwise another one takes its place
                state.memo[_Split] = split
    tr.n_kept_leaves = split.last.n_leaves
    UnreadGradients(tr, split.last, [live[i] for i in split.unread])
    return [live[i] for i in split.rest]


def _part_unread(tr: Trace, values: tuple[Value, ...]) -> _Split:
    """Tell gradients that an operator reads from other values."""
    steps = steps_of(tr.state)
    passes = [s for s in steps if s.kind == BACKWARD]
    variables = variables_of(steps)
    # Gradients of rows belong to tables, which are too large to be written anew.
    is_dense = all(group[0] in variables for s in passes for group in s.payload.targets)
    if not passes or not is_dense or tr.ctx.mesh is not None or getattr(tr.ctx, "remote", False):
        return _Split(values, (), range(len(values)), values, tr.state)
    read = {v for s in steps if s.kind == OP for v in s.ins}
    unread = {
        v for s in passes for v, old in zip(s.outs, s.payload.accumulate_into, strict=True) if old is None and v in read
    }
    rest = [i for i, v in enumerate(values) if v not in unread]
    at = [i for i, v in enumerate(values) if v in unread]
    return _Split(values, at, rest, tuple([values[i] for i in rest]), passes[-1])


def flush_spmd(traces: Sequence[Trace], processes: ProcessRunner | None = None) -> None:
    """Execute traces that recorded the same program as one program on all their devices, and those of other processes.

    Raises:
        MXNetError: they recorded different programs, two of them share a device, or the program failed; the arrays
            that depended on it raise the same error when read.
    """
    with ExitStack() as held:
        for tr in traces:
            held.enter_context(tr.lock)
        lives = [_detach(tr) for tr in traces]
        if any(lives):
            _execute(traces, lives, processes)


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


@contextmanager
def isolated_traces() -> Iterator[None]:
    """Record into traces of its own inside the `with` block and execute them at its end; what is pending stays so."""
    before = local.traces, local.trace
    local.traces = {}
    local.new_trace(before[1].ctx)
    try:
        yield
        for tr in list(local.traces.values()):
            flush(tr)
    finally:
        local.traces, local.trace = before


def _detach(tr: Trace) -> list[Handle]:
    """Take a trace from its thread, which goes on in another one, and return the handles that wait for values."""
    tr.executed = True
    if local.trace is tr:
        local.new_trace(tr.ctx)
    elif local.traces.get(tr.ctx) is tr:
        del local.traces[tr.ctx]
    return [h for r in tr.handles if (h := r()) is not None and h._trace is tr and h._data is None]


def _execute(traces: Sequence[Trace], lives: Sequence[list[Handle]], processes: ProcessRunner | None = None) -> None:
    """Run the program of traces, one for each context, and give the live handles their arrays."""
    if len(lives[0]) <= _MANY:
        _execute_in(None, traces, lives, processes)
        return
    with ExitStack() as running:
        _execute_in(running, traces, lives, processes)


def _execute_in(
    running: ExitStack | None, traces: Sequence[Trace], lives: Sequence[list[Handle]], processes: ProcessRunner | None
) -> None:
    """As `_execute`; `running` of a program of many results ends with it, and does not begin before it is compiled."""
    first, state = traces[0], traces[0].state
    values = [tuple([h._value for h in live]) for live in lives]
    began = time.perf_counter() if listeners else 0.0
    for tr in traces:
        if tr.replaced is not None:
            tr.replaced.recycle_into(tr)
    try:
        group = _group_of(traces, processes) if state.has_collective else None
        if group is None:
            key: Any = values[0]
            exe = state.programs.get(key) or _find_covering_executable(state, key) or _compile(traces, key, key)
            if exe.promotion is not None:
                exe = _next_run(exe, traces)
            if running is not None:
                running.enter_context(paused_collection())
            started = time.perf_counter() if listeners else 0.0
            results = [run_executable(exe, first)]
        else:
            places = sorted({index_of(v) for own in values for v in own})
            key = ("joint", group, *places)
            exe = state.programs.get(key)
            if exe is None:
                steps = steps_of(state)
                exe = _compile(traces, key, [value_at_index(steps, at) for at in places], group)
            started = time.perf_counter() if listeners else 0.0
            results = _run_spmd(exe, traces, group, processes)
    except BaseException as e:
        error = e if isinstance(e, MXNetError) else execution_error(last_user_line(state), e)
        for h in (h for live in lives for h in live):
            poison(h, error)
        if not isinstance(e, Exception):
            raise
        raise error from e
    counters.flushes += 1
    if listeners:
        for w in list(listeners):
            w.executed(state, began, started, results[0], exe.describe())
    where = exe.output_index[key]
    position = None if group is None else dict(zip(key[2:], where, strict=True))
    for tr, live, own, found in zip(traces, lives, values, results, strict=True):
        for h, v, k in zip(live, own, where if position is None else [position[index_of(v)] for v in own], strict=True):
            if h._value is v:
                h._data = found[k]
                h._trace = None
                h._value = v.aval
        if exe.saved_steps:
            saved, outputs = exe.saved_steps, exe.outputs
            if tr is not first:  # the same steps on another context
                steps = steps_of(tr.state)
                saved = [steps[s.depth - 1] for s in saved]
                outputs = [value_at_index(steps, index_of(v)) for v in outputs]
            save_tape(saved, tr, dict(zip(outputs, found, strict=True)), live, own)
        if tr.exposed:
            publish(tr)
        if _MANY < len(live) and len(tr.handles) < 2 * len(live):
            # An array has one weak reference: what is kept here is not made anew in each step.
            tr.state.memo[weakref] = tr.handles
        tr.release()
        if tr.value_checks:
            run_value_checks(tr, live, own)


def _group_of(traces: Sequence[Trace], processes: ProcessRunner | None) -> DeviceGroup:
    """Return the devices on which traces that exchange values run as one program."""
    contexts = tuple([tr.ctx for tr in traces])
    group = group_over_processes(contexts) if processes else group_of(contexts) if len(traces) > 1 else None
    same = context_free_signature(traces[0].state)
    if group is None or any(context_free_signature(tr.state) is not same for tr in traces):
        raise MXNetError(
            f"what was recorded on {', '.join(map(str, contexts))} exchanges values between devices, and must be the "
            "same program on each of several devices, for parts of the same shape"
        )
    return group


def run_value_checks(tr: Trace, live: Sequence[Handle], values: Sequence[Value]) -> None:
    """Check what an executed trace expected; `live` held `values` in it. What nothing alive depends on is ignored."""
    expected, tr.value_checks = tr.value_checks, []
    flags = {id(flag) for flag, *_ in expected}
    failed = None
    for flag, outs, error, where in expected:
        if is_satisfied(flag):
            continue
        if where:
            error = type(error)(f"{error} (recorded at {where[0]}:{where[1]})")
        reached = set(outs)
        for step in steps_of(tr.state):
            if any(v in reached for v in step.ins):
                reached.update(step.outs)
        for h, v in zip(live, values, strict=True):
            if v in reached and id(h) not in flags:
                poison(h, error)
                failed = error
    if failed is not None:
        raise failed


def is_satisfied(flag: Handle) -> bool:
    """Return whether the one element of an executed condition is not 0."""
    return bool(np.asarray(flag._data).item())


def poison(h: Handle, error: MXNetError) -> None:
    """Let whoever reads an array find `error` in its place."""
    h._trace = h._data = None
    h._extra().error = error


def last_user_line(state: State | None) -> tuple[str, int] | None:
    """Return the user line of the last step of a prefix that has one."""
    while state is not None:
        if state.user_line:
            return state.user_line
        state = state.parent
    return None


def run_executable(exe: Executable, tr: Trace) -> list[Any]:
    """Run an executable on the inputs of a trace; constants are made on the host, leaves handed through."""
    results: list[Any] = []
    args = tr.leaves
    if exe.call is not None:
        fork_guard.require_compute()
        _own_donated(exe, args)
        if exe.donated_types:
            args = args + _take_donated(exe.donated_types, tr.dead_buffers, tr.dead_avals)
        if exe.has_keys:
            args = [np.array(tr.keys, np.uint32), *args]
        if exe.has_runtime:
            args = [np.array(tr.runtime, np.float32), *args]
        results = exe.call(*args)
        if exe.is_multi_process:
            wait_or_raise_lost(results)
        track_in_flight(results, len(exe.donate) + len(exe.donated_types))
    _add_uncomputed(exe, tr, results)
    return results


def _own_donated(exe: Executable, leaves: list[Any]) -> None:
    """Replace leaves that a program takes over, and that somebody else holds, by copies."""
    # An array of NumPy is copied on its way in.
    for i in exe.donate:
        if (not _takes_over or _getrefcount(leaves[i]) > _SOLE_REFCOUNT or id(leaves[i]) in protected) and type(
            leaves[i]
        ) is not np.ndarray:
            leaves[i] = copy_buffer(leaves[i])
            counters.kept_copies += 1


def _add_uncomputed(exe: Executable, tr: Trace, results: list[Any]) -> None:
    """Add the results that need no program: constants, and leaves that are handed through."""
    for v in exe.constant_outputs:
        results.append(device_put(materialize_constant(v), tr.ctx))
    for i in exe.passthrough_leaves:
        results.append(tr.leaves[i])


def _run_spmd(
    exe: Executable, traces: Sequence[Trace], group: DeviceGroup, processes: ProcessRunner | None
) -> list[list[Any]]:
    """Run the program of several contexts; returns each one's results."""
    results: list[list[Any]] = [[] for _ in traces]
    if exe.call is not None:
        fork_guard.require_compute()
        for tr in traces:
            tr.leaves = [jax_from_numpy_nocopy(d, tr.ctx) if type(d) is np.ndarray else d for d in tr.leaves]
            _own_donated(exe, tr.leaves)
        args = [group.from_shards(list(parts)) for parts in zip(*[tr.leaves for tr in traces], strict=True)]
        if exe.donated_types:
            recycled = [
                _take_donated(
                    [aval(v.shape, v.dtype, tr.ctx) for v in exe.donated_types], tr.dead_buffers, tr.dead_avals
                )
                for tr in traces
            ]
            args += [group.from_shards(list(parts)) for parts in zip(*recycled, strict=True)]
        if exe.has_keys:
            args.insert(0, group.stack_scalars([tr.keys for tr in traces], np.uint32))
        if exe.has_runtime:
            args.insert(0, group.stack_scalars([tr.runtime for tr in traces], np.float32))
        program = exe.call
        computed = program(*args) if processes is None else processes.run(lambda: program(*args))
        results = [list(parts) for parts in zip(*map(group.local_shards, computed), strict=True)] or results
    for tr, own in zip(traces, results, strict=True):
        track_in_flight(own, len(exe.donate) + len(exe.donated_types))
        _add_uncomputed(exe, tr, own)
    return results


def track_in_flight(results: Sequence[Any], n_overwriting: int = 0) -> None:
    """Let `waitall` wait for the results of a program, of which the first ones overwrite other arrays."""
    if len(results) > _MANY:
        # All of them are there at once, and Python's collector of garbage would look at thousands of references.
        _forget_ended()
        for r in results[n_overwriting:]:
            if type(r) is not np.ndarray and r.nbytes <= _SMALL_BYTES:
                in_flight.append([lambda r=r: r])
                return
    in_flight.append([weakref.ref(r) for r in results if type(r) is not np.ndarray])


def _forget_ended() -> None:
    """Forget the results of the first programs in flight that have ended well."""
    with in_flight_lock:
        while in_flight:
            last = next((a for r in reversed(in_flight[0]) if (a := r()) is not None and not a.is_deleted()), None)
            if last is not None and (not last.is_ready() or _buffer_has_failed(last)):
                return
            in_flight.popleft()


def _end_programs() -> None:
    """Wait for the programs in flight at the end of the process, but not for ever for one that waits for others.

    XLA's threads crash where the destructors of its libraries run beside them.
    """
    until = time.monotonic() + EXIT_SECONDS
    for result in [r() for results in list(in_flight) for r in results]:
        while result is not None and not result.is_deleted() and not result.is_ready():
            if time.monotonic() > until:
                exit_while_xla_works()
                return
            time.sleep(0.001)


atexit.register(_end_programs)  # after those of JAX, and so called before them
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=in_flight.clear)  # a fork has no threads that could end them


def _take_donated(wanted: Sequence[Value], scratch: list[Any], avals: Sequence[Value]) -> list[Any]:
    """Return one donated buffer for each aval, taken from `scratch`, whose avals are given, or new."""
    found = []
    # By index only: a loop variable would be a second reference.
    free: dict[Value, list[int]] = {}
    for i in range(len(scratch) - 1, -1, -1):
        if type(scratch[i]) is not np.ndarray:
            free.setdefault(avals[i], []).append(i)
    for v in wanted:
        at = free.get(v, [])
        while at:
            i = at.pop()
            alone = _takes_over and _getrefcount(scratch[i]) <= _SOLE_REFCOUNT and id(scratch[i]) not in protected
            if alone and not (counters.failures and _buffer_has_failed(scratch[i])):
                if process.poisons:
                    _poison(scratch[i])
                found.append(scratch[i])
                scratch[i] = None
                break
        else:
            found.append(device_put(np.zeros(v.shape, v.dtype), v.ctx))
    return found


def _poison(buffer: Any) -> None:
    """Spoil a buffer on the CPU that a program is to overwrite, once all programs that may read it have ended."""
    if buffer.is_fully_addressable and [d.platform for d in buffer.devices()] == ["cpu"]:
        for result in [r() for results in list(in_flight) for r in results]:
            if result is not None and not result.is_deleted():
                result.block_until_ready()
        buffer.block_until_ready()
        process.poison(buffer.unsafe_buffer_pointer(), buffer.nbytes)


def _buffer_has_failed(buffer: Any) -> bool:
    """Return whether a program failed that was to fill a buffer: so would all that write to it."""
    try:
        buffer.block_until_ready()
    except RuntimeError:
        return True
    return False


def _find_covering_executable(state: State, wanted: tuple[Value, ...]) -> Executable | None:
    """Return an executable of this prefix that yields `wanted` and more, if nothing of the tape must be kept."""
    need = set(wanted)
    # A copy: other threads that recorded the same prefix add their programs meanwhile.
    for exe in list(state.programs.values()):
        if not exe.saved_steps and need.issubset(exe.outputs):
            exe.output_index[wanted] = tuple(exe.outputs.index(v) for v in wanted)
            state.programs[wanted] = exe
            return exe
    return None


def materialize_constant(v: Value) -> np.ndarray:
    """Return the array that a creation step yields."""
    assert v.state is not None and v.state.call is not None
    call = v.state.call
    assert call.op.traits.fill is not None
    return np.full(v.shape, call.op.traits.fill(call.params), v.dtype)


def is_constant(v: Value) -> bool:
    """True for what `zeros`, `ones` and `full` yield: made on the host, it needs no program."""
    return v.state is not None and v.state.call is not None and v.state.call.op.traits.fill is not None


def _compile(
    traces: Sequence[Trace], key: Any, wanted: Sequence[Value], group: DeviceGroup | None = None
) -> Executable:
    """Compile the program of traces, one for each context, that yields `wanted` of the first; keep it under `key`."""
    fork_guard.require_compute()
    exe = _plan(traces, key, wanted, group)(make_executable)
    traces[0].state.programs[key] = exe
    return exe


def _plan(
    traces: Sequence[Trace], key: Any, wanted: Sequence[Value], group: DeviceGroup | None = None
) -> Callable[[Callable[..., Executable]], Executable]:
    """Return what makes the executable of a program, by a function that takes the arguments of `Executable`.

    It holds nothing of the traces, whose arrays may be gone when it is called.
    """
    tr, ctx = traces[0], traces[0].ctx
    steps = steps_of(tr.state)
    entries, kept = live_tape(steps, wanted)
    unique = list(dict.fromkeys((*wanted, *kept)))
    leaves = [s.out for s in steps if s.kind == LEAF]
    at = {v: i for i, v in enumerate(leaves)}
    constants = [v for v in unique if is_constant(v)]
    passed = [v for v in unique if resolve_alias(v) in at]
    apart = {*constants, *passed}
    computed = [v for v in unique if v not in apart]
    kept_leaves = {resolve_alias(v) for v in passed}.union(leaves[: tr.n_kept_leaves])
    donate, paired = _pair_common_donations(traces, leaves, computed, kept_leaves)
    # On a mesh a buffer fits only if it is cut alike, which is not known before compiling.
    overwriting = set(paired)
    scratch, recycled = ([], []) if ctx.mesh else _match_dead_buffers(tr, [v for v in computed if v not in overwriting])
    overwriting.update(recycled)
    rest = [v for v in computed if v not in overwriting]
    # XLA aliases donated inputs to outputs of equal type in order: pairs first, in the order of their leaves.
    order = [*paired, *recycled, *rest]
    shardings = [_multi_device_sharding(d) for d in tr.leaves]

    def make(executable: Callable[..., Executable]) -> Executable:
        exe = executable(steps, order, donate, scratch, ctx, shardings, group)
        exe.constant_outputs = tuple(constants)
        exe.passthrough_leaves = tuple(at[resolve_alias(v)] for v in passed)
        exe.outputs = (*order, *constants, *passed)
        exe.saved_steps = entries
        exe.output_index = {key: tuple(exe.outputs.index(v) for v in wanted)}
        return exe

    return make


def _next_run(exe: Executable, traces: Sequence[Trace]) -> Executable:
    """Count a run of a program that may be promoted; returns what runs it now, and from now on.

    Updates of other arrays by the same program may not be as far; see `JobRounds.of_update`.
    """
    wanted = next(iter(exe.output_index))
    fork_guard.require_compute()  # before a lock that another thread of the parent may have held

    def compile_later() -> Compilation[Executable]:
        make = _plan(traces, wanted, wanted)
        promoted = partial(Executable, promoted_at=exe.promotion.first_use)
        return Compilation(partial(make, promoted), describe_program(steps_of(traces[0].state)))

    made = exe.promotion.next_run(compile_later)
    if made is None:
        return exe
    programs = traces[0].state.programs
    for key in [key for key, other in list(programs.items()) if other is exe]:
        made.output_index[key] = tuple(made.outputs.index(v) for v in key)
        if not job_rounds.update:
            programs[key] = made
    return made


def resolve_alias(v: Value) -> Value:
    """Return the value that `v` renames, through variables made of it."""
    while v.state is not None and v.state.kind == VARIABLE:
        v = v.state.ins[0]
    return v


def _multi_device_sharding(data: Any) -> Any:
    """Return the sharding of an array that lies on several devices, None for one device or NumPy's memory."""
    if isinstance(data, np.ndarray):
        return None
    return data.sharding if len(data.sharding.device_set) > 1 else None


def _pair_common_donations(
    traces: Sequence[Trace], leaves: list[Value], outs: list[Value], kept: set[Value]
) -> tuple[list[int], list[Value]]:
    """Pair leaves that were overwritten on every context with the outputs that overwrite them."""
    donate, paired = _pair_donations(traces[0], leaves, outs, kept)
    for tr in traces[1:]:
        steps = steps_of(tr.state)
        own = [s.out for s in steps if s.kind == LEAF]
        there = [value_at_index(steps, index_of(v)) for v in outs]
        same = {(i, index_of(v)) for i, v in zip(*_pair_donations(tr, own, there, set()), strict=True)}
        common = [(i, v) for i, v in zip(donate, paired, strict=True) if (i, index_of(v)) in same]
        donate, paired = [i for i, _ in common], [v for _, v in common]
    return donate, paired


def _pair_donations(
    tr: Trace, leaves: list[Value], outs: list[Value], kept: set[Value]
) -> tuple[list[int], list[Value]]:
    """Pair leaves that were overwritten with the outputs that overwrite them."""
    donate: list[int] = []
    paired: list[Value] = []
    free = set(outs)
    for i, v in enumerate(leaves):
        r = tr.overwritten_by.get(v)
        h = r() if r is not None else None
        if h is None or v in kept or h._trace is not tr:
            continue
        new = h._value
        if new in free and new.aval is v.aval and new.state is not v.state:
            donate.append(i)
            paired.append(new)
            free.remove(new)
    return donate, paired


def _match_dead_buffers(tr: Trace, outs: list[Value]) -> tuple[list[Value], list[Value]]:
    """Match buffers to recycle with outputs of the same shape and dtype."""
    free: dict[Any, deque[Value]] = {}
    for v in outs:
        free.setdefault(v.aval, deque()).append(v)
    recycled = []
    for d, like in zip(tr.dead_buffers, tr.dead_avals, strict=True):
        if type(d) is not np.ndarray and (same := free.get(like)):
            recycled.append(same.popleft())
    return [v.aval for v in recycled], recycled


def read_from_other_thread(tr: Trace, h: Handle) -> Any:
    """Return the pending value of `h` for another thread than the owner of `tr`, computed from a snapshot.

    The owner keeps its trace and goes on recording; nothing is donated. Returns None if the owner has meanwhile
    executed the trace, so that `h` is to be looked at anew.
    """
    if tr.resolve():
        return h._data
    with tr.lock:
        # In this order: the owner may record more at any time, and a later state has all values of an earlier one.
        v, state = h._value, tr.state
        if tr.executed or h._data is not None or h._trace is not tr or v.state is None:
            return h._data
        if v in tr.read_by_others:
            return tr.read_by_others[v]
        if state.has_collective:
            raise MXNetError(
                "the array is computed by a program of several devices that another thread has not completed; wait "
                "for it there, with wait_to_read()"
            )
        began = time.perf_counter() if listeners else 0.0
        # Not among the programs of the state: it keeps no tape, which the owner may need.
        exe = state.memo.get((Executable, v))
        if exe is None:
            shardings = [_multi_device_sharding(d) for d in tr.leaves[: state.n_leaves]]
            exe = state.memo[Executable, v] = make_executable(steps_of(state), [v], (), (), tr.ctx, shardings)
        started = time.perf_counter() if listeners else 0.0
        try:
            results = run_executable(exe, tr.snapshot(state))
        except Exception as e:
            raise execution_error(last_user_line(state), e) from e
        for w in list(listeners):
            w.executed(state, began, started, results, exe.describe())
        if v.tracked:
            # The owner's gradients pass through the value: it stays pending there.
            tr.read_by_others[v] = results[0]
        elif h._trace is tr and h._value is v:  # else the owner has overwritten it meanwhile
            h._data = results[0]
            h._trace, h._value = None, v.aval
            publish_value(h)
        return results[0]
