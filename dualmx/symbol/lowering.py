"""Lower a symbol to one call that the engine records and compiles.

A graph that cannot compile as one program, for Python operators or unknown shapes, runs node by node, and what lies
between these is compiled together.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from ..core.context import Context
from ..core.dtypes import as_dtype
from ..core.errors import ArgumentError, MXNetError
from ..core.knobs import MIRROR
from ..graph.infer import infer_shapes, is_known, merge, unknown_size
from ..graph.infer_dtype import infer_dtypes
from ..graph.interpreter import run
from ..graph.program import Instr, Program
from ..graph.program_call import ProgramCall
from ..ndarray import NDArray, invoke, zeros
from ..ndarray.custom_op import select_by_mask
from ..op.registry import OPS, Call, Op
from ..op.subgraph import BASES, N_GRAPHS, LoweredGraph, input_positions, scanned_inputs, shape_ties
from ..sparse import RecordingExecutor, needs_stepwise, run_program_stepwise
from .node import Entry, Node, SymbolBase, split_variables, topological
from .python_nodes import PythonNodeOp

Inferred = Mapping[str, Any]


class Subgraph:
    """A graph inside a node; its variables, in depth-first order, are fed by inputs of the node.

    Args:
        entries: its heads.
    """

    def __init__(self, entries: Sequence[Entry]):
        self.entries = tuple(entries)
        self.order = topological(self.entries)
        self.variables = [n for n in self.order if n.op is None]

    def body(self, train: bool) -> LoweredGraph:
        """Lower the graph for one mode."""

        call, _, _ = graph_call(SymbolBase(self.entries), train)
        number = {id(v): i for i, v in enumerate(self.variables)}
        arguments, states = split_variables(self.order)
        return LoweredGraph(call, tuple(number[id(v)] for v in (*arguments, *states)))


class SubgraphOp(Op):
    """`_foreach`, `_while_loop` or `_cond` with its graphs: the op of one node.

    Calls are those of the shared operator with lowered graphs as a parameter, so that equal graphs share programs.
    """

    def __init__(self, name: str, subgraphs: Sequence[Subgraph]):
        base = BASES[name]
        fields = {k: f for k, f in base.params.items() if k != "bodies"}
        super().__init__(name, base.fn, base.inputs, fields, outputs=base.outputs, complete=self._shapes,
                         complete_dtype=self._dtypes, key_name=base.key_name, train_name=base.train_name)  # fmt: skip
        self.base, self.subgraphs = base, tuple(subgraphs)

    def bind(self, params: Mapping[str, Any], train: bool = False) -> Call:
        """Return the call of the operator with its graphs lowered."""
        return self.base.bind({**params, "bodies": tuple(g.body(train) for g in self.subgraphs)}, train)

    def _shapes(self, p: Any, known: Inferred) -> dict[str, Any]:
        """Shapes of the inputs that follow from each other and from those of the outputs through the graphs."""
        found = dict(known)
        lengths = {known[f"data{i}"][0] for i in scanned_inputs(self.name, p) if known.get(f"data{i}")}
        length = max(lengths, default=0)

        def inner(position: int, shape: Any) -> Any:
            return shape[1:] if position in scanned_inputs(self.name, p) else shape

        def outer(position: int, shape: Any) -> Any:
            return (length, *shape) if position in scanned_inputs(self.name, p) and shape is not None else shape

        for graph, ins, heads in self._graph_inputs(p):
            given = {id(v): inner(i, found[f"data{i}"]) for v, i in zip(graph.variables, ins, strict=True)
                     if found.get(f"data{i}")}  # fmt: skip
            shapes = infer_shapes(graph.order, {k: s or None for k, s in given.items()})
            for v, i in zip(graph.variables, ins, strict=True):
                shape = outer(i, shapes.get((id(v), 0)))
                found[f"data{i}"] = _merged(found.get(f"data{i}"), shape)
            for (node, at), (tied, output) in zip(graph.entries, heads, strict=True):
                shape = shapes.get((id(node), at))
                if tied is not None:
                    found[f"data{tied}"] = _merged(found.get(f"data{tied}"), shape)
                    found[f"data{tied}"] = _merged(found[f"data{tied}"], known.get(_output_key(output)))
        return {k: s for k, s in found.items() if k.startswith("data") and s is not None}

    def _dtypes(self, p: Any, known: Inferred) -> dict[str, str]:
        """Dtypes of inputs and outputs that follow through the graphs."""
        found = dict(known)
        for graph, ins, heads in self._graph_inputs(p):
            given = {id(v): as_dtype(found[f"data{i}"]) for v, i in zip(graph.variables, ins, strict=True)
                     if f"data{i}" in found}  # fmt: skip
            dtypes: dict[Any, np.dtype] = infer_dtypes(graph.order, given)
            facts = [(f"data{i}", (id(v), 0)) for v, i in zip(graph.variables, ins, strict=True)]
            for (node, at), (tied, output) in zip(graph.entries, heads, strict=True):
                facts += [(f"data{tied}", (id(node), at))] if tied is not None else []
                facts += [(_output_key(output), (id(node), at))] if output is not None else []
            for name, key in facts:
                if key in dtypes:
                    found.setdefault(name, dtypes[key].name)
        return found

    def _graph_inputs(self, p: Any) -> Iterator[tuple[Subgraph, tuple[int, ...], list[tuple[int | None, int | None]]]]:
        """Each graph with the inputs of its variables, and per head: the input it is tied to, and its output."""
        last = len(self.subgraphs) - 1
        for which, graph in enumerate(self.subgraphs):
            computes = which == last or (self.name == "_cond" and which == 1)
            same = shape_ties(self.name, p)
            count = range(len(graph.entries))
            heads: list[tuple[int | None, int | None]] = [(same.get(i), i) if computes else (None, None) for i in count]
            yield graph, tuple(input_positions(self.name, p, which)), heads


def _output_key(number: int | None) -> str:
    return f"output{number}" if number else "output"


def _merged(old: Any, new: Any) -> Any:
    try:
        return merge(old, new)
    except ValueError:
        raise MXNetError(f"a loop or branch needs shape {new} where {old} is given") from None


def wiring_error(name: str, p: Any, n_inputs: int, graphs: Sequence[Subgraph]) -> str | None:
    """Say what is wrong with a node of these parameters, inputs and graphs; `None` if nothing is."""
    if len(graphs) != N_GRAPHS[name]:
        return f"it has {len(graphs)} subgraphs, expected {N_GRAPHS[name]}"
    if p.num_args != n_inputs + len(graphs):
        return f"num_args={p.num_args}, but it has {n_inputs} inputs and {len(graphs)} subgraphs"
    for which, graph in enumerate(graphs):
        wires = input_positions(name, p, which)
        if len(wires) != len(graph.variables) or any(not 0 <= w < n_inputs for w in wires):
            return f"subgraph {which} has {len(graph.variables)} variables, its inputs are wired to them as {wires}"
        computes = which == len(graphs) - 1 or (name == "_cond" and which == 1)
        if len(graph.entries) != (p.num_outputs if computes else 1):
            return f"subgraph {which} has {len(graph.entries)} outputs, expected {p.num_outputs if computes else 1}"
    if name == "_foreach" and sorted((*p.in_data_locs, *p.in_state_locs, *p.remain_locs)) != list(range(n_inputs)):
        return "in_data_locs, in_state_locs and remain_locs do not name every variable of the subgraph once"
    if name == "_while_loop" and any(not 0 <= i < len(p.func_input_locs) for i in p.func_var_locs):
        return f"func_var_locs={p.func_var_locs} are not variables of the subgraph"
    carried = {"_foreach": "in_state_locs", "_while_loop": "func_var_locs"}.get(name)
    if carried and p.num_outputs - p.num_out_data != len(getattr(p, carried)):
        return f"num_outputs={p.num_outputs}, num_out_data={p.num_out_data} do not fit {carried}"
    return None


def subgraphs_of(node: Node) -> tuple[Subgraph, ...]:
    """The graphs inside a node."""
    return node.op.subgraphs if isinstance(node.op, SubgraphOp) else ()


def state_positions(node: Node) -> list[int]:
    """Positions of the inputs that are states, of the node itself or of a node in its graphs."""
    if not isinstance(node.op, SubgraphOp):
        return node.aux_positions()
    found = dict[int, None]()
    for which, graph in enumerate(node.op.subgraphs):
        states = {id(inner.inputs[at][0]) for inner in graph.order for at in state_positions(inner)}
        wires = input_positions(node.op.name, SimpleNamespace(**node.params), which)
        found.update((i, None) for v, i in zip(graph.variables, wires, strict=True) if id(v) in states)
    return sorted(found)


def any_node(entries: Sequence[Entry], test: Callable[[Node], bool]) -> bool:
    """True if `test` is true for a node of the graph below `entries`, subgraphs included."""
    return any(
        test(node) or any(any_node(g.entries, test) for g in subgraphs_of(node)) for node in topological(entries)
    )


EntryKey: TypeAlias = tuple[int, int]  # a node, by its identity, and the number of its output

_MAX_PROGRAMS = 256  # lowered programs kept, so that binding the same architecture again compiles nothing
_KEPT_CALLS = 4096
_programs: OrderedDict[Any, ProgramCall] = OrderedDict()
_calls: dict[Any, Call] = {}
_lock = Lock()


def graph_call(symbol: SymbolBase, train: bool, states_only: bool = False) -> tuple[ProgramCall, list[str], list[str]]:
    """Lower the graph of `symbol` to one `Call`.

    Inputs of the call are the arguments, then the auxiliary states, in the order of `list_arguments` and
    `list_auxiliary_states`; new values of auxiliary states are written back by `ndarray.invoke`. Nodes such as
    `zeros(shape=(0, 3))` get the dimensions that follow from the shapes of the inputs when the call is compiled.

    Args:
        symbol: what to run; all its outputs are returned.
        train: training mode, frozen into the call.
        states_only: write nothing but auxiliary states; operators leave other inputs as they are.

    Returns:
        The call, the names of the arguments, the names of the auxiliary states.
    """
    order = topological(symbol.entries)
    arguments, states = split_variables(order)
    variables = [*arguments, *states]
    held = {id(v) for v in states}

    def is_written(node: Node, state: Node) -> bool:
        return id(state) in held or (node.op is not None and node.op.variadic) or not states_only

    nodes = [n for n in order if n.op is not None]
    outputs = [(id(node), i) for node, i in symbol.entries]
    program = program_of_nodes(nodes, [(id(v), 0) for v in variables], outputs, train, is_written=is_written)
    unfinished = {at: n for at, n in enumerate(nodes) if not n.inputs and has_unknown_shape(n)}

    def complete(inputs: Sequence[Any]) -> Program:
        found = infer_shapes(order, {id(v): tuple(a.shape) for v, a in zip(variables, inputs, strict=True)})
        steps: list[Any] = list(program.steps)
        for at, node in unfinished.items():
            shape = found.get((id(node), 0))
            if not is_known(shape):
                raise MXNetError(
                    f"node {node.name!r}: shape={node.params['shape']} has unknown dimensions that do not follow from "
                    f"the graph; write the shape out"
                )
            steps[at] = steps[at]._replace(call=call_with_constants(node, train, shape))
        return program._replace(steps=tuple(steps))

    name = f"symbol {symbol.entries[0][0].name}" if symbol.entries else "symbol"
    call = _interned(
        (program, train, *((at, node.name) for at, node in unfinished.items())),
        lambda: ProgramCall(name, program, train, complete if unfinished else None),
    )
    return call, [v.name for v in arguments], [v.name for v in states]


def program_of_nodes(
    nodes: Sequence[Node],
    inputs: Sequence[EntryKey],
    outputs: Sequence[EntryKey],
    train: bool,
    shape_of: Callable[[Node], Any] = lambda node: None,
    is_written: Callable[[Node, Node], bool] = lambda node, state: True,
) -> Program:
    """Return the program of operators, one step each, that reads what `inputs` name and yields `outputs`.

    Args:
        shape_of: the shape of what a node without inputs makes, None for that in its parameters.
        is_written: whether a node gives a variable among its auxiliary inputs its next value.
    """
    slots: dict[EntryKey, int] = {key: i for i, key in enumerate(inputs)}
    numbers = dict(slots)
    steps: list[Instr] = []
    written: dict[int, int] = {}
    n_slots, n_keys = len(slots), 0
    for node in nodes:
        call = call_with_constants(node, train, shape_of(node))
        outs = tuple(range(n_slots, n_slots + call.n_results))
        ins = tuple(slots[id(child), i] for child, i in node.inputs)
        steps.append(Instr(call, ins, outs, train and is_mirrored(node), n_keys))
        n_slots, n_keys = n_slots + call.n_results, n_keys + call.n_keys
        slots.update(((id(node), i), outs[i]) for i in range(call.n_outputs))
        for at, slot in zip(call.aux_offsets, outs[call.n_outputs :], strict=True):
            state, i = node.inputs[at]
            if state.op is None and is_written(node, state):
                written[numbers[id(state), i]] = slots[id(state), i] = slot
    results = (*(slots[key] for key in outputs), *written.values())
    return Program(tuple(steps), len(inputs), results, tuple(written))


def is_mirrored(node: Node) -> bool:
    """True if the backward pass recomputes the results of a node: by its attribute or the environment."""
    assert node.op is not None
    if node.attrs.get("__force_mirroring__", "").lower() in ("true", "1"):
        return True
    return MIRROR.read() == "1" and not node.op.traits.keeps_result


def has_unknown_shape(node: Node) -> bool:
    """True if a node makes an array of a shape with unknown dimensions."""
    shape = node.params.get("shape")
    return isinstance(shape, tuple) and unknown_size() in shape


def _interned(key: Any, make: Callable[[], ProgramCall]) -> ProgramCall:
    with _lock:
        if key in _programs:
            _programs.move_to_end(key)
            return _programs[key]
    made = make()
    with _lock:
        call = _programs.setdefault(key, made)
        while len(_programs) > _MAX_PROGRAMS:
            _programs.popitem(last=False)
    return call


def call_with_constants(node: Node, train: bool, shape: tuple[int, ...] | None = None) -> Call:
    """Return the call of a node in the given mode, with runtime scalars fixed to the node's values."""
    assert node.op is not None
    params = dict(node.params) if shape is None else {**node.params, "shape": shape}
    runtime = [n for n in params if node.op.params[n].runtime]
    call = node.op.bind(params, train)
    if not runtime:
        return call
    key = (call, tuple(repr(params[n]) for n in runtime))
    if len(_calls) > _KEPT_CALLS:
        _calls.clear()
    return _calls.setdefault(key, Call(node.op, params, call.train))


