"""Writing a graph as MXNet's symbol JSON, in the layout in which MXNet itself writes it."""

from __future__ import annotations

from collections.abc import Sequence

from .node import Entry, Node, topological
from .subgraph import state_positions, subgraphs_of

MXNET_VERSION = 10901  # the format version written: major * 10000 + minor * 100 + patch
# MXNet's outputs that hold work space, counted in `node_row_ptr` though nothing reads them.
WORKSPACE = {
    "BilinearSampler": 2, "CTCLoss": 2, "Correlation": 3, "Dropout": 2, "GridGenerator": 2, "InstanceNorm": 3,
    "L2Normalization": 2, "LRN": 2, "ROIPooling": 2, "SpatialTransformer": 3, "_contrib_BatchNormWithReLU": 4,
    "_contrib_box_nms": 2, "_linalg_det": 3, "_linalg_slogdet": 4, "sort": 2,
}  # fmt: skip
CASTS = ("amp_cast", "amp_multicast")
_ESCAPES = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"} | {
    chr(c): f"\\u{c:04x}" for c in range(32) if chr(c) not in "\n\r\t"
})  # fmt: skip


def to_json(entries: Sequence[Entry], remove_amp_cast: bool = True) -> str:
    """Return the JSON text of the graph below `entries`, without `amp_cast` nodes if so asked."""
    version = f'"attrs": {{"mxnet_version": ["int", {MXNET_VERSION}]}}'
    return _graph(without_casts(entries) if remove_amp_cast else entries, remove_amp_cast, [version])


def _graph(entries: Sequence[Entry], remove_amp_cast: bool, further: Sequence[str] = ()) -> str:
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
        nodes.append(_node(node, inputs, remove_amp_cast))
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
    """Return entries of a graph in which the readers of a cast made by mixed precision read its input directly."""
    order = topological(entries)
    if not any(node.op is not None and node.op.name in CASTS for node in order):
        return list(entries)
    moved: dict[int, Node] = {}
    skipped: dict[tuple[int, int], Entry] = {}

    def follow(entry: Entry) -> Entry:
        node, index = entry
        return skipped.get((id(node), index)) or (moved[id(node)], index)

    for node in order:
        inputs = [follow(e) for e in node.inputs]
        if node.op is not None and node.op.name in CASTS:
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


def _node(node: Node, inputs: Sequence[str], remove_amp_cast: bool) -> str:
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
        graphs.append("\n".join(" " * 8 + line for line in _graph(inner, remove_amp_cast).split("\n")))
    if graphs:
        fields.append('"subgraphs": [\n' + ", \n".join(graphs) + "\n      ]")
    return "    {\n" + ", \n".join(" " * 6 + f for f in fields) + "\n    }"
