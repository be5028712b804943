"""Subgraphs of control-flow nodes, and inference through them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..core.dtypes import as_dtype
from ..core.errors import MXNetError
from ..graph.infer import infer_shapes, merge
from ..graph.infer_dtype import infer_dtypes
from ..op.registry import Call, Op
from ..op.subgraph import BASES, N_GRAPHS, LoweredGraph, input_positions, scanned_inputs, shape_ties
from .node import Entry, Node, split_variables, topological

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
        from .compose import SymbolBase
        from .lowering import graph_call

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
        super().__init__(name, base.fn, base.inputs, fields, base.outputs, complete=self._shapes,
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


__all__ = ["wiring_error", "state_positions", "Subgraph", "SubgraphOp", "any_node", "subgraphs_of"]
