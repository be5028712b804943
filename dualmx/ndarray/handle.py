"""Operations on array handles: recording calls on them, realizing their values, and writes, which rebind them."""

from __future__ import annotations

import time
import weakref
from collections.abc import Sequence
from itertools import compress, repeat
from operator import is_not
from typing import Any, NamedTuple

import jax
import numpy as np

from ..compile.devices import device_of, device_put, jax_from_numpy_nocopy, spec_of, x64
from ..compile.events import listeners
from ..core.context import Context
from ..core.errors import ArgumentError, MXNetError
from ..core.process import fork_guard
from ..core.rng import rng_streams
from ..graph.trie import LEAF, State, Value, aval
from ..op.registry import OPS, Call
from ..op.schema import FLOAT32_EXACT_INTS
from .aliasing import exposed, exposed_to_write, invalidate_views
from .execute import flush, read_from_other_thread
from .recorder import ArrayMeta, Handle, TapePaused, Trace, TraceFull, TraceReplaced, engine, local
from .saved_tape import TapeEntry, TapeValue

ref = weakref.ref
_new = object.__new__
_MANY = 16  # arrays of a call, from which on looking at all of them at once pays


def realize(a: Handle, reading_trace: Trace | None = None) -> Any:
    """Make the value of `a` concrete and return it; a stale view that `reading_trace` reads is only recorded there."""
    if a.is_sparse:
        return a.realize_dense(reading_trace)  # type: ignore[attr-defined]
    tr = a._trace
    if tr is None:
        x = a._meta
        if x is not None and x.error is not None:
            raise x.error
        memory = exposed(a)
        if memory is not None and x is not None and (x.view_base is None or x.view_base._trace is None):
            if x.view_base is not None and x.view_base._meta is not None and x.view_base._meta.error is not None:
                raise x.view_base._meta.error
            return memory.read(x.view_ops, a._value.ctx)
        if a._data is not None:
            return a._data
        if x is None or x.view_base is None:
            raise MXNetError("the array has no value: the program that computed it was interrupted")
        fresh = read_view(x.view_base, x.view_ops)
        a._trace, a._value, a._data = fresh._trace, fresh._value, fresh._data
        if a._data is not None:
            return a._data
        assert a._trace is not None
        a._trace.handles.append(ref(a))
        if x.grad_req is not None and (local.record_depth or local.recording):
            a._trace.mark_variable(a)
        if a._trace is reading_trace:
            return None
        tr = a._trace
    if tr.executed or local.traces.get(tr.ctx) is tr:
        flush(tr)
    else:
        data = read_from_other_thread(tr, a)
        if data is not None:
            return data
    if a._data is None:
        if a._trace is tr:
            raise MXNetError("the array has no value: the program that computes it was executed without it")
        return realize(a, reading_trace)
    return a._data


def leaf_of(tr: Trace, a: Handle) -> Value:
    """Return the value of `a` in a trace, entering it if need be; the slow path of recording."""
    if a._trace is tr:
        return a._value
    x = a._meta
    if x is not None and x.view_base is not None and not x.view_ops:
        # A second handle on an array: what enters is that array, with its place on the tape.
        return leaf_of(tr, x.view_base)
    data, memory = a._data, None
    if data is None:
        if a._value.ctx is not tr.ctx:
            # What is pending on another context may go on there.
            raise TraceReplaced
        # What other libraries may write to enters anew for each operation.
        memory = None if x is None else exposed(a)
        data = realize(a, tr)
        if a._trace is tr:
            return a._value
    like = a._value.aval
    # Reading a stale view may have executed this very trace.
    if like.ctx is not tr.ctx or tr.executed:
        raise TraceReplaced
    x = a._meta
    if a._trace is not None and type(data) is np.ndarray and (x is None or x.grad_req is None or not local.recording):
        # It is read again and again, which is quicker from a JAX array.
        held, data = data, jax_from_numpy_nocopy(data, like.ctx)
        if a._data is held:
            a._data = data
    if x is None or (x.tape_value is None and x.grad_req is None):
        v = tr.add_leaf(data, like)
    elif x.grad_req is not None:
        v = tr.add_variable_leaf(a, x.grad_req, data, like)
    else:
        v = tr.leaf_of_tape_value.get(x.tape_value)
        if memory is not None and not memory.is_as_recorded():
            x.tape_value = None
            v = tr.add_leaf(data, like)
        elif v is None:
            v = tr.add_tape_leaf(x.tape_value, data)
    # What another thread computes, or has overwritten meanwhile, stays as it is.
    if memory is None and a._data is data:
        a._value, a._trace = v, tr
    return v


