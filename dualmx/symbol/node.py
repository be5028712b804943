"""Nodes of a symbolic graph: walks over them, and their composition with automatic variables for missing inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError, suggest
from ..op.registry import Call, Op
from ..op.schema import AUX, Input
from ..op.traits import ZERO
from .attributes import AttrScope, NameManager, is_dunder, json_key, param_text

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


class SymbolBase:
    """Outputs of a graph as entries (node, output index), and what can be read from them."""

    __slots__ = ("entries",)

    def __init__(self, entries: Sequence[Entry]):
        self.entries: tuple[Entry, ...] = tuple(entries)

    def _order(self) -> list[Node]:
        return topological(self.entries)

    def list_outputs(self) -> list[str]:
        """Names of the outputs."""
        return [node.output_name(index) for node, index in self.entries]

    def list_arguments(self) -> list[str]:
        """Names of the variables that are not auxiliary states, in the order in which `bind` takes them."""
        return [node.name for node in split_variables(self._order())[0]]

    def list_auxiliary_states(self) -> list[str]:
        """Names of the auxiliary states: variables that running the graph may change, such as moving averages."""
        return [node.name for node in split_variables(self._order())[1]]

    def list_inputs(self) -> list[str]:
        """Names of all variables, auxiliary states included."""
        return [node.name for node in self._order() if node.op is None]

    def internal_entries(self) -> list[Entry]:
        """Outputs of all nodes, variables included."""
        return [(node, i) for node in self._order() for i in range(node.n_visible)]

    def debug_str(self) -> str:
        """Return a readable listing of the graph: outputs, then nodes with inputs and attributes."""
        lines = ["Symbol Outputs:"]
        lines += [f"\toutput[{i}]={node.name}({index})" for i, (node, index) in enumerate(self.entries)]
        for node in self._order():
            if node.op is None:
                lines.append(f"Variable:{node.name}")
                continue
            lines += ["--------------------", f"Op:{node.op.name}, Name={node.name}", "Inputs:"]
            states = set(node.aux_positions())
            for i, (child, index) in enumerate(node.inputs):
                version = f" version={int(i in states)}" if child.op is None else ""
                lines.append(f"\targ[{i}]={child.name}({index}){version}")
            if node.attrs:
                lines += ["Attrs:", *(f"\t{key}={value}" for key, value in sorted(node.attrs.items()))]
        return "\n".join(lines) + "\n"


def default_initializer(op: Op, input_name: str, is_state: bool) -> str | None:
    """The `__init__` attribute that `op` puts on the variable of an input, if any."""
    return op.traits.initializers.get(input_name, ZERO if is_state else None)


def single_entry(symbol: SymbolBase, where: str) -> Entry:
    """Return the only entry of `symbol`; `MXNetError` if it has several outputs."""
    if len(symbol.entries) != 1:
        raise MXNetError(f"{where}: got a symbol with {len(symbol.entries)} outputs; pick one of them, as in symbol[0]")
    return symbol.entries[0]


def create_entries(
    op: Op,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    hint: str | None = None,
    alias: str | None = None,
) -> list[Entry]:
    """Make a node of `op` and return its visible outputs as entries.

    Args:
        op: the operator.
        args: inputs, then parameters, by position in the order of the op's schema.
        kwargs: inputs (symbols), parameters, and attributes (`__key__` or a hidden key such as `lr_mult`) by name.
        name: name of the node; the current `NameManager` makes one from `hint` otherwise.
        attr: further string attributes.
        hint: name under which the user called the op, in lower case; the op's own name by default.
        alias: name of the op in JSON if that is another.

    Raises:
        ArgumentError: unknown, missing or invalid parameter. ArgumentTypeError: an input is not a symbol, or there are
        too many arguments. MXNetError: an input with several outputs, or an input the op does not have.
    """
    symbols: dict[str, SymbolBase] = {}
    raw: dict[str, Any] = {}
    attrs: dict[str, str] = AttrScope.current.get(attr)
    sequence: list[SymbolBase] = []
    if op.variadic:
        for value in args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args:
            if not isinstance(value, SymbolBase):
                raise ArgumentTypeError(f"{op.name}: positional arguments are symbols, got {value!r}")
            sequence.append(value)
    else:
        _by_position(op, args, symbols, raw)
    _by_name(op, kwargs or {}, symbols, raw, attrs)
    attrs = {json_key(k): v for k, v in attrs.items()}
    # An operator without parameters takes attributes of any name.
    if op.params or op.variadic:
        raw.update((k, attrs[k]) for k in attrs if not is_dunder(k))
    arity = arity_param(op) if op.variadic else None
    if arity == "num_args" and raw.get(arity) is None:
        raw[arity] = max(len(sequence), len(symbols))
    node_name = NameManager.current.get(name, hint or op.name.lower())
    params = op.parse(raw if op.params or op.variadic else {})
    attrs.update((k, param_text(v)) for k, v in raw.items())

    settled = op.fixed_input_names(params)
    counted = len(settled) or (int(params[arity]) * op.inputs_per_arg if arity else 0)
    count = max(counted, len(sequence)) if op.variadic else len(present_inputs(op, params))
    if op.variadic and count == 0:
        raise ArgumentError(f"{op.name}: it needs at least one input symbol")
    if op.paired_inputs and count > counted:
        raise ArgumentError(f"{op.name}: {arity}={params[arity or '']}: expected {counted} inputs, got {count}")
    names = input_names(op, params, count)
    symbols.update(zip(names, sequence, strict=False))
    for key in symbols:
        if key not in names:
            raise MXNetError(f"{op.name}: it has no input {key!r} with these parameters; inputs: {', '.join(names)}")
    node = Node(op, node_name, (), params, attrs, alias)
    if not node.n_visible:
        raise MXNetError(f"{op.name}: it has no output, so no symbol can stand for it; call it on arrays")
    _fill_inputs(node, names, symbols)
    return [(node, i) for i in range(node.n_visible)]


def _by_name(
    op: Op, kwargs: Mapping[str, Any], symbols: dict[str, SymbolBase], raw: dict[str, Any], attrs: dict[str, str]
) -> None:
    """Sort keyword arguments into inputs, parameters and attributes."""
    tensor_names = set() if op.variadic else {i.name for i in op.inputs}
    for key, value in kwargs.items():
        if key in symbols or key in raw:
            raise ArgumentTypeError(f"{op.name}: {key!r} is given twice, by position and by keyword")
        if isinstance(value, SymbolBase):
            symbols[key] = value
        elif key in tensor_names:
            if value is not None:
                raise ArgumentTypeError(f"{op.name}: input {key!r} must be a symbol, got {value!r}")
        elif is_dunder(key) or (key not in op.params and json_key(key) != key):
            attrs[key] = param_text(value)
        else:
            raw[key] = value


def _by_position(op: Op, args: Sequence[Any], symbols: dict[str, SymbolBase], raw: dict[str, Any]) -> None:
    slots = [*(i.name for i in op.inputs), *op.params]
    if len(args) > len(slots):
        raise ArgumentTypeError(f"{op.name}: got {len(args)} positional arguments, expected at most {len(slots)}")
    for at, (key, value) in enumerate(zip(slots, args, strict=False)):
        if at >= len(op.inputs):
            raw[key] = value
        elif isinstance(value, SymbolBase):
            symbols[key] = value
        elif value is not None:
            raise ArgumentTypeError(f"{op.name}: input {key!r} must be a symbol, got {value!r}")


def _fill_inputs(node: Node, names: Sequence[str], symbols: Mapping[str, SymbolBase]) -> None:
    """Fill the inputs of `node`: given symbols, automatic variables for others; optional ones may be absent."""
    op = node.op
    assert op is not None
    schema = {} if op.variadic else {i.name: i for i in op.inputs}
    last = max((i for i, n in enumerate(names) if n in symbols or not _optional(schema, n)), default=-1)
    for at, input_name in enumerate(names[: last + 1]):
        is_state = input_name in schema and schema[input_name].role is AUX
        init = default_initializer(op, input_name, is_state)
        if input_name in symbols:
            entry = single_entry(symbols[input_name], f"{op.name}: input {input_name!r}")
            if is_state and entry[0].op is not None:
                raise MXNetError(f"{op.name}: input {input_name!r} is a state and must be a variable, not a result")
        elif _optional(schema, input_name):
            given = next(n for n in names[at:] if n in symbols)
            raise MXNetError(f"{op.name}: input {given!r} is given without {input_name!r}, which stands before it")
        else:
            entry = (Node(None, f"{node.name}_{input_name}", attrs=node.attrs), 0)
        if init is not None and entry[0].op is None:
            entry[0].attrs.setdefault("__init__", init)
        node.inputs.append(entry)


def _optional(schema: Mapping[str, Any], name: str) -> bool:
    return name in schema and schema[name].optional


def compose(
    entries: Sequence[Entry], args: Sequence[Any], kwargs: Mapping[str, Any], name: str | None = None
) -> list[Entry]:
    """Copy a graph with some of its free variables replaced by other symbols, by position or by name.

    Raises:
        ArgumentTypeError: an argument is not a symbol, or both positions and keywords are used.
        MXNetError: the graph has no such variable, or an argument has several outputs.
    """
    variables = [n for n in topological(entries) if n.op is None]
    if args and kwargs:
        raise ArgumentTypeError("composition: give the inputs either by position or by keyword, not both")
    for value in (*args, *kwargs.values()):
        if not isinstance(value, SymbolBase):
            raise ArgumentTypeError(f"composition: expected symbols as inputs, got {value!r}")
    if len(args) > len(variables):
        raise ArgumentError(f"composition: got {len(args)} symbols for the {len(variables)} variables of the graph")
    swap: dict[int, Entry] = {}
    for node, value in zip(variables, args, strict=False):
        swap[id(node)] = single_entry(value, f"composition: variable {node.name!r}")
    for key, value in kwargs.items():
        found = [n for n in variables if n.name == key]
        if not found:
            raise MXNetError(
                f"composition: no variable {key!r} in the graph; {suggest(key, (n.name for n in variables))}"
            )
        for node in found:
            swap[id(node)] = single_entry(value, f"composition: variable {key!r}")
    made = copy_graph(entries, swap)
    if name:
        if any(node is not made[0][0] for node, _ in made):
            raise MXNetError("composition: name= applies to a symbol of one node, not to a group")
        made[0][0].name = name
    return made