class EagerGraph:
    """A graph as a sequence of recorded operators, used instead of the call of `graph_call`.

    Args:
        entries: the heads.
        train: the mode.
        made: where operators written in Python are kept; without, they are made anew for every run.
    """

    def __init__(self, entries: Sequence[Entry], train: bool, made: dict[Any, Any] | None):
        self.entries, self.train, self.host_operators = tuple(entries), train, made
        order = topological(entries)
        arguments, states = split_variables(order)
        self.variables = [*arguments, *states]
        self.call = graph_call(SymbolBase(entries), train)[0]
        self.infer, self.aux_positions, self.n_outputs = self.call.infer, self.call.aux_positions, self.call.n_outputs
        nodes = [n for n in order if n.op is not None]
        outs = [step.outs for step in self.call.program.steps if isinstance(step, Instr)]
        self._nodes = dict(zip(outs, nodes, strict=True))
        self._graphs: dict[int, tuple[EagerGraph, list[int]]] = {}

    def run(self, inputs: Sequence[NDArray], ctx: Context) -> list[NDArray]:
        """Run on arguments and states in the order of the lists; states are written back."""
        with ctx:
            return run(self.call.program_for(inputs), inputs, _NodeExecutor(self, ctx))[: self.n_outputs]

    def record(self, step: Instr, ins: list[NDArray], ctx: Context) -> Sequence[NDArray] | None:
        """Run the node of a step that needs Python; None for others."""
        node = self._nodes[step.outs]
        assert node.op is not None
        if isinstance(node.op, PythonNodeOp):
            return node.op.spec.run(ins, self._operator(node, ins))
        if node.op.traits.is_mask_selection:
            return select_by_mask(node.params, ins)
        graphs = subgraphs_of(node)
        if graphs and any(needs_eager_fallback(g.entries) for g in graphs):
            return CONTROL_FLOW_RULES[node.op.name](self, node, graphs, ins, ctx)
        return None

    def _operator(self, node: Node, ins: list[NDArray]) -> Any:
        if self.host_operators is None:
            return None
        assert isinstance(node.op, PythonNodeOp)
        key = (id(node), *((a.shape, a.dtype, a.context) for a in ins))
        if key not in self.host_operators:
            self.host_operators[key] = node.op.spec.create(ins)
        return self.host_operators[key]

    def run_graph(self, graph: Subgraph, values: Sequence[NDArray], ctx: Context) -> list[NDArray]:
        """Run a graph inside a node on the values of its variables."""
        if id(graph) not in self._graphs:
            steps = EagerGraph(graph.entries, self.train, self.host_operators)
            number = {id(v): i for i, v in enumerate(graph.variables)}
            self._graphs[id(graph)] = steps, [number[id(v)] for v in steps.variables]
        steps, order = self._graphs[id(graph)]
        return steps.run([values[i] for i in order], ctx)