def values_in(tr: Trace, handles: Sequence[Handle]) -> list[Value]:
    """Return the values of many arrays in a trace, as `leaf_of` for each that is not there."""
    began, is_long = tr.state, len(handles) > _MANY
    if is_long:
        outside = [a for a in handles if a._trace is not tr]
        if not outside or enter_as_before(tr, outside) == len(outside):
            return [a._value for a in handles]
    found = []
    for a in handles:
        if a._trace is tr:
            found.append(a._value)
            continue
        x, data = a._meta, a._data
        if a._trace is None and data is not None and (x is None or (x.grad_req is not None and x.view_base is None)):
            # What enters as it did before needs no more than its place.
            key: Any = a._value.aval
            if x is not None:
                key = (key, True, (x.grad_req, tr.variable_numbers.get(id(a), len(tr.variables))))
            nx = tr.state.next.get(key)
            if nx is not None:
                if x is not None:
                    tr.number_of_variable(a)
                tr.leaves.append(data)
                tr.state = nx
                a._value, a._trace = nx.out, tr
                found.append(nx.out)
                continue
        found.append(leaf_of(tr, a))
    if is_long and tr.ctx.mesh is None:
        began.memo[enter_as_before] = _leaf_path(began, tr.state)
    return found


class _LeafPath(NamedTuple):
    """How many arrays entered a trace one after the other, and nothing else did.

    Attributes:
        avals, reqs, values: shape and dtype, `grad_req` (False for what is no variable) and value of each.
    """

    avals: list[Value]
    reqs: list[Any]
    values: list[Value]


def _leaf_path(first: State, last: State) -> _LeafPath | None:
    """Return how arrays entered between two states; None if one was a variable before, or is on the tape."""
    found: list[tuple[Value, Any, Value]] = []
    state = last
    while state is not first and state.parent is not None:
        req, number = state.payload or (False, state.n_vars - 1)
        if state.kind != LEAF or req is None or number != state.n_vars - 1 or state.out.tracked != bool(state.payload):
            return None
        found.append((state.out.aval, req, state.out))
        state = state.parent
    if state is not first or not found:
        return None
    return _LeafPath(*map(list, zip(*reversed(found), strict=True)))


def enter_as_before(tr: Trace, handles: Sequence[Handle]) -> int:
    """Enter arrays by the way that the trace went from here the last time, if they fit; returns how many did."""
    way, numbers = tr.state.memo.get(enter_as_before), tr.variable_numbers
    if way is None or (numbers and not numbers.keys().isdisjoint(map(id, handles))):
        return 0
    n = min(len(handles), len(way.avals))
    handles = handles[:n]
    datas, metas = [a._data for a in handles], [a._meta for a in handles]
    if [a._value.aval for a in handles] != way.avals[:n] or not all(map(is_not, datas, repeat(None))):
        return 0
    if [False if x is None else x.grad_req if x.view_base is None else None for x in metas] != way.reqs[:n]:
        return 0
    if np.ndarray in set(map(type, datas)):  # what entered before is read again and again: `leaf_of` makes it JAX's
        if any([a._trace is not None and type(a._data) is np.ndarray for a in handles]):
            return 0
    variables = list(compress(handles, way.reqs))
    new = dict(zip(map(id, variables), range(len(tr.variables), len(tr.variables) + n), strict=False))
    last = way.values[n - 1].state
    if len(new) != len(variables) or last is None:
        return 0
    numbers.update(new)
    tr.variables += variables
    tr.leaves += datas
    tr.state = last
    for a, v in zip(handles, way.values, strict=False):
        a._value, a._trace = v, tr
    return n


