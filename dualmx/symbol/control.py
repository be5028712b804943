"""Control flow over symbols: `foreach`, `while_loop` and `cond`, each one node with its subgraphs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from ..core.argcheck import integer
from ..core.errors import ArgumentError, ArgumentTypeError
from ..op.registry import OPS
from .attributes import AttrScope, NameManager, json_key, param_text
from .lowering import Subgraph, SubgraphOp
from .node import Entry, Node, create_entries, single_entry, topological
from .symbol import Symbol, var

SCOPE = "__subgraph_name__"
_counters: dict[str, itertools.count[int]] = {}


def _flatten(what: str, value: Any) -> tuple[list[Entry], Any]:
    """The entries of a nested list of symbols and its structure: 0 for a symbol, a list of structures for a list."""
    if isinstance(value, Symbol):
        return [single_entry(value, what)], 0
    if not isinstance(value, (list, tuple)):
        kind = type(value).__name__
        raise ArgumentTypeError(f"{what} is {value!r}, a {kind}: expected a Symbol or a nested list of them")
    parts = [_flatten(what, part) for part in value]
    return [entry for entries, _ in parts for entry in entries], [shape for _, shape in parts]


def _unflatten(entries: list[Entry], shape: Any) -> Any:
    """Nest symbols of `entries` as `shape` says, removing them from the list."""
    return Symbol([entries.pop(0)]) if shape == 0 else [_unflatten(entries, inner) for inner in shape]


def _unique(name: str) -> str:
    outer = AttrScope.current.get(None).get(SCOPE, "")
    full = f"{outer}${name}" if outer else name
    return f"{full}{next(_counters.setdefault(full, itertools.count()))}"


class _SubgraphTracer:
    """Collects what a graph reads from outside, in the order in which the node will have its inputs."""

    def __init__(self, inputs: Sequence[Entry] = ()):
        self.inputs, self.first = list(inputs), len(inputs)

    def _position(self, entry: Entry) -> int:
        for i, (node, index) in enumerate(self.inputs):
            if i >= self.first and node is entry[0] and index == entry[1]:
                return i
        self.inputs.append(entry)
        return len(self.inputs) - 1

    def graph(self, scope: str, heads: Sequence[Entry], own: Mapping[int, int]) -> tuple[Subgraph, list[int]]:
        """Extract the graph of `heads` made in `scope`.

        Args:
            scope: value of the attribute that marks the nodes made for the graph.
            heads: the outputs of the graph.
            own: input position by `id` of the variables that stand for inputs of the node.

        Returns:
            The graph, and the input position of each of its variables.
        """
        order = topological(heads)
        inner: set[int] = set(own)
        for node in order:
            if node.op is not None and (node.attrs.get(SCOPE) == scope or any(id(c) in inner for c, _ in node.inputs)):
                inner.add(id(node))
        swap: dict[tuple[int, int], Node] = {}
        position: dict[int, int] = {}

        def moved(entry: Entry, made: dict[int, Node]) -> Entry:
            node, index = entry
            if node.op is not None and id(node) in inner:
                return made[id(node)], index
            stand_in = swap.get((id(node), index))
            if stand_in is None:
                name = node.output_name(index)
                stand_in = swap[id(node), index] = Node(None, name, attrs=node.attrs if node.op is None else None)
                position[id(stand_in)] = own[id(node)] if id(node) in own else self._position(entry)
            return stand_in, 0

        made: dict[int, Node] = {}
        for node in order:
            if node.op is not None and id(node) in inner:
                inputs = [moved(e, made) for e in node.inputs]
                made[id(node)] = node.with_inputs(inputs)
        graph = Subgraph([moved(e, made) for e in heads])
        return graph, [position[id(v)] for v in graph.variables]


def _placeholders(entries: Sequence[Entry]) -> list[Entry]:
    return [var(f"{node.name}-0").entries[0] for node, _ in entries]


def _scope_outputs(scope: str, entries: Sequence[Entry], own: Mapping[int, int]) -> list[Entry]:
    """Heads that are results of the scope's own operators, one of each; others are copied."""
    seen: set[int] = set()
    heads = []
    for node, index in entries:
        if node.op is None or node.attrs.get(SCOPE) != scope or id(node) in seen:
            node, index = create_entries(OPS["_copy"], (Symbol([(node, index)]),), {}, hint="identity")[0]
        seen.add(id(node))
        heads.append((node, index))
    return heads


def _unused_placeholders(heads: Sequence[Entry], stand_ins: Sequence[Entry]) -> list[Entry]:
    """The stand-ins that `heads` do not depend on; a graph must have every one among its variables."""
    used = {id(node) for node in topological(heads)}
    return [entry for entry in stand_ins if id(entry[0]) not in used]


def _node(kind: str, graphs: Sequence[Subgraph], inputs: Sequence[Entry], fields: Mapping[str, Any]) -> Node:
    op = SubgraphOp(kind, graphs)
    raw = {"num_args": len(inputs) + len(graphs), **fields}
    attrs = {json_key(k): v for k, v in AttrScope.current.get(None).items()}
    attrs.update((k, param_text(v)) for k, v in raw.items())
    return Node(op, NameManager.current.get(None, kind), inputs, op.parse(raw), attrs)


