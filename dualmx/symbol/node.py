"""Nodes of a symbolic graph, and walks over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..op.registry import Call, Op
from ..op.schema import AUX, Input

ARITY_PARAMS = ("num_args", "num_weights", "num_tensors", "num_arrays", "num_outputs")


class Node:
    """A variable (no op) or one application of an operator in a symbolic graph.

    Attributes:
        op: the operator, `None` for a variable.
        params: parsed parameters of the op.
        inputs: entries read, one per input of the op.
        name: name of the node; variables are bound by it.
        attrs: everything written to JSON: parameters as the user gave them, and other attributes, as text.
        alias: the operator's name in JSON where that is another than its own, else None.
    """

    __slots__ = ("op", "params", "inputs", "name", "attrs", "alias", "_call", "__weakref__")

    def __init__(
        self,
        op: Op | None,
        name: str,
        inputs: Sequence[Entry] = (),
        params: Mapping[str, Any] | None = None,
        attrs: Mapping[str, str] | None = None,
        alias: str | None = None,
    ):
        self.op, self.name, self.inputs, self.alias = op, name, list(inputs), alias
        self.params: dict[str, Any] = dict(params or {})
        self.attrs: dict[str, str] = dict(attrs or {})
        self._call: Call | None = None

    def __repr__(self) -> str:
        return f"<Node {self.name}: {self.op.name if self.op else 'variable'}>"

    @property
    def call(self) -> Call:
        """The op with its parameters, in inference mode; counts of outputs are read from it."""
        if self._call is None:
            assert self.op is not None, "a variable has no call"
            self._call = self.op.bind(self.params)
        return self._call

    def with_inputs(self, inputs: Sequence[Entry]) -> Node:
        """Return a node of the same operator, name and attributes on other inputs."""
        return Node(self.op, self.name, inputs, self.params, self.attrs, self.alias)

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Replace the parsed parameters."""
        self.params, self._call = dict(params), None

    @property
    def n_outputs(self) -> int:
        """Number of outputs, hidden ones included."""
        return 1 if self.op is None else self.call.n_outputs

    @property
    def n_visible(self) -> int:
        """Number of outputs that front ends show."""
        return 1 if self.op is None else self.call.n_visible

    def output_name(self, index: int) -> str:
        """Name of output `index`: the variable's name, or `<name>_<output>`."""
        if self.op is None:
            return self.name
        if index < len(self.op.output_names):
            return f"{self.name}_{self.op.output_names[index]}"
        return f"{self.name}_output" + (str(index) if self.n_outputs > 1 else "")

    def input_names(self) -> list[str]:
        """Names of the inputs, in order."""
        return input_names(self.op, self.params, len(self.inputs)) if self.op else []

    def aux_positions(self) -> list[int]:
        """Positions of the inputs that are auxiliary states."""
        if self.op is None or self.op.variadic:
            return []
        live = present_inputs(self.op, self.params)
        return [i for i, given in enumerate(live[: len(self.inputs)]) if given.role is AUX]


Entry = tuple[Node, int]


def present_inputs(op: Op, params: Mapping[str, Any]) -> list[Input]:
    """Inputs of `op` that exist under `params`, optional ones included."""
    known = dict(params)
    return [i for i in op.inputs if i.when is None or i.when.holds(known)]


def arity_param(op: Op) -> str | None:
    """Name of the parameter of a variadic op that counts its inputs."""
    return next((p for p in ARITY_PARAMS if p in op.params), None)


def input_names(op: Op, params: Mapping[str, Any], count: int) -> list[str]:
    """Names of the first `count` inputs of `op`; those of a variadic op are mostly `arg0`, `arg1`, …"""
    if not op.variadic:
        return [i.name for i in present_inputs(op, params)][:count]
    settled = op.fixed_input_names(params)
    if settled:
        return settled[:count]
    if op.paired_inputs:
        return op.variadic_input_names(count)
    rest = [i.name for i in op.inputs[1:]]
    first = "arg" if "num_args" in op.params else f"{op.inputs[0].name}_"
    return [f"{first}{i}" for i in range(count - len(rest))] + rest


def topological(entries: Iterable[Entry]) -> list[Node]:
    """Nodes that `entries` depend on, inputs before consumers, in depth-first order of the inputs; not recursive."""
    order: list[Node] = []
    seen: set[int] = set()
    for head, _ in entries:
        if id(head) in seen:
            continue
        seen.add(id(head))
        stack = [(head, 0)]
        while stack:
            node, at = stack.pop()
            while at < len(node.inputs):
                child = node.inputs[at][0]
                at += 1
                if id(child) not in seen:
                    seen.add(id(child))
                    stack.append((node, at))
                    node, at = child, 0
            order.append(node)
    return order


def split_variables(order: Sequence[Node]) -> tuple[list[Node], list[Node]]:
    """Split the variables among `order` into (arguments, auxiliary states); a state feeds an auxiliary input."""
    states = {id(node.inputs[i][0]) for node in order for i in node.aux_positions()}
    variables = [node for node in order if node.op is None]
    return [v for v in variables if id(v) not in states], [v for v in variables if id(v) in states]


def copy_graph(entries: Sequence[Entry], substitutions: Mapping[int, Entry] | None = None) -> list[Entry]:
    """Copy the graph below `entries`; variables whose `id` is in `swap` are replaced by its entry."""
    substitutions = substitutions or {}
    made: dict[int, Node] = {}

    def moved(entry: Entry) -> Entry:
        node, index = entry
        return substitutions[id(node)] if id(node) in substitutions else (made[id(node)], index)

    for node in topological(entries):
        if id(node) not in substitutions:
            made[id(node)] = node.with_inputs([moved(e) for e in node.inputs])
    return [moved(e) for e in entries]