def enter_variable(tr: Trace, a: Handle, grad: Handle, grad_req: str, is_kept: bool) -> Any:
    """Return a new variable with the value of `a` in a trace; `is_kept` if the trace may be executed before its use."""
    made = _new(type(a))
    made._value, made._trace, made._data, made._meta = leaf_of(tr, a), tr, None, ArrayMeta()
    made._meta.grad, made._meta.grad_req = grad, grad_req
    if is_kept:
        tr.handles.append(ref(made))
    # Otherwise not among the trace's handles: the value is not asked for again, so its buffer may be donated.
    tr.mark_variable(made)
    return made


def to_jax_array(a: Handle) -> Any:
    """Return the value of `a` as a JAX array, computing it if it is pending."""
    data = a._data
    if data is None:
        data = realize(a)
    if type(data) is np.ndarray:
        data = jax_from_numpy_nocopy(data, a._value.ctx)
        if a._trace is None and a._data is not None:
            # Else a program is being recorded that knows the array by its memory, or others may write to that.
            a._data = data
    return data


array_class: type[Handle] = Handle


def set_array_class(cls: type[Handle]) -> None:
    """Tell which class new arrays have (the public `NDArray`, defined above this module)."""
    global array_class
    array_class = cls


# `invoke_unary`, `invoke_binary` and `invoke` repeat their ends: a call of a shared one costs much of a recording.
def invoke_unary(call: Call, a: Handle) -> Any:
    """Record a one-input, one-result, deterministic call."""
    tr = local.trace
    try:
        va = a._value if a._trace is tr else leaf_of(tr, a)
        nx = tr.state.next.get((call, va))
        if nx is None:
            nx = tr.record_new_op(call, (va,))
    except TraceReplaced:
        return invoke(call, (a,))[0]
    tr.state = nx
    o = _new(array_class)
    o._trace = tr
    o._value = nx.out
    o._data = o._meta = None
    tr.handles.append(ref(o))
    if engine.naive:
        flush(tr)
    return o


def invoke_binary(call: Call, a: Handle, b: Handle) -> Any:
    """Record a two-input, one-result, deterministic call."""
    tr = local.trace
    try:
        va = a._value if a._trace is tr else leaf_of(tr, a)
        vb = b._value if b._trace is tr else leaf_of(tr, b)
        nx = tr.state.next.get((call, va, vb))
        if nx is None:
            nx = tr.record_new_op(call, (va, vb))
    except TraceReplaced:
        return invoke(call, (a, b))[0]
    tr.state = nx
    o = _new(array_class)
    o._trace = tr
    o._value = nx.out
    o._data = o._meta = None
    tr.handles.append(ref(o))
    if engine.naive:
        flush(tr)
    return o


def move_to_first_context(ins: Sequence[Handle]) -> Sequence[Handle]:
    """Switch to the trace on the context of the first input, and return the inputs with the others copied there.

    Dense arrays stand in for sparse ones, whose dense value may have been computed in a program of its own.
    """
    ins = [a.to_dense() if a.is_sparse else a for a in ins]  # type: ignore[attr-defined]
    ctx = ins[0]._value.ctx
    local.use_trace(ctx)
    return [a if a._value.ctx is ctx else copy_to_context(a, ctx) for a in ins]


def _flush_at_limit(tr: Trace) -> None:
    """Execute a trace that reached a bound of the engine."""
    engine.adjust_limits(tr)
    flush(tr)


def trace_call(call: Call, ins: Sequence[Handle], runtime: Sequence[float]) -> tuple[Trace, Any, Sequence[Handle]]:
    """Record a call and return the trace, the state reached, and the inputs as they were used."""
    # Each stale view among the inputs may need a new start.
    for _ in range(4 + len(ins)):
        tr = local.trace
        try:
            vals = values_in(tr, ins)
            nx = tr.state.next.get((call, *vals))
            if nx is None:
                nx = tr.record_new_op(call, vals)
        except TraceFull:
            _flush_at_limit(tr)
            continue
        except TraceReplaced:
            ins = move_to_first_context(ins)
            continue
        if runtime:
            tr.runtime.extend(runtime)
        if call.n_keys:
            tr.keys.append(rng_streams.draw(tr.ctx))
        tr.state = nx
        return tr, nx, ins
    raise MXNetError(f"{call!r}: could not place its inputs on one context")