def _pair(what: str, got: Any) -> tuple[Any, Any]:
    if not isinstance(got, (list, tuple)) or len(got) != 2:
        raise ArgumentError(f"{what} returned {type(got).__name__}: expected two things, outputs and next states")
    return got[0], got[1]


def foreach(
    body: Callable[[Any, Any], tuple[Any, Any]], data: Any, init_states: Any, name: str = "foreach"
) -> tuple[Any, Any]:
    """Run `body` over the first axis of `data`, handing states from step to step; one node of the graph.

    Args:
        body: `(slices, states) -> (outputs, next states)`, called once with symbols; it may read outer symbols.
        data: a symbol or nested list of symbols; the body sees slices nested alike.
        init_states: states of the first step, nested alike.
        name: of the graph inside.

    Returns:
        The outputs of the steps, each stacked along a new first axis, and the states after the last.

    Raises:
        ArgumentTypeError: not symbols. ArgumentError: the states returned are nested otherwise.

    Example:
        >>> import dualmx as mx
        >>> step = lambda x, total: (x + total, x + total)
        >>> sums, last = mx.sym.contrib.foreach(step, mx.sym.var("x"), mx.sym.var("s"))
        >>> sums.eval(x=mx.nd.array([[1], [2], [3]]), s=mx.nd.zeros((1,)))[0].asnumpy().ravel().tolist()
        [1.0, 3.0, 6.0]
    """
    feeds, shape = _flatten("foreach: data", data)
    starts, state_shape = _flatten("foreach: init_states", init_states)
    if not feeds:
        raise ArgumentError("foreach: data=[]: expected at least one symbol")
    scope = _unique(name)
    with AttrScope(**{SCOPE: scope}):
        stand_ins = _placeholders([*feeds, *starts])
        own = {id(node): i for i, (node, _) in enumerate(stand_ins)}
        slices, states = list(stand_ins[: len(feeds)]), list(stand_ins[len(feeds) :])
        outs, after = _pair("foreach: body", body(_unflatten(slices, shape), _unflatten(states, state_shape)))
        found, out_shape = _flatten("foreach: an output of body", outs)
        ends, end_shape = _flatten("foreach: a state of body", after)
        if end_shape != state_shape:
            raise ArgumentError("foreach: body returned states nested otherwise than init_states")
        rest = _unused_placeholders([*found, *ends], stand_ins)
        heads = _scope_outputs(scope, [*found, *rest, *ends], own)
    tracer = _SubgraphTracer([*feeds, *starts])
    graph, wires = tracer.graph(scope, heads, own)
    number = {at: i for i, at in enumerate(wires)}
    n_out = len(found) + len(rest)
    first, last = len(feeds), len(feeds) + len(starts)
    node = _node("_foreach", [graph], tracer.inputs, {
        "num_outputs": len(heads), "num_out_data": n_out, "in_data_locs": [number[i] for i in range(first)],
        "in_state_locs": [number[i] for i in range(first, last)],
        "remain_locs": [number[i] for i in range(last, len(tracer.inputs))],
    })  # fmt: skip
    made = [(node, i) for i in range(len(heads))]
    return _unflatten(made[: len(found)], out_shape), _unflatten(made[n_out:], state_shape)


