"""Execute graphs that cannot compile as one program: Python operators and unknown shapes run one by one.

What lies between them is compiled together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..core.context import Context
from ..core.errors import ArgumentError
from ..graph.interpreter import run
from ..graph.program import Instr
from ..ndarray import NDArray, invoke, zeros
from ..ndarray.custom_op import select_by_mask
from ..op.registry import OPS, Call
from ..op.subgraph import input_positions
from ..sparse import RecordingExecutor, needs_stepwise, run_program_stepwise
from .compose import SymbolBase
from .lowering import graph_call
from .node import Entry, Node, split_variables, topological
from .python_nodes import PythonNodeOp
from .subgraph import Subgraph, any_node, subgraphs_of


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


__all__ = ["EagerGraph", "execute", "needs_eager_fallback", "lower_or_fallback"]