def pending_array(tr: Trace, v: Value) -> Any:
    """Return a new handle for a pending value."""
    o = _new(array_class)
    o._trace, o._value, o._data, o._meta = tr, v, None, None
    tr.handles.append(ref(o))
    return o


def invoke(call: Call, ins: Sequence[Handle], runtime: Sequence[float] = ()) -> list[Any]:
    """Record a call on arrays and return its outputs, hidden ones included.

    Auxiliary inputs are overwritten with their next values. The inputs must be on one context; others are copied to
    that of the first.

    Args:
        call: operator with bound parameters.
        ins: input arrays.
        runtime: values of the runtime parameters, `()` for those stored in the call.

    Raises:
        MXNetError: the inputs do not fit the operator; nothing has been recorded then.
    """
    if call.is_simple and ins:
        tr = local.trace
        try:
            if len(ins) == 3:
                a, b, c = ins
                key: Any = (
                    call,
                    a._value if a._trace is tr else leaf_of(tr, a),
                    b._value if b._trace is tr else leaf_of(tr, b),
                    c._value if c._trace is tr else leaf_of(tr, c),
                )
            else:
                key = (call, *values_in(tr, ins))
            # Entering leaves moves the state, so it is read after the key is made.
            nx = tr.state.next.get(key)
        except TraceReplaced:
            nx = None
        if nx is not None:
            tr.state = nx
            o = _new(array_class)
            o._trace = tr
            o._value = nx.out
            o._data = o._meta = None
            tr.handles.append(ref(o))
            if engine.naive:
                flush(tr)
            return [o]
    if call.n_runtime and not runtime:
        runtime = call.op.runtime_values(call.params)
    if call.op.dynamic:
        return _run_eagerly(call, ins, runtime)
    if not ins:
        return invoke_nullary(call, local.trace.ctx, runtime)
    tr, nx, used = trace_call(call, ins, runtime)
    n = call.n_outputs
    outs = [pending_array(tr, v) for v in nx.outs[:n]]
    if call.n_aux:
        for i, v in zip(call.aux_positions(len(used)), nx.outs[n:], strict=True):
            rebind(ins[i], tr, v)
    if engine.naive or (tr.exposed and not tr.state.has_collective):
        flush(tr)
    return outs


def _run_eagerly(call: Call, ins: Sequence[Handle], runtime: Sequence[float]) -> list[Any]:
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
    o = object.__new__(array_class)
    o._trace = o._meta = None
    o._data = data
    o._value = aval(tuple(data.shape), np.dtype(data.dtype), ctx)
    return o


def invoke_nullary(call: Call, ctx: Context, runtime: Sequence[float] = ()) -> list[Any]:
    """Record a call without inputs on `ctx`."""
    for _ in range(2):
        tr = local.trace
        if tr.ctx is not ctx:
            device_of(ctx)
            tr = local.use_trace(ctx)
        try:
            nx = tr.state.next.get((call,))
            if nx is None:
                nx = tr.record_new_op(call, ())
        except TraceFull:
            _flush_at_limit(tr)
            continue
        if call.n_runtime:
            tr.runtime.extend(runtime or call.op.runtime_values(call.params))
        if call.n_keys:
            tr.keys.append(rng_streams.draw(ctx))
        tr.state = nx
        outs = [pending_array(tr, v) for v in nx.outs]
        if engine.naive:
            flush(tr)
        return outs
    raise MXNetError(f"{call!r}: the trace could not be extended")