class _NodeExecutor(RecordingExecutor):
    """Records what it can, and leaves the rest to a graph."""

    def __init__(self, graph: EagerGraph, ctx: Context):
        super().__init__(ctx)
        self.graph = graph

    def record(self, step: Instr, ins: list[NDArray]) -> Sequence[NDArray]:
        outs = self.graph.record(step, ins, self.ctx)
        return super().record(step, ins) if outs is None else outs


def _stack(arrays: Sequence[NDArray]) -> NDArray:
    return invoke(OPS["stack"].call(axis=0, num_args=len(arrays)), list(arrays))[0]


def _foreach(
    eager: EagerGraph, node: Node, graphs: Sequence[Subgraph], ins: list[NDArray], ctx: Context
) -> list[NDArray]:
    p: Any = SimpleNamespace(**node.params)
    n_data, n_out, wires = len(p.in_data_locs), p.num_out_data, input_positions("_foreach", p, 0)
    env, kept = list(ins), list[list[NDArray]]()
    lengths = {len(a) for a in ins[:n_data]}
    if len(lengths) != 1:
        raise ArgumentError(f"_foreach: data have {sorted(lengths)} steps: expected arrays of one length")
    for t in range(lengths.pop()):
        env[:n_data] = [a[t] for a in ins[:n_data]]
        outs = eager.run_graph(graphs[0], [env[i] for i in wires], ctx)
        kept.append(outs[:n_out])
        env[n_data : n_data + len(outs) - n_out] = outs[n_out:]
    states = env[n_data : n_data + p.num_outputs - n_out]
    return [*(_stack(column) for column in zip(*kept, strict=True)), *states]