def while_loop(
    cond: Callable[..., Any],
    func: Callable[..., tuple[Any, Any]],
    loop_vars: Any,
    max_iterations: int | None = None,
    name: str = "while_loop",
) -> tuple[Any, Any]:
    """Run `func` while `cond` is true, at most `max_iterations` times; one node of the graph.

    Args:
        cond: `(*loop_vars) -> one number`, true to go on.
        func: `(*loop_vars) -> (outputs, next loop_vars)`; both are called once with symbols.
        loop_vars: a symbol or list of symbols.
        max_iterations: bound on the steps, and first length of the outputs.
        name: of the graphs inside.

    Returns:
        The outputs, stacked along a new first axis of length `max_iterations`, zeros after the last step, and the
        last loop_vars.

    Raises:
        ArgumentTypeError: not symbols. ArgumentError: no bound, no loop_vars, or loop_vars nested otherwise.

    Example:
        >>> import dualmx as mx
        >>> i = mx.sym.var("i")
        >>> outs, last = mx.sym.contrib.while_loop(lambda i: i < 2, lambda i: (i * 10, i + 1), i, max_iterations=3)
        >>> outs.eval(i=mx.nd.zeros((1,)))[0].asnumpy().ravel().tolist()
        [0.0, 10.0, 0.0]
    """
    if max_iterations is None:
        raise ArgumentError("while_loop: max_iterations=None: max_iterations should be specified, to bound the steps")
    bound = integer("while_loop", "max_iterations", max_iterations, low=0)
    starts, shape = _flatten("while_loop: loop_vars", loop_vars)
    if not starts:
        raise ArgumentError("while_loop: loop_vars=[]: expected at least one symbol")

    def arguments(entries: Sequence[Entry]) -> list[Any]:
        nested = _unflatten(list(entries), shape)
        return [nested] if shape == 0 else nested

    tracer = _SubgraphTracer()
    with AttrScope(**{SCOPE: (test_scope := _unique(f"{name}_cond"))}):
        tested = _placeholders(starts)
        verdict = cond(*arguments(tested))
        if not isinstance(verdict, Symbol):
            raise ArgumentTypeError(f"while_loop: cond returned {verdict!r}: expected a Symbol")
        own = {id(node): i for i, (node, _) in enumerate(tested)}
        head = _scope_outputs(test_scope, [single_entry(verdict, "while_loop: the result of cond")], own)
    # Positions below zero mark loop variables until it is known which inputs exist.
    test, test_wires = tracer.graph(test_scope, head, {k: -1 - i for k, i in own.items()})
    with AttrScope(**{SCOPE: (scope := _unique(f"{name}_func"))}):
        stand_ins = _placeholders(starts)
        own = {id(node): i for i, (node, _) in enumerate(stand_ins)}
        outs, after = _pair("while_loop: func", func(*arguments(stand_ins)))
        found, out_shape = _flatten("while_loop: an output of func", [] if outs is None else outs)
        ends, end_shape = _flatten("while_loop: a loop variable after func", after)
        if (end_shape if isinstance(end_shape, list) else [end_shape]) != (shape if isinstance(shape, list) else [0]):
            raise ArgumentError("while_loop: func returned loop_vars nested otherwise than those given")
        rest = _unused_placeholders([*found, *ends], stand_ins)
        heads = _scope_outputs(scope, [*found, *rest, *ends], own)
    body, body_wires = tracer.graph(scope, heads, {k: -1 - i for k, i in own.items()})

    inputs: list[Entry] = []
    place: dict[int, int] = {}
    for wire in (*test_wires, *body_wires):
        if wire not in place:
            place[wire] = len(inputs)
            inputs.append(starts[-1 - wire] if wire < 0 else tracer.inputs[wire])
    node = _node("_while_loop", [test, body], inputs, {
        "num_outputs": len(heads), "num_out_data": len(found) + len(rest), "max_iterations": bound,
        "cond_input_locs": [place[w] for w in test_wires], "func_input_locs": [place[w] for w in body_wires],
        "func_var_locs": [body_wires.index(-1 - i) for i in range(len(starts))],
    })  # fmt: skip
    made = [(node, i) for i in range(len(heads))]
    return _unflatten(made[: len(found)], out_shape), _unflatten(made[len(found) + len(rest) :], shape)


def cond(
    pred: Any, then_func: Callable[[], Any], else_func: Callable[[], Any], name: str = "cond"
) -> Symbol | list[Any]:
    """Run `then_func()` if `pred`, one number, is true, else `else_func()`; one node of the graph.

    Args:
        pred: the condition.
        then_func, else_func: return outputs of the same number, shapes and dtypes; called once each.
        name: of the graphs inside.

    Raises:
        ArgumentTypeError: not symbols. ArgumentError: the branches return different numbers of outputs.

    Example:
        >>> import dualmx as mx
        >>> x = mx.sym.var("x")
        >>> mx.sym.contrib.cond(x > 1, lambda: x * 2, lambda: x).eval(x=mx.nd.array([3]))[0].asscalar().item()
        6.0
    """
    given, _ = _flatten("cond: pred", pred)
    if len(given) != 1:
        raise ArgumentError(f"cond: pred is {len(given)} symbols: expected one")
    tracer = _SubgraphTracer()
    graphs, wires, shapes = [], [], []
    for part, run in (("pred", lambda: Symbol(given)), ("then", then_func), ("else", else_func)):
        scope = _unique(f"{name}_{part}")
        with AttrScope(**{SCOPE: scope}):
            found, shape = _flatten(f"cond: the result of {part}_func", run())
            heads = _scope_outputs(scope, found, {})
        graph, used = tracer.graph(scope, heads, {})
        graphs.append(graph)
        wires.append(used)
        shapes.append(shape)
    n = len(graphs[1].entries)
    if n != len(graphs[2].entries):
        got = len(graphs[2].entries)
        raise ArgumentError(f"cond: then_func returned {n} outputs and else_func {got}: expected equal numbers")
    if not n:
        raise ArgumentError("cond: the branches return no output")
    locs = dict(zip(("cond_input_locs", "then_input_locs", "else_input_locs"), wires, strict=True))
    node = _node("_cond", graphs, tracer.inputs, {"num_outputs": n, **locs})
    return _unflatten([(node, i) for i in range(n)], shapes[1])


def populate(contrib: ModuleType) -> None:
    """Add the functions to `sym.contrib`."""
    for made in (foreach, while_loop, cond):
        setattr(contrib, made.__name__, made)


__all__ = ["cond", "foreach", "populate", "while_loop"]