def invoke_out(call: Call, ins: Sequence[Handle], outs: Sequence[Handle], runtime: Sequence[float] = ()) -> None:
    """Record a call whose outputs overwrite existing arrays (`out=`, `+=`, optimizer updates).

    Raises:
        MXNetError: an output has another shape than the array it would overwrite, or overwriting it would falsify
            gradients.
    """
    if call.op.dynamic:
        for o, r in zip(outs, invoke(call, ins, runtime), strict=False):
            assign(o, r, call.op.name)
        return
    if call.n_runtime and not runtime:
        runtime = call.op.runtime_values(call.params)
    if local.recording:
        for o in outs:
            check_writable(o, call.op.name)
    if not ins:
        for o, r in zip(outs, invoke_nullary(call, outs[0]._value.ctx, runtime), strict=False):
            assign(o, r, call.op.name)
        return
    tr, nx, _ = trace_call(call, ins, runtime)
    if call.n_results == 1 and len(outs) == 1 and outs[0]._value.aval is nx.out.aval:
        rebind(outs[0], tr, nx.out)
    else:
        _rebind_results(call, ins, outs, tr, nx.outs)
    if engine.naive or (tr.exposed and not tr.state.has_collective):
        flush(tr)


def _rebind_results(
    call: Call, ins: Sequence[Handle], outs: Sequence[Handle], tr: Trace, results: Sequence[Value]
) -> None:
    """Rename the outputs and the auxiliary inputs of a call to its results; what does not fit is cast."""
    n = call.n_outputs
    same, values = list(outs[:n]), list(results[: min(n, len(outs))])
    cast: list[tuple[Handle, Handle]] = []
    fits = [
        o._value.aval is v.aval and ((x := o._meta) is None or x.view_base is None)
        for o, v in zip(same, values, strict=True)
    ]
    if not all(fits):
        cast = [(o, pending_array(tr, v)) for o, v, fit in zip(same, values, fits, strict=True) if not fit]
        same, values = list(compress(same, fits)), list(compress(values, fits))
    if call.n_aux:
        same += [ins[i] for i in call.aux_offsets]
        values += results[n:]
    rebind_all(same, tr, values)
    for o, made in cast:
        assign(o, made, call.op.name)


def check_writable(a: Handle, what: str) -> None:
    """Raise if overwriting `a` now would falsify a recorded gradient."""
    if local.recording and is_tracked(a):
        raise MXNetError(
            f"{what}: in-place operations on an array that is part of the recorded graph are not supported inside "
            f"autograd.record(); write to a new array, or use autograd.pause()"
        )


def is_tracked(a: Handle) -> bool:
    """True if gradients can flow to `a`: it is a variable, or was computed from one while recording."""
    x = a._meta
    if x is not None and (x.grad_req is not None or x.tape_value is not None):
        return True
    if x is not None and x.view_base is not None and is_tracked(x.view_base):
        return True
    return a._data is None and a._trace is not None and a._value.tracked


def assign(o: Handle, value: Handle, what: str) -> None:
    """Make `o` hold what `value` holds now, cast and moved to the dtype and context of `o`; shapes must be equal."""
    if o.is_sparse:
        o.assign(value)  # type: ignore[attr-defined]
        return
    if o._value.shape != value._value.shape:
        raise ArgumentError(
            f"{what}: out has shape {o._value.shape}, the result has shape {value._value.shape}; they must agree"
        )
    if value._value.dtype != o._value.dtype:
        value = invoke_unary(OPS["Cast"].call(dtype=o._value.dtype.name), value)
    if value._value.ctx is not o._value.ctx:
        value = copy_to_context(value, o._value.ctx, o._data)
    x = o._meta
    if x is not None and x.view_base is not None:
        write_view(x.view_base, x.view_ops, value)
        return
    if value is o:
        return
    if o._value.ctx.mesh is not None and o._data is not None:
        spec = spec_of(o._data)
        if spec is not None and any(spec) and (value._data is None or spec_of(value._data) != spec):
            value = invoke_unary(OPS["_contrib_sharding_constraint"].call(spec=str(spec)), value)
    if value._data is None and value._trace is None:
        # A stale view: reading it may execute the trace, so it comes before the trace is looked at.
        realize(value, local.trace)
    tr = local.trace if local.trace.ctx is o._value.ctx else local.use_trace(o._value.ctx)
    if value._data is not None and value._trace is not tr and not (local.recording and is_tracked(value)):
        # The value is concrete: sharing the immutable array is enough.
        if o._data is None and o._trace is not None:
            o._trace = None
        memory = exposed_to_write(o)
        if memory is None:
            o._data, o._trace = value._data, None
        else:
            memory.write(value._data)
        invalidate_views(o)
        return
    v = value._value if value._trace is tr else leaf_of(tr, value)
    rebind(o, tr, v)
    if tr.exposed and not tr.state.has_collective:
        flush(tr)


