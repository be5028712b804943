"""The autograd tape: backward passes, and recorded steps that outlive their flush.

While a recording is pending, the tape is the trie chain itself. When it is flushed before its backward, the steps that
a live array depends on are kept as `TapeEntry` objects over immutable values; a later backward enters them into a
trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..compile.devices import device_put
from ..core.context import Context
from ..core.errors import ArgumentError, MXNetError
from ..graph.gradient import BackwardPlan, GradTargets, backward_path, grad_targets_of, tape_steps, variables_of
from ..graph.program_call import GradCall
from ..graph.trie import BACKWARD, OP, REENTER, State, Value, aval, steps_of, trie
from ..op.registry import OPS, Op
from .execute import flush
from .handle import (
    assign,
    copy_to_context,
    invoke_binary,
    is_tracked,
    leaf_of,
    pending_array,
    rebind_all,
    record_copy,
)
from .recorder import Handle, Trace, TraceReplaced, engine, local, user_line
from .saved_tape import TapeEntry, TapeValue

# Called after each backward pass that stored gradients: wrappers of networks exchange them here.
post_backward_hooks: list[Callable[[], None]] = []


def _entries_to_reenter(tr: Trace) -> Iterator[TapeEntry]:
    """Yield, inputs first, the entries that the saved values of a trace depend on and that were not entered yet."""
    done: set[TapeEntry] = set(tr.reentered_entries)
    stack: list[tuple[TapeEntry, bool]] = [
        (n.entry, False) for n in reversed(list(tr.tape_value_of_leaf.values())) if n.entry
    ]
    while stack:
        e, expanded = stack.pop()
        if e in done or e.freed:
            continue
        if expanded:
            done.add(e)
            yield e
        else:
            stack.append((e, True))
            stack.extend((n.entry, False) for n in e.ins if n.entry is not None)


def reenter_saved(tr: Trace) -> None:
    """Enter the earlier recorded steps behind the saved values of a trace once more."""
    entries = list(_entries_to_reenter(tr))
    for e in entries:
        # What the steps read enters with its saved value first, so that nothing is computed forward again.
        for n in e.ins:
            _leaf_for(tr, n)
    for e in entries:
        ins = tuple(tr.leaf_of_tape_value[n] for n in e.ins)
        outs = tuple(tr.leaf_of_tape_value.get(n) for n in e.outs)
        key = (REENTER, e.call, ins, outs)
        st = tr.state
        nx = st.next.get(key)
        if nx is None:
            made = State(st, REENTER, e.call, ins, tr.ctx)
            made.set_results(tuple(n.aval for n in e.outs), True)
            made.outs = tuple(old or new for old, new in zip(outs, made.outs, strict=True))
            made.out = made.outs[0]
            nx = trie.add(st, key, made)
        tr.keys.extend(e.keys)
        tr.runtime.extend(e.runtime)
        tr.state = nx
        tr.reentered_entries.append(e)
        for n, v in zip(e.outs, nx.outs, strict=True):
            tr.leaf_of_tape_value.setdefault(n, v)


def _leaf_for(tr: Trace, n: TapeValue) -> Value:
    v = tr.leaf_of_tape_value.get(n)
    if v is not None:
        return v
    data, like = n.data, n.aval
    if like.ctx is not tr.ctx:
        data, like = device_put(data, tr.ctx), aval(like.shape, like.dtype, tr.ctx)
    if n.variable is not None:
        a = n.variable
        if a._trace is tr and a._data is n.data:
            v = a._value
        else:
            v = tr.add_variable_leaf(a, n.req, data, like)
    elif n.entry is not None and not n.entry.freed:
        v = tr.add_leaf(data, like, True)
        tr.tape_value_of_leaf[v] = n
    else:
        v = tr.add_leaf(data, like)
    tr.leaf_of_tape_value[n] = v
    return v


def heads_in_one_trace(
    heads: Sequence[Handle], head_grads: Sequence[Handle | None]
) -> tuple[Trace, tuple[Value, ...], tuple[Value | None, ...]]:
    """Bring heads and their gradients into one trace."""
    for _ in range(3):
        tr = local.trace
        try:
            vals = tuple([leaf_of(tr, h) for h in heads])
            return tr, vals, tuple([None if g is None else leaf_of(tr, g) for g in head_grads])
        except TraceReplaced:
            ctx = heads[0]._value.ctx
            local.use_trace(ctx)
            heads = [h if h._value.ctx is ctx else _copy_head(h, ctx) for h in heads]
            head_grads = [g if g is None or g._value.ctx is ctx else copy_to_context(g, ctx) for g in head_grads]
    raise MXNetError("backward: the heads cannot be brought to one context")


def _copy_head(h: Handle, ctx: Context) -> Handle:
    """Copy a head to another context, linked to what it was computed from although nothing is being recorded."""
    copy = copy_to_context(h, ctx)
    if copy._meta is None and is_tracked(h):
        record_copy(h, copy)
    return copy


def check_head_grads(what: str, heads: Sequence[Any], head_grads: Any) -> list[Any]:
    """Return the gradient of each head, None for ones; raises `ArgumentError` where one does not fit."""
    if head_grads is None:
        return [None] * len(heads)
    seeds: list[Any] = [head_grads] if isinstance(head_grads, Handle) else list(head_grads)
    if len(seeds) != len(heads):
        raise ArgumentError(f"{what}: {len(seeds)} head gradients for {len(heads)} heads; expected one each")
    for h, g in zip(heads, seeds, strict=True):
        if g is not None and (g._value.shape != h._value.shape or g._value.dtype != h._value.dtype):
            raise ArgumentError(
                f"{what}: head gradient {g._value.dtype}{list(g._value.shape)} does not match its head "
                f"{h._value.dtype}{list(h._value.shape)}"
            )
    return seeds


def _not_recorded(what: str) -> MXNetError:
    return MXNetError(
        f"{what}: the heads do not depend on any variable through recorded operations. Compute them inside "
        f"autograd.record() from arrays with attach_grad(); a graph is freed by its first backward unless "
        f"retain_graph=True"
    )


def _freed_entries(tr: Trace, path: Sequence[State]) -> list[TapeEntry]:
    """Return the earlier entries that AGAIN steps of `path` stand for."""
    ordinals = {s: i for i, s in enumerate(s for s in steps_of(tr.state) if s.kind == REENTER)}
    return [tr.reentered_entries[ordinals[s]] for s in path if s.kind == REENTER]


def backward(heads: Sequence[Handle], head_grads: Any = None, retain_graph: bool = False) -> None:
    """Compute the gradients of `heads` and store them in the `grad` of every variable they depend on.

    Args:
        heads: arrays computed while recording.
        head_grads: gradient of each head, None for ones.
        retain_graph: keep the recorded graph for another backward.

    Raises:
        MXNetError: no variable is reached; a head gradient does not fit.
    """
    given = check_head_grads("backward", heads, head_grads)
    for part, seeds in _split_by_context(heads, given):
        _retry_if_trace_replaced(lambda part=part, seeds=seeds: _backward(part, seeds, retain_graph), len(part))
    if post_backward_hooks:
        for act in list(post_backward_hooks):
            act()


def _split_by_context(
    heads: Sequence[Handle], seeds: Sequence[Handle | None]
) -> list[tuple[Sequence[Handle], Sequence[Handle | None]]]:
    """Part the heads by context if nothing connects the contexts, so that each keeps a program of its own."""
    contexts = dict.fromkeys(h._value.ctx for h in heads)
    if len(contexts) > 1:
        traces = [local.traces.get(c) for c in contexts]
        if all(h._trace is not None and h._trace is local.traces.get(h._value.ctx) for h in heads) and not any(
            tr is None or tr.tape_value_of_leaf for tr in traces
        ):
            pairs = list(zip(heads, seeds, strict=True))
            parts = [[(h, s) for h, s in pairs if h._value.ctx is c] for c in contexts]
            return [([h for h, _ in part], [s for _, s in part]) for part in parts]
    return [(heads, seeds)]


def _retry_if_trace_replaced(action: Callable[[], Any], views: int) -> Any:
    """Run `action` until it is not interrupted: reading a stale view may execute the trace that it works on."""
    for _ in range(4 + views):
        try:
            return action()
        except TraceReplaced:
            continue
    raise MXNetError("backward: its arrays could not be read in one piece")


def _backward(heads: Sequence[Handle], head_grads: Sequence[Handle | None], retain_graph: bool) -> None:
    tr, hv, sv = heads_in_one_trace(heads, head_grads)
    if tr.tape_value_of_leaf:
        reenter_saved(tr)
    route = _grad_targets_or_raise(tr, hv)
    if "function" in route.grad_reqs:
        for a, g in _backward_through_functions(heads, head_grads, retain_graph):
            _store_grad(a, g)
        return
    targets = [tr.variables[k] for k in route.handles]
    adds: tuple[Value | None, ...] = (None,) * len(targets)
    if "add" in route.grad_reqs:
        adds = tuple(
            leaf_of(tr, _grad_on_trace_context(a, tr)) if req == "add" else None
            for a, req in zip(targets, route.grad_reqs, strict=True)
        )
    nx = _record_backward(tr, route, hv, sv, adds, retain_graph)
    metas = [a._meta or a._extra() for a in targets]
    for x in metas:
        x.fresh_grad = True
    grads: list[Any] = [x.grad for x in metas]
    ctx = tr.ctx
    if all([not g.is_sparse and g._meta is None and g._value.ctx is ctx for g in grads]):
        rebind_all(grads, tr, nx.outs)
    else:
        _store_grads(tr, targets, nx.outs, route.row_ids)
    if engine.naive or (tr.exposed and not tr.state.has_collective):
        flush(tr)


def _store_grads(tr: Trace, targets: Sequence[Handle], found: Sequence[Value], row_ids: Sequence[Value | None]) -> None:
    """Give each variable its gradient, of whatever storage and on whatever context."""
    elsewhere, sparse, here, values = [], {}, [], []
    for a, v, ids in zip(targets, found, row_ids, strict=True):
        g = a._extra().grad
        assert g is not None
        if g.is_sparse:
            sparse.setdefault(id(a), (a, []))[1].append(
                (None if ids is None else pending_array(tr, ids), pending_array(tr, v))
            )
        elif g._value.ctx is tr.ctx and (g._meta is None or g._meta.view_base is None):
            here.append(g)
            values.append(v)
        else:
            elsewhere.append((g, pending_array(tr, v)))
    rebind_all(here, tr, values)
    for g, made in elsewhere:
        assign(g, made, "backward")
    for a, rows in sparse.values():
        _store_row_grad(a, rows)


def _store_row_grad(a: Handle, found: Sequence[tuple[Handle | None, Handle]]) -> None:
    """Hand a sparse gradient of `a` what was found: pairs (ids, rows), or its one dense gradient."""
    x = a._extra()
    gradient: Any = x.grad
    if found[0][0] is None:
        gradient.set_dense_grad(found[0][1], x.grad_req == "rows_add")
    else:
        gradient.set_row_grad(found, x.grad_req == "rows_add")


def _grad_targets_or_raise(tr: Trace, hv: tuple[Value, ...], by_row: bool = True) -> GradTargets:
    route = grad_targets_of(tr.state, hv, by_row)
    if not route.groups:
        raise _not_recorded("backward")
    return route


def _record_backward(
    tr: Trace,
    route: GradTargets,
    heads: tuple[Value, ...],
    head_grads: tuple[Value | None, ...],
    adds: Any,
    retain_graph: bool,
) -> State:
    """Record one backward step over `route`."""
    st = tr.state
    key = (BACKWARD, heads, head_grads, retain_graph, adds)
    nx = st.next.get(key)
    if nx is None:
        made = State(st, BACKWARD, None, (), tr.ctx)
        made.payload = BackwardPlan(
            heads, head_grads, route.groups, adds, retain_graph, route.path, route.needed_values
        )
        made.set_results(tuple(g[0].aval for g in route.groups), False)
        made.user_line = user_line()
        nx = trie.add(st, key, made)
    tr.state = nx
    if tr.reentered_entries and not retain_graph:
        for e in _freed_entries(tr, route.path):
            e.freed = True
    return nx


def _backward_through_functions(
    heads: Sequence[Handle], seeds: Sequence[Handle | None], retain_graph: bool
) -> list[tuple[Handle, Handle]]:
    """Return (variable, gradient) pairs of a graph with user-defined functions.

    The graph is cut at the outputs of each function: one pass reaches them, the function's own backward carries the
    gradients to its inputs, from where the next pass starts. Later functions come first, so that a function runs when
    all gradients of its outputs are known.
    """
    found: dict[int, tuple[Handle, Handle]] = {}
    waiting: dict[Any, dict[int, Handle]] = {}
    work: tuple[Sequence[Handle], Sequence[Handle | None]] | None = (heads, seeds)
    while work is not None:
        tr, hv, sv = heads_in_one_trace(*work)
        if tr.tape_value_of_leaf:
            reenter_saved(tr)
        route = _grad_targets_or_raise(tr, hv, by_row=False)
        targets = [tr.variables[k] for k in route.handles]
        # Passes may share steps, so only the last one frees what it used.
        last_pass = not waiting and all(a._extra().custom_function is None for a in targets)
        nx = _record_backward(tr, route, hv, sv, (None,) * len(targets), retain_graph or not last_pass)
        for a, g in zip(targets, [pending_array(tr, v) for v in nx.outs], strict=True):
            made = a._extra().custom_function
            if made is not None:
                at = waiting.setdefault(made[0], {})
                at[made[1]] = _sum(at[made[1]], g) if made[1] in at else g
            else:
                old = found.get(id(a))
                found[id(a)] = (a, g if old is None else _sum(old[1], g))
        work = None
        while waiting and work is None:
            last = max(waiting, key=lambda f: f.order)
            work = last.run_backward(waiting.pop(last))
    return list(found.values())


def _sum(a: Handle, b: Handle) -> Handle:
    return invoke_binary(OPS["elemwise_add"].call(), a, b)


def _store_grad(a: Handle, g: Handle) -> None:
    x = a._extra()
    x.fresh_grad = True
    assert x.grad is not None
    if x.grad.is_sparse:
        _store_row_grad(a, [(None, g)])
        return
    assign(x.grad, _sum(x.grad, g) if x.grad_req == "add" else g, "backward")


def _grad_on_trace_context(a: Handle, tr: Trace) -> Handle:
    g = a._extra().grad
    assert g is not None
    return g if g._value.ctx is tr.ctx else copy_to_context(g, tr.ctx)


def gradients(
    heads: Sequence[Handle], variables: Sequence[Handle], head_grads: Any, retain_graph: bool, create_graph: bool
) -> list[Any]:
    """Return the gradients of `heads` with respect to `variables`, differentiable themselves if `create_graph`.

    Raises:
        MXNetError: a variable is not reached from the heads.
    """
    given = check_head_grads("grad", heads, head_grads)
    return _retry_if_trace_replaced(
        lambda: _gradients(heads, variables, given, retain_graph, create_graph), len(variables)
    )


def _gradients(
    heads: Sequence[Handle],
    variables: Sequence[Handle],
    given: Sequence[Handle | None],
    retain_graph: bool,
    create_graph: bool,
) -> list[Any]:
    tr, hv, sv = heads_in_one_trace(heads, given)
    if tr.tape_value_of_leaf:
        reenter_saved(tr)
    own = [leaf_of(tr, a) for a in variables]
    st = tr.state
    if "function" in grad_targets_of(st, hv).grad_reqs:
        return _through_functions(heads, variables, given, retain_graph, create_graph)
    known = st.memo.get(variables_of)
    if known is None:
        known = st.memo[variables_of] = variables_of(steps_of(st))
    tv = tuple([_versions_of(tr, a, v, known) for a, v in zip(variables, own, strict=True)])
    key = ("grad" if create_graph else BACKWARD, hv, sv, retain_graph, tv)
    nx = st.next.get(key)
    if nx is None:
        nx = _record_gradient(tr, st, key, hv, sv, tv, retain_graph, create_graph)
    if nx.kind == OP:
        key_at, runtime_at = nx.payload
        tr.runtime.extend([tr.runtime[i] for i in runtime_at])
        tr.keys.extend([tr.keys[i] for i in key_at])
    elif tr.reentered_entries and not retain_graph:
        for e in _freed_entries(tr, nx.payload.path):
            e.freed = True
    tr.state = nx
    outs = [pending_array(tr, v) for v in nx.outs]
    if engine.naive:
        flush(tr)
    return outs


def _through_functions(
    heads: Sequence[Handle], variables: Sequence[Handle], seeds: Any, retain_graph: bool, create_graph: bool
) -> list[Any]:
    if create_graph:
        raise MXNetError("grad: create_graph=True cannot pass an autograd.Function: its backward is not recorded")
    found = {id(a): g for a, g in _backward_through_functions(heads, seeds, retain_graph)}
    for i, a in enumerate(variables):
        if id(a) not in found:
            raise MXNetError(f"grad: variable {i} is not reached from the heads through recorded operations")
    return [found[id(a)] for a in variables]


def _versions_of(tr: Trace, a: Handle, own: Value, known: dict[Value, tuple[int, int, str]]) -> tuple[Value, ...]:
    """Return the values under which `a` takes part in the recorded program: its present one and earlier ones."""
    found = {own}
    found.update(v for v, (at, _, _) in known.items() if tr.variables[at] is a)
    return tuple(sorted(found, key=lambda v: (v.state.depth if v.state else 0, v.index)))


def _record_gradient(
    tr: Trace, st: State, key: Any, hv: Any, sv: Any, tv: Any, retain_graph: bool, create_graph: bool
) -> State:
    entries = tape_steps(steps_of(st))
    path, need, reached = backward_path(entries, hv, [v for g in tv for v in g])
    for i, group in enumerate(tv):
        if not any(v in reached for v in group):
            raise MXNetError(f"grad: variable {i} is not reached from the heads through recorded operations")
    plan = BackwardPlan(hv, sv, tv, (None,) * len(tv), retain_graph or create_graph, path, need)
    made = State(st, BACKWARD, None, (), tr.ctx)
    made.payload = plan
    avals = tuple(g[0].aval for g in tv)
    made.set_results(avals, False)
    if create_graph:
        call = GradCall(made)
        made = State(st, OP, call, call.input_values, tr.ctx)
        made.payload = (call.key_positions, call.runtime_positions)
        made.set_results(avals, st.recording and any(v.tracked for v in call.input_values))
    made.user_line = user_line()
    return trie.add(st, key, made)


class RecordedOp(NamedTuple):
    """One recorded application of an operator."""

    op: Op
    params: dict[str, Any]
    ins: list[Any]
    outs: tuple[Value, ...]


def recorded_ops(x: Handle) -> tuple[list[RecordedOp], Value]:
    """Return the steps that `x` was computed by, in order, and the value that stands for `x`.

    Raises:
        MXNetError: `x` was not recorded, or with an operator that only this program knows.
    """
    if not is_tracked(x):
        raise MXNetError(
            "get_symbol: the array was not computed inside autograd.record() from arrays with attach_grad()"
        )
    tr, (head,), _ = heads_in_one_trace([x], [None])
    if tr.tape_value_of_leaf:
        reenter_saved(tr)
    steps = steps_of(tr.state)
    entries = tape_steps(steps)
    # A variable that entered several times, after each execution once, is one argument.
    first: dict[int, Value] = {}
    same = {v: first.setdefault(number, v) for v, (_, number, _) in variables_of(steps).items()}
    computed = {v for s in entries for v in s.outs}
    leaves = [v for s in entries for v in s.ins if v not in computed]
    path, _, _ = backward_path(entries, [head], leaves)
    found: list[RecordedOp] = []
    for s in reversed(path):
        call = s.call
        assert call is not None
        given = tr.runtime[s.n_runtime - call.n_runtime : s.n_runtime]
        params = {**call.params, **_runtime_values(call.op, call.params, given)}
        op = OPS.get(call.op.variant_of or call.op.name)
        if op is None:
            raise MXNetError(f"get_symbol: {call!r} has no symbol: it is a hybridized block or your own function")
        known = {k: v for k, v in params.items() if k in op.params}
        found.append(RecordedOp(op, known, [same.get(v, v) for v in s.ins], s.outs))
    return found, same.get(head, head)


def _runtime_values(op: Op, params: dict[str, Any], given: list[float]) -> dict[str, Any]:
    """The values of the runtime parameters of a call."""
    values, found = iter(given), {}
    for name in op.runtime:
        found[name] = tuple(next(values) for _ in params[name]) if op.params[name].vector else next(values)
    return found
