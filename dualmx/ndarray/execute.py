"""Flush: execute a trace as one program and give its live handles their arrays."""

from __future__ import annotations

import sys
import time
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ..compile.devices import copy_buffer, device_put, wait_or_raise_lost, x64
from ..compile.events import counters, listeners
from ..compile.executable import Executable
from ..core import knobs, process
from ..core.errors import MXNetError
from ..core.process import fork_guard
from ..graph.trie import LEAF, VARIABLE, State, Value, aval, steps_of
from ..op.registry import Call
from . import handle, value_checks
from .exposed import COUNTS, protected
from .handle import Handle, to_jax_array
from .recorder import Trace, engine, execution_error, local
from .tape import live_tape, save_tape

# Donation asks whether the trace holds the only reference to a buffer. Reference counts answer that exactly on CPython
# with the GIL up to 3.13; elsewhere nothing is donated, which costs speed only.
takes_over = COUNTS and knobs.DONATE.read() == "1"
_getrefcount = sys.getrefcount

# Results of the latest programs of all threads, for `waitall`; more programs than XLA lets be in flight at once (32).
in_flight: deque[list[weakref.ref[Any]]] = deque(maxlen=64)


def _measure_sole_refcount() -> int:
    only = [object()]
    return _getrefcount(only[0])


_SOLE_REFCOUNT = _measure_sole_refcount()


def flush(tr: Trace | None = None) -> None:
    """Execute everything that this thread has recorded on the current context (or in `tr`).

    Raises:
        MXNetError: compilation or execution failed; the arrays that depended on it raise the same error when read.
    """
    if tr is None:
        tr = local.trace
    with tr.lock:
        if tr.executed:
            return
        if tr.state.depth == 0:
            return
        if tr.state.has_collective:
            engine.flush_joint(tr)
            return
        tr.executed = True
        if local.trace is tr:
            local.new_trace(tr.ctx)
        elif local.traces.get(tr.ctx) is tr:
            del local.traces[tr.ctx]
        live = [h for r in tr.handles if (h := r()) is not None and h._trace is tr and h._data is None]
        if live:
            _execute(tr, live)


def _execute(tr: Trace, live: list[Handle]) -> None:
    state = tr.state
    wanted = tuple([h._value for h in live])
    began = time.perf_counter() if listeners else 0.0
    try:
        exe = state.programs.get(wanted) or _find_covering_executable(state, wanted) or _compile(tr, wanted)
        started = time.perf_counter() if listeners else 0.0
        results = run_executable(exe, tr)
    except BaseException as e:
        error = e if isinstance(e, MXNetError) else execution_error(last_user_line(state), e)
        for h in live:
            h._trace = h._data = None
            h._extra().error = error
        if not isinstance(e, Exception):
            raise
        raise error from e
    counters.flushes += 1
    if listeners:
        for w in list(listeners):
            w.executed(state, began, started, results)
    for h, v, k in zip(live, wanted, exe.output_index[wanted], strict=True):
        if h._value is v:
            h._data = results[k]
            h._trace = None
            h._value = v.aval
    if exe.saved_steps:
        save_tape(exe, tr, dict(zip(exe.outputs, results, strict=True)), live, wanted)
    if tr.exposed:
        handle.publish(tr)
    tr.release()
    if tr.value_checks:
        value_checks.run_value_checks(tr, live, wanted)


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
    args = leaves = tr.leaves
    if exe.call is not None:
        fork_guard.require_compute()
        for i in exe.donate:
            if type(args[i]) is np.ndarray:
                continue  # which is copied on its way in
            if not takes_over or _getrefcount(args[i]) > _SOLE_REFCOUNT or id(args[i]) in protected:
                args[i] = copy_buffer(args[i])
                counters.kept_copies += 1
        if exe.donated_types:
            args = args + _take_donated(exe.donated_types, tr.dead_buffers)
        if exe.has_keys:
            args = [np.array(tr.keys, np.uint32), *args]
        if exe.has_runtime:
            args = [np.array(tr.runtime, np.float32), *args]
        results = exe.call(*args)
        if exe.is_multi_process:
            wait_or_raise_lost(results)
        track_in_flight(results)
    for v in exe.constant_outputs:
        results.append(device_put(materialize_constant(v), v.ctx))
    for i in exe.passthrough_leaves:
        results.append(leaves[i])
    return results


def track_in_flight(results: Sequence[Any]) -> None:
    """Let `waitall` wait for the results of a program."""
    in_flight.append([weakref.ref(r) for r in results])


def _take_donated(wanted: Sequence[Value], scratch: list[Any]) -> list[Any]:
    """Return one donated buffer for each aval, taken from `scratch` or new."""
    found = []
    # By index only: a loop variable would be a second reference.
    free: dict[Any, list[int]] = {}
    for i in range(len(scratch)):
        if type(scratch[i]) is np.ndarray:
            continue
        free.setdefault((scratch[i].shape, scratch[i].dtype), []).append(i)
    for v in wanted:
        at = free.get((v.shape, v.dtype), [])
        while at:
            i = at.pop(0)
            alone = takes_over and _getrefcount(scratch[i]) <= _SOLE_REFCOUNT and id(scratch[i]) not in protected
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
    for exe in state.programs.values():
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