def _while_loop(
    eager: EagerGraph, node: Node, graphs: Sequence[Subgraph], ins: list[NDArray], ctx: Context
) -> list[NDArray]:
    p: Any = SimpleNamespace(**node.params)
    env, kept = list(ins), list[list[NDArray]]()
    places = [p.func_input_locs[i] for i in p.func_var_locs]
    shapes = node.call.infer(tuple((a.shape, np.dtype(a.dtype)) for a in ins))
    while len(kept) < p.max_iterations:
        if not eager.run_graph(graphs[0], [env[i] for i in p.cond_input_locs], ctx)[0].asscalar():
            break
        outs = eager.run_graph(graphs[1], [env[i] for i in p.func_input_locs], ctx)
        kept.append(outs[: p.num_out_data])
        for at, value in zip(places, outs[p.num_out_data :], strict=True):
            env[at] = value
    padded = []
    for i, (shape, dtype) in enumerate(shapes[: p.num_out_data]):
        rest = [zeros(shape[1:], ctx=ctx, dtype=dtype)] * (p.max_iterations - len(kept))
        padded.append(_stack([*(step[i] for step in kept), *rest]))
    return [*padded, *(env[at] for at in places)]


def _cond(eager: EagerGraph, node: Node, graphs: Sequence[Subgraph], ins: list[NDArray], ctx: Context) -> list[NDArray]:
    p: Any = SimpleNamespace(**node.params)
    verdict = eager.run_graph(graphs[0], [ins[i] for i in p.cond_input_locs], ctx)[0].asscalar()
    wires = p.then_input_locs if verdict else p.else_input_locs
    return eager.run_graph(graphs[1 if verdict else 2], [ins[i] for i in wires], ctx)