def rebind(o: Handle, tr: Trace, v: Value) -> None:
    """Rename `o` to the value `v` of the current trace `tr`; of the same shape, dtype and context."""
    x = o._meta
    if x is not None and x.view_base is not None:
        write_view(x.view_base, x.view_ops, pending_array(tr, v))
        return
    if o._data is not None:
        if o._trace is tr:
            tr.overwritten_by[o._value] = ref(o)
        else:
            tr.dead_buffers.append(o._data)
            tr.dead_avals.append(v.aval)
        o._data = None
        tr.handles.append(ref(o))
    elif o._trace is not tr:
        if o._trace is not None and o._trace.is_recyclable:
            tr.replaced = o._trace
        tr.handles.append(ref(o))
    if x is not None:
        if x.exposed is not None and exposed_to_write(o) is not None:
            tr.exposed.append(ref(o))
        o._data = None
    o._trace, o._value = tr, v
    if x is not None:
        invalidate_views(o)
        if x.grad_req is not None and (local.record_depth or local.recording):
            tr.mark_variable(o)


def rebind_all(handles: Sequence[Handle], tr: Trace, values: Sequence[Value]) -> None:
    """Rename many arrays to values of the current trace, as `rebind` for each."""
    add, overwritten, marks = tr.handles.append, tr.overwritten_by, bool(local.record_depth or local.recording)
    if len(handles) > _MANY and not marks and _rebind_list(handles, tr, values):
        return
    for o, v in zip(handles, values, strict=True):
        x, before = o._meta, o._trace
        if x is not None:
            if x.view_base is not None or x.exposed is not None or x.views or (marks and x.grad_req is not None):
                rebind(o, tr, v)
                continue
            x.tape_value = x.error = None
        if before is tr:
            if o._data is not None:
                overwritten[o._value] = r = ref(o)
                add(r)
                o._data = None
        else:
            if o._data is not None:
                tr.dead_buffers.append(o._data)
                tr.dead_avals.append(v.aval)
                o._data = None
            elif before is not None and before.is_recyclable:
                tr.replaced = before
            add(ref(o))
            o._trace = tr
        o._value = v


def _rebind_list(handles: Sequence[Handle], tr: Trace, values: Sequence[Value]) -> bool:
    """Rename many arrays if all of them entered the current trace, or none did and none has a value; else False.

    The first is so with weights and their states, the second with gradients that nobody has read.
    """
    metas = [x for o in handles if (x := o._meta) is not None]
    if any([x.view_base is not None or x.exposed is not None or x.views for x in metas]):
        return False
    traces, pending = {o._trace for o in handles}, [o._data is None for o in handles]
    if len(traces) > 1:
        return False
    before = traces.pop()
    if before is tr and True not in pending:
        entered = dict(zip([o._value for o in handles], map(ref, handles), strict=True))
        if len(entered) < len(handles):
            return False
        tr.overwritten_by.update(entered)
        tr.handles += entered.values()
        for o, v in zip(handles, values, strict=True):
            o._data, o._value = None, v
    elif before is not tr and False not in pending and len(set(map(id, handles))) == len(handles):
        if before is not None and before.is_recyclable:
            tr.replaced = before
        tr.handles += map(ref, handles)
        for o, v in zip(handles, values, strict=True):
            o._trace, o._value = tr, v
    else:
        return False
    for x in metas:
        x.tape_value = x.error = None
    return True