def _compile(tr: Trace, wanted: tuple[Value, ...]) -> Executable:
    fork_guard.require_compute()
    state = tr.state
    steps = steps_of(state)
    entries, kept = live_tape(steps, wanted)
    unique = list(dict.fromkeys((*wanted, *kept)))
    leaves = [s.out for s in steps if s.kind == LEAF]
    at = {v: i for i, v in enumerate(leaves)}
    constants = [v for v in unique if is_constant(v)]
    passed = [v for v in unique if resolve_alias(v) in at]
    apart = {*constants, *passed}
    computed = [v for v in unique if v not in apart]
    donate, paired = _pair_donations(tr, leaves, computed, {resolve_alias(v) for v in passed})
    # On a mesh a buffer fits only if it is cut alike, which is not known before compiling.
    scratch, recycled = ([], []) if tr.ctx.mesh else _match_dead_buffers(tr, [v for v in computed if v not in paired])
    rest = [v for v in computed if v not in paired and v not in recycled]
    # XLA aliases donated inputs to outputs of equal type in order: pairs first, in the order of their leaves.
    order = [*paired, *recycled, *rest]
    exe = Executable(steps, order, donate, scratch, tr.ctx, [_multi_device_sharding(d) for d in tr.leaves])
    exe.constant_outputs = tuple(constants)
    exe.passthrough_leaves = tuple(at[resolve_alias(v)] for v in passed)
    exe.outputs = (*order, *constants, *passed)
    exe.saved_steps = entries
    exe.output_index = {wanted: tuple(exe.outputs.index(v) for v in wanted)}
    state.programs[wanted] = exe
    return exe


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


def _pair_donations(
    tr: Trace, leaves: list[Value], outs: list[Value], kept: set[Value]
) -> tuple[list[int], list[Value]]:
    """Pair leaves that were overwritten with the outputs that overwrite them."""
    donate, paired = [], []
    for i, v in enumerate(leaves):
        r = tr.overwritten_by.get(v)
        h = r() if r is not None else None
        if h is None or v in kept or h._trace is not tr:
            continue
        new = h._value
        if new in outs and new not in paired and new.aval is v.aval and new.state is not v.state:
            donate.append(i)
            paired.append(new)
    return donate, paired


def _match_dead_buffers(tr: Trace, outs: list[Value]) -> tuple[list[Value], list[Value]]:
    """Match buffers to recycle with outputs of the same shape and dtype."""
    scratch, recycled = [], []
    for d in tr.dead_buffers:
        if type(d) is np.ndarray:
            continue
        for v in outs:
            if v not in recycled and v.shape == d.shape and v.dtype == d.dtype:
                scratch.append(v.aval)
                recycled.append(v)
                break
    return scratch, recycled


def read_from_other_thread(tr: Trace, h: Handle) -> None:
    """Compute the pending value of `h` for another thread than the owner of `tr`, from a snapshot.

    The owner keeps its trace and goes on recording; nothing is donated.
    """
    if tr.resolve is not None:
        tr.resolve()
        return
    with tr.lock:
        if h._data is not None or h._trace is not tr:
            return
        state = tr.state
        if state.has_collective:
            raise MXNetError(
                "the array is computed by a program of several devices that another thread has not completed; wait "
                "for it there, with wait_to_read()"
            )
        shadow = Trace.__new__(Trace)
        shadow.ctx, shadow.state = tr.ctx, state
        shadow.leaves = tr.leaves[: state.n_leaves]
        shadow.runtime = tr.runtime[: state.n_runtime]
        shadow.keys = tr.keys[: state.n_keys]
        shadow.overwritten_by, shadow.dead_buffers = {}, []
        v = h._value
        key = ("peek", v)
        began = time.perf_counter() if listeners else 0.0
        exe = state.programs.get(key)
        if exe is None:
            steps = steps_of(state)
            exe = Executable(steps, [v], (), (), tr.ctx, [_multi_device_sharding(d) for d in shadow.leaves])
            exe.constant_outputs = exe.passthrough_leaves = ()
            # What keeps a tape is never taken for another set of values; this one is for the reading thread alone.
            exe.saved_steps = ("peek",)
            exe.output_index = {}
            state.programs[key] = exe
        started = time.perf_counter() if listeners else 0.0
        try:
            results = run_executable(exe, shadow)
        except Exception as e:
            raise execution_error(last_user_line(state), e) from e
        for w in list(listeners):
            w.executed(state, began, started, results)
        h._data = results[0]
        h._trace, h._value = None, v.aval
        handle.publish_value(h)


def run_eagerly(call: Call, ins: Sequence[Handle], runtime: Sequence[float]) -> list[Any]:
    """Execute a call whose output shapes depend on values at once, outside any program."""
    fork_guard.require_compute()
    datas = []
    for a in ins:
        datas.append(to_jax_array(a))
    ctx = ins[0]._value.ctx if ins else local.trace.ctx
    began = time.perf_counter() if listeners else 0.0
    with x64():
        if any(w.measures for w in listeners):
            jax.block_until_ready(call.apply_keys(datas, (), runtime))
        started = time.perf_counter() if listeners else 0.0
        results = call.apply_keys(datas, (), runtime)
    for w in list(listeners):
        w.ran_eagerly(call, began, started, results)
    return [array_from_buffer(device_put(r, ctx), ctx) for r in results]


def array_from_buffer(data: Any, ctx: Any) -> Any:
    """Return a new handle of a JAX array on `ctx`, or of NumPy memory that programs there take."""
    o = object.__new__(handle.array_class)
    o._trace = o._meta = None
    o._data = data
    o._value = aval(tuple(data.shape), np.dtype(data.dtype), ctx)
    return o


engine.flush = flush
engine.read_from_other_thread = read_from_other_thread
engine.run_eagerly = run_eagerly
