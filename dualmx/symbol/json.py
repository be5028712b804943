"""Symbol JSON, in MXNet's format: reading, with upgrades of older versions, and writing.

A file is untrusted data: every field is checked, and anything unexpected raises `FormatError`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from ..core.errors import FormatError, MXNetError, suggest
from ..core.reader import Content
from ..op.numpy_names import BY_NUMPY, KEPT
from ..op.registry import OPS, Op
from ..op.schema import AUX
from ..op.subgraph import BASES
from .attributes import HIDDEN_KEYS, is_dunder
from .lowering import Subgraph, SubgraphOp, state_positions, subgraphs_of, wiring_error
from .node import Entry, Node, arity_param, default_initializer, present_inputs, topological
from .python_nodes import host_op

MAX_NODES = 1 << 22
MAX_DEPTH = 64
_KIND = "valid JSON of a network"
NODE_FIELDS = ("op", "name", "attrs", "attr", "param", "inputs", "control_deps", "backward_source_id", "subgraphs")
V0_9_0, V0_9_4, V0_9_5, UNVERSIONED = 900, 904, 905, 800


def from_json(text: str | bytes, source: str = "symbol JSON") -> list[Entry]:
    """Read a graph and return its heads.

    Args:
        text: the JSON.
        source: what errors call it.

    Raises:
        FormatError: the text is not JSON, or not a valid graph. MXNetError: an operator or parameter is unknown.
    """
    content = Content(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text, source, _KIND)
    doc = content.json()
    with content.parsing(RecursionError):
        doc = _require_type(doc, dict, "the document")
        return _read_graph(doc, _version(doc), 0)


def _read_graph(doc: Mapping[str, Any], version: int, depth: int) -> list[Entry]:
    """Read a document, or the graph inside a node at this depth."""
    described = _require_type(doc.get("nodes"), list, "'nodes'")
    if len(described) > MAX_NODES:
        raise FormatError(f"symbol JSON: {len(described)} nodes, more than the {MAX_NODES} that are read")
    nodes: list[Node] = []
    for at, item in enumerate(described):
        nodes.append(_read_node(item, at, nodes, version, depth))
    if "arg_nodes" not in doc:
        raise FormatError("symbol JSON: missing field 'arg_nodes'")
    for at in _require_type(doc["arg_nodes"], list, "'arg_nodes'"):
        if _index(at, len(nodes), "'arg_nodes'") is not None and nodes[at].op is not None:
            raise FormatError(f"symbol JSON: 'arg_nodes' lists node {at} ({nodes[at].name!r}), which is no variable")
    heads = [_entry(e, nodes, "'heads'") for e in _require_type(doc.get("heads"), list, "'heads'")]
    if version < V0_9_0:
        _move_multipliers(nodes)
    if version < V0_9_4:
        _init_states(topological(heads))
    return heads


def _require_type(value: Any, kind: type, what: str) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        found = "it is missing" if value is None else f"got {type(value).__name__}"
        raise FormatError(f"symbol JSON: expected {what} to be a {kind.__name__}, {found}")
    return value


def _index(value: Any, count: int, what: str) -> int:
    number = _require_type(value, int, f"an index in {what}")
    if not 0 <= number < count:
        raise FormatError(f"symbol JSON: index {number} in {what}: expected 0 to {count - 1}")
    return number


def _version(doc: Mapping[str, Any]) -> int:
    attrs = _require_type(doc.get("attrs", {}), dict, "'attrs'")
    found = attrs.get("mxnet_version")
    if found is None:
        return UNVERSIONED
    if not isinstance(found, list) or len(found) != 2:
        raise FormatError(f"symbol JSON: mxnet_version={found!r}: expected a pair like ['int', 10901]")
    return _require_type(found[1], int, "the number of 'mxnet_version'")


def _entry(value: Any, nodes: Sequence[Node], what: str) -> Entry:
    pair = _require_type(value, list, f"an entry of {what}")
    if not 2 <= len(pair) <= 3:
        raise FormatError(f"symbol JSON: entry {pair!r} of {what}: expected [node, output] or [node, output, version]")
    node = nodes[_index(pair[0], len(nodes), what)]
    output = _index(pair[1], node.n_outputs, f"{what} (output of {node.name!r})")
    if len(pair) == 3:
        _require_type(pair[2], int, f"the version in {what}")
    return node, output


def _read_node(item: Any, at: int, nodes: list[Node], version: int, depth: int) -> Node:
    item = _require_type(item, dict, f"node {at}")
    for key in item:
        if key not in NODE_FIELDS:
            raise FormatError(f"symbol JSON: node {at}: unknown field {key!r}; {suggest(key, NODE_FIELDS)}")
    op_name = _require_type(item.get("op"), str, f"'op' of node {at}")
    name = _require_type(item.get("name"), str, f"'name' of node {at}")
    attrs: dict[str, str] = {}
    for field in ("param", "attr", "attrs"):
        for key, value in _require_type(item.get(field, {}), dict, f"{field!r} of node {name!r}").items():
            attrs[key] = _require_type(value, str, f"attribute {key!r} of node {name!r}")
    attrs = {f"__{k}__" if k in HIDDEN_KEYS else k: v for k, v in attrs.items()}
    inputs = [_entry(e, nodes, f"inputs of node {name!r}") for e in _require_type(item.get("inputs"), list, "'inputs'")]
    if op_name == "null":
        if inputs:
            raise FormatError(f"symbol JSON: variable {name!r} has inputs")
        return Node(None, name, attrs=attrs)
    graphs = _require_type(item.get("subgraphs", []), list, f"'subgraphs' of node {name!r}")
    if op_name in BASES:
        return _node_of_graphs(op_name, name, inputs, attrs, [_read_subgraph(g, name, version, depth) for g in graphs])
    if graphs:
        raise FormatError(f"symbol JSON: node {name!r} of {op_name!r}: this operator has no subgraphs")
    if op_name == "Custom" and attrs.get("op_type") in BY_NUMPY:
        operator, implied = BY_NUMPY[attrs["op_type"]]
        op = OPS[operator]
        node = _operator_node(op, name, inputs, {k: v for k, v in attrs.items() if k in op.params} | implied, version)
        node.alias, node.attrs = op_name, attrs
        return node
    if op_name == "Custom":
        return _operator_node(host_op(attrs), name, inputs, attrs, version)
    op = OPS.get(op_name)
    if op is None:
        raise MXNetError(f"symbol JSON: node {name!r}: operator {op_name!r} is not registered; {suggest(op_name, OPS)}")
    node = _operator_node(op, name, inputs, attrs, version)
    node.alias = op_name if op_name in KEPT else None
    return node


def _read_subgraph(item: Any, name: str, version: int, depth: int) -> Subgraph:
    if depth >= MAX_DEPTH:
        raise FormatError(f"symbol JSON: node {name!r}: subgraphs nested more than {MAX_DEPTH} deep are not read")
    return Subgraph(_read_graph(_require_type(item, dict, f"a subgraph of node {name!r}"), version, depth + 1))


def _node_of_graphs(
    op_name: str, name: str, inputs: list[Entry], attrs: dict[str, str], graphs: list[Subgraph]
) -> Node:
    op = SubgraphOp(op_name, graphs)
    try:
        params = op.parse({k: v for k, v in attrs.items() if not is_dunder(k)})
    except MXNetError as e:
        raise type(e)(f"symbol JSON: node {name!r}: {e}") from None
    problem = wiring_error(op_name, SimpleNamespace(**params), len(inputs), graphs)
    if problem:
        raise FormatError(f"symbol JSON: node {name!r} of {op_name!r}: {problem}")
    return Node(op, name, inputs, params, attrs)


def _operator_node(op: Op, name: str, inputs: list[Entry], attrs: dict[str, str], version: int) -> Node:
    if version < V0_9_5 and op.name in ("argmax", "argmin") and attrs.get("axis") == "-1":
        del attrs["axis"]
    plain = {k: v for k, v in attrs.items() if not is_dunder(k)}
    if version < V0_9_0:
        plain = {k: v for k, v in plain.items() if k in op.params or not _is_multiplier(k)}
    if not op.params:
        plain = {}
    arity = arity_param(op) if op.variadic else None
    try:
        params = op.parse(plain)
    except MXNetError as e:
        raise type(e)(f"symbol JSON: node {name!r}: {e}") from None
    live = [] if op.variadic else present_inputs(op, params)
    if version < V0_9_0:
        for given in live[len(inputs) :]:
            if given.role is AUX:
                inputs.append((Node(None, f"{name}_{given.name}"), 0))
    settled = op.fixed_input_names(params)
    if settled:
        fits, wanted = len(inputs) == len(settled), f"({', '.join(settled)})"
    elif op.variadic:
        fits = arity != "num_args" or int(params[arity]) * op.inputs_per_arg == len(inputs)
        wanted = str(int(params[arity]) * op.inputs_per_arg if arity else "some")
    else:
        fits = sum(not i.optional for i in live) <= len(inputs) <= len(live)
        wanted = f"({', '.join(i.name for i in live)})"
    if not fits:
        raise FormatError(f"symbol JSON: node {name!r} of {op.name!r} has {len(inputs)} inputs, expected {wanted}")
    node = Node(op, name, inputs, params, attrs)
    for at in node.aux_positions():
        if inputs[at][0].op is not None:
            raise FormatError(
                f"symbol JSON: node {name!r}: input {live[at].name!r} is a state, but no variable feeds it"
            )
    return node


def _is_multiplier(key: str) -> bool:
    return re.search(f"_({'|'.join(HIDDEN_KEYS)})$", key) is not None


def _move_multipliers(nodes: Sequence[Node]) -> None:
    """Move `weight_lr_mult` and the like from an operator to the variable that is its `weight`."""
    for node in nodes:
        for key in [k for k in node.attrs if node.op is not None and _is_multiplier(k) and not is_dunder(k)]:
            hidden = next(h for h in HIDDEN_KEYS if key.endswith("_" + h))
            owner = key[: -len(hidden) - 1]
            for name, (child, _) in zip(node.input_names(), node.inputs, strict=True):
                if name == owner and child.op is None:
                    child.attrs.setdefault(f"__{hidden}__", node.attrs.pop(key))
                    break


def _init_states(order: Sequence[Node]) -> None:
    """Give state variables the initializer that newer files name."""
    for node in order:
        for at in node.aux_positions():
            assert node.op is not None
            init = default_initializer(node.op, node.input_names()[at], True)
            if init is not None:
                node.inputs[at][0].attrs.setdefault("__init__", init)


MXNET_VERSION = 10901  # the format version written: major * 10000 + minor * 100 + patch
# MXNet's outputs that hold work space, counted in `node_row_ptr` though nothing reads them.
WORKSPACE = {
    "BilinearSampler": 2, "CTCLoss": 2, "Correlation": 3, "Dropout": 2, "GridGenerator": 2, "InstanceNorm": 3,
    "L2Normalization": 2, "LRN": 2, "ROIPooling": 2, "SpatialTransformer": 3, "_contrib_BatchNormWithReLU": 4,
    "_contrib_box_nms": 2, "_linalg_det": 3, "_linalg_slogdet": 4, "sort": 2,
}  # fmt: skip
_ESCAPES = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"} | {
    chr(c): f"\\u{c:04x}" for c in range(32) if chr(c) not in "\n\r\t"
})  # fmt: skip


def to_json(entries: Sequence[Entry], remove_amp_cast: bool = True) -> str:
    """Return the JSON text of the graph below `entries`, optionally without `amp_cast` nodes."""
    version = f'"attrs": {{"mxnet_version": ["int", {MXNET_VERSION}]}}'
    return _graph_to_json(without_casts(entries) if remove_amp_cast else entries, remove_amp_cast, [version])


def _graph_to_json(entries: Sequence[Entry], remove_amp_cast: bool, further: Sequence[str] = ()) -> str:
    order = topological(entries)
    number = {id(node): i for i, node in enumerate(order)}
    versions: dict[int, int] = {}
    nodes = []
    row_ptr = [0]
    for node in order:
        for at in state_positions(node):
            child = id(node.inputs[at][0])
            versions[child] = versions.get(child, 0) + 1
        inputs = [f"[{number[id(c)]}, {i}, {versions.get(id(c), 0)}]" for c, i in node.inputs]
        nodes.append(_node_to_json(node, inputs, remove_amp_cast))
        row_ptr.append(row_ptr[-1] + _counted_outputs(node))
    fields = [
        '"nodes": [\n' + ", \n".join(nodes) + "\n  ]" if nodes else '"nodes": []',
        f'"arg_nodes": {_sequence([str(number[id(n)]) for n in order if n.op is None], 2)}',
        f'"node_row_ptr": {_sequence([str(n) for n in row_ptr], 2)}',
        f'"heads": {_sequence([f"[{number[id(n)]}, {i}, 0]" for n, i in entries], 2)}',
        *further,
    ]
    return "{\n" + ", \n".join("  " + f for f in fields) + "\n}"


def without_casts(entries: Sequence[Entry]) -> list[Entry]:
    """Return entries of a graph without the casts of mixed precision."""
    order = topological(entries)
    if not any(node.op is not None and node.op.traits.is_amp_cast for node in order):
        return list(entries)
    moved: dict[int, Node] = {}
    skipped: dict[tuple[int, int], Entry] = {}

    def follow(entry: Entry) -> Entry:
        node, index = entry
        return skipped.get((id(node), index)) or (moved[id(node)], index)

    for node in order:
        inputs = [follow(e) for e in node.inputs]
        if node.op is not None and node.op.traits.is_amp_cast:
            skipped.update(((id(node), i), entry) for i, entry in enumerate(inputs))
        moved[id(node)] = node.with_inputs(inputs)
    return [follow(e) for e in entries]


def _counted_outputs(node: Node) -> int:
    """Number of outputs that MXNet counts."""
    if node.op is None:
        return 1
    extra = 2 if node.op.name == "Pooling" and node.params["pool_type"] == "max" else 1
    return max(node.n_outputs, WORKSPACE.get(node.op.name, extra))


def _text(value: str) -> str:
    return '"' + value.translate(_ESCAPES) + '"'


def _sequence(items: Sequence[str], indent: int) -> str:
    """A list on one line, or one item a line when there are more than ten."""
    if len(items) <= 10:
        return "[" + ", ".join(items) + "]"
    pad = " " * (indent + 2)
    return "[\n" + ", \n".join(pad + item for item in items) + "\n" + " " * indent + "]"


def _node_to_json(node: Node, inputs: Sequence[str], remove_amp_cast: bool) -> str:
    op = "null" if node.op is None else node.alias or node.op.name
    fields = [f'"op": {_text(op)}', f'"name": {_text(node.name)}']
    if node.attrs:
        pairs = [f"{_text(k)}: {_text(v)}" for k, v in sorted(node.attrs.items())]
        if len(pairs) == 1:
            fields.append(f'"attrs": {{{pairs[0]}}}')
        else:
            fields.append('"attrs": {\n' + ", \n".join(" " * 8 + p for p in pairs) + "\n      }")
    fields.append(f'"inputs": {_sequence(inputs, 6)}')
    graphs = []
    for graph in subgraphs_of(node):
        inner = without_casts(graph.entries) if remove_amp_cast else graph.entries
        graphs.append("\n".join(" " * 8 + line for line in _graph_to_json(inner, remove_amp_cast).split("\n")))
    if graphs:
        fields.append('"subgraphs": [\n' + ", \n".join(graphs) + "\n      ]")
    return "    {\n" + ", \n".join(" " * 6 + f for f in fields) + "\n    }"