def copy_buffer_to(a: Handle, ctx: Context, like: Any = None) -> Any:
    """Return the array of `a` copied to `ctx`, on a mesh cut as the JAX array `like` is."""
    data = a._data if a._data is not None else realize(a)
    if type(data) is np.ndarray:
        data = jax_from_numpy_nocopy(data, a._value.ctx)  # `device_put` would copy memory that anybody may change
    return device_put(data, ctx, like)


def record_copy(source: Handle, copy: Handle) -> None:
    """Record that `copy`, on another context, is the same value as the tracked `source`."""
    x = source._meta
    node = x.tape_value if x is not None else None
    if node is None:
        node = TapeValue(source._value.aval, realize(source) if source._data is None else source._data)
        if x is not None and x.grad_req is not None:
            node.variable, node.req = source, x.grad_req
    out = TapeValue(copy._value.aval, copy._data)
    TapeEntry(OPS["_copy"].call(), [node], [out], [], [])
    copy._extra().tape_value = out


def copy_to_context(a: Handle, ctx: Context, like: Any = None) -> Any:
    """Return `a` on another context, on a mesh cut as the JAX array `like` is; the copy is differentiable."""
    device_of(ctx)
    o = _new(array_class)
    tracked = local.recording and is_tracked(a)
    o._data = copy_buffer_to(a, ctx, like)
    o._trace, o._meta = None, None
    o._value = aval(a._value.shape, a._value.dtype, ctx)
    if tracked:
        record_copy(a, o)
    return o


def _dynamic_window(shape: tuple[int, ...], lens: Call) -> tuple[tuple[int, ...], tuple[float, ...]] | None:
    """Sizes and starts of a window that is one box within `shape`; None for what else `_basic_slice` shows."""
    p = lens.params
    rest = shape[len(p["begin"]) :]
    start, end = (*p["begin"], *(0 for _ in rest)), (*p["end"], *rest)
    size = tuple(e - b for b, e in zip(start, end, strict=True))
    if any(s != 1 for s in p["step"]) or min(size, default=0) < 1 or max(start) >= FLOAT32_EXACT_INTS:
        return None
    return size, tuple(map(float, start))


def read_view_op(view_op: Call, base: Handle) -> Any:
    """Return what a lens shows of an array: one program serves for all places of its window."""
    moving = _dynamic_window(base._value.shape, view_op) if view_op.op.traits.is_window else None
    if moving is None:
        return invoke_unary(view_op, base)
    size, start = moving
    p = view_op.params
    call = OPS["_window"].call(size=size, start=start, squeeze=p["squeeze"], zero_dim=p["zero_dim"])
    return invoke(call, (base,), start)[0]


def write_view_op(lens: Call, array: Handle, value: Handle) -> Any:
    """Return an array with what `lens`, a `_basic_slice`, shows of it replaced by `value`."""
    p = lens.params
    moving = _dynamic_window(array._value.shape, lens)
    if moving is None:
        window = {n: p[n] for n in ("begin", "end", "step", "squeeze")}
        return invoke_binary(OPS["_basic_slice_assign"].call(**window), array, value)
    size, start = moving
    call = OPS["_window_assign"].call(size=size, start=start, squeeze=p["squeeze"])
    return invoke(call, (array, value), start)[0]


def read_view(root: Handle, window: Sequence[Call]) -> Any:
    """Return what the lenses of `view_ops` show of `view_base`, through which no gradient flows."""
    with TapePaused():
        value = root
        for lens in window:
            value = read_view_op(lens, value)
    return value


def write_view(root: Handle, window: Sequence[Call], value: Handle) -> None:
    """Overwrite what `view_ops` shows of `view_base` with `value` (same shape)."""
    check_writable(root, "assignment through a view")
    if not window:
        assign(root, value, "assignment")
        return
    shown = [root]
    for lens in window[:-1]:
        shown.append(read_view_op(lens, shown[-1]))
    for lens, array in zip(reversed(window), reversed(shown), strict=True):
        if lens.op.traits.is_window:
            value = write_view_op(lens, array, value)
        else:
            value = invoke_unary(OPS["_np_reshape"].call(newshape=array._value.shape), value)
    assign(root, value, "assignment through a view")