CONTROL_FLOW_RULES: dict[str, Callable[..., list[NDArray]]] = {
    "_foreach": _foreach,
    "_while_loop": _while_loop,
    "_cond": _cond,
}


def needs_eager_fallback(entries: Sequence[Entry]) -> bool:
    """True if the graph has an operator written in Python, or one whose result shapes depend on values."""
    return any_node(
        entries, lambda node: isinstance(node.op, PythonNodeOp) or (node.op is not None and node.op.dynamic)
    )


def lower_or_fallback(
    symbol: SymbolBase, train: bool, states_only: bool = False, made: dict[Any, Any] | None = None
) -> Call | EagerGraph:
    """Return what runs the graph: one call, or steps if Python is needed in between."""
    if needs_eager_fallback(symbol.entries):
        return EagerGraph(symbol.entries, train, made)
    return graph_call(symbol, train, states_only)[0]


def execute(program: Call | EagerGraph, inputs: Sequence[NDArray], ctx: Context) -> list[NDArray]:
    """Run what `lower_or_fallback` returned."""
    if isinstance(program, EagerGraph):
        return program.run(inputs, ctx)
    if needs_stepwise(program, inputs):
        return run_program_stepwise(program, inputs)
    if inputs:
        return invoke(program, list(inputs))
    with ctx:
        return invoke(program, [])


__all__ = [
    "EagerGraph", "EntryKey", "Subgraph", "SubgraphOp", "execute", "graph_call", "has_unknown_shape",
    "lower_or_fallback", "needs_eager_fallback", "program_of_nodes", "state_positions", "subgraphs_of", "wiring_error",
]  # fmt: skip
