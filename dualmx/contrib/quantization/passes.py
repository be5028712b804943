"""Passes that turn a float graph into an 8-bit one and insert calibrated ranges."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ...op.registry import OPS
from ...symbol.node import Entry, Node, topological
from ...symbol.symbol import Symbol

# Operators that "smart" quantization starts from, and those that it takes along: operator -> quantized one.
HEAVY = {"Convolution": "_contrib_quantized_conv", "FullyConnected": "_contrib_quantized_fully_connected"}
LIGHT = {
    "Activation": "_contrib_quantized_act", "BatchNorm": "_contrib_quantized_batch_norm",
    "Concat": "_contrib_quantized_concat", "Embedding": "_contrib_quantized_embedding",
    "Flatten": "_contrib_quantized_flatten", "Pooling": "_contrib_quantized_pooling",
    "elemwise_add": "_contrib_quantized_elemwise_add", "elemwise_mul": "_contrib_quantized_elemwise_mul",
}  # fmt: skip
# Results in 32 bits, narrowed by a further node.
WIDE = (*HEAVY, "elemwise_add", "elemwise_mul")
# Inputs that are quantized, by operator; those after them stay as they are.
DATA_INPUTS = {"BatchNorm": 1, "Embedding": 0}
# Operators whose first output MXNet calls "output"; that of others has a number.
NAMED = frozenset((
    "Activation", "BatchNorm", "Concat", "Convolution", "Deconvolution", "Dropout", "FullyConnected", "InstanceNorm",
    "LRN", "LayerNorm", "LeakyReLU", "Pooling", "SoftmaxOutput", "SwapAxis", "UpSampling",
))  # fmt: skip


def entry_name(entry: Entry) -> str:
    """The name under which the values of an entry are calibrated."""
    node, index = entry
    if node.op is None:
        return node.name
    return f"{node.name}_output" if node.op.name in NAMED and index == 0 else f"{node.name}_{index}"


def can_quantize(node: Node) -> bool:
    """True if there is a quantized form of a node."""
    assert node.op is not None
    name, p = node.op.name, node.params
    if name == "Activation":
        return p["act_type"] == "relu"
    if name == "Pooling":
        return p["pool_type"] in ("max", "avg") and p["layout"] in (None, "NCHW") and (
            len(p["kernel"]) == 2 or p["global_pool"]
        )  # fmt: skip
    if name == "Convolution":
        return p["layout"] in (None, "NCW", "NCHW", "NCDHW")
    if name == "BatchNorm":
        return p["axis"] == 1 and not p["output_mean_var"]
    return name in HEAVY or name in LIGHT


def chosen_nodes(
    order: Sequence[Node], names: Collection[str], operators: Collection[str], mode: str, ranges: bool
) -> set[int]:
    """Return the `id`s of the nodes to quantize.

    In mode "full" all that can be; in mode "smart" convolutions and dense layers, and what lies between them.
    Normalization needs a known range of its results (`ranges`).
    """
    able = {
        id(n) for n in order
        if n.op is not None and n.name not in names and n.op.name not in operators and can_quantize(n)
        and (ranges or n.op.name != "BatchNorm")
    }  # fmt: skip
    if mode == "full":
        return able
    able -= {id(n) for n in order if n.op is not None and n.op.name == "Embedding"}
    heavy = {id(n) for n in order if n.op is not None and n.op.name in HEAVY and id(n) in able}
    behind, before = set(heavy), set(heavy)
    for node in order:
        if id(node) in able and any(id(child) in behind for child, _ in node.inputs):
            behind.add(id(node))
    for node in reversed(order):
        if id(node) in before and id(node) in able:
            before.update(id(child) for child, _ in node.inputs if id(child) in able)
    return heavy | (behind & before)


class Quantizer:
    """Builds the quantized graph of `entries`.

    Args:
        entries: the heads.
        chosen: `id`s of the nodes to quantize.
        offline: variables whose values are quantized beforehand.
        out_type: "int8", "uint8" or "auto".
    """

    def __init__(self, entries: Sequence[Entry], chosen: Collection[int], offline: Collection[str], out_type: str):
        self.order, self.chosen, self.offline, self.out_type = topological(entries), chosen, offline, out_type
        self.entries = entries
        self.plain: dict[tuple[int, int], Entry] = {}
        self.triples: dict[tuple[int, int], list[Entry]] = {}
        self.sources: dict[str, Entry] = {}

    def run(self) -> Symbol:
        """Return the graph; `sources` then has the float entries to calibrate, by name."""
        for node in self.order:
            if id(node) in self.chosen:
                self._quantized(node)
            elif node.op is None:
                self.plain[id(node), 0] = (Node(None, node.name, attrs=node.attrs), 0)
            else:
                made = node.with_inputs([self._float(e) for e in node.inputs])
                self.plain.update(((id(node), i), (made, i)) for i in range(node.n_outputs))
        return Symbol([self._float(e) for e in self.entries])

    def _float(self, entry: Entry) -> Entry:
        key = id(entry[0]), entry[1]
        if key not in self.plain:
            made = Node(
                OPS["_contrib_dequantize"],
                f"{entry[0].name}_dequantize",
                self.triples[key],
                _parsed("_contrib_dequantize", {}),
            )
            self.plain[key] = (made, 0)
        return self.plain[key]

    def _triple(self, entry: Entry) -> list[Entry]:
        """The quantized form of an entry: values, least and largest of the range."""
        key = id(entry[0]), entry[1]
        if key not in self.triples:
            name = entry_name(entry)
            attrs = {"out_type": self.out_type}
            op = "_contrib_quantize_v2"
            made = Node(OPS[op], f"{name}_quantize", [self._float(entry)], _parsed(op, attrs), attrs)
            self.sources[name] = entry
            self.triples[key] = [(made, i) for i in range(3)]
        return self.triples[key]

    def _constant(self, entry: Entry) -> list[Entry]:
        """The quantized form of a weight: three variables if its value is known."""
        node, _ = entry
        if node.op is not None or node.name not in self.offline:
            return self._triple(entry)
        key = id(node), 0
        if key not in self.triples:
            names = (f"{node.name}_quantize", f"{node.name}_quantize_min", f"{node.name}_quantize_max")
            self.triples[key] = [(Node(None, n), 0) for n in names]
        return self.triples[key]

    def _quantized(self, node: Node) -> None:
        assert node.op is not None
        name = node.op.name
        new = (HEAVY | LIGHT)[name]
        count = DATA_INPUTS.get(name, len(node.inputs))
        triples = [
            self._constant(e) if (k and name in HEAVY) else self._triple(e) for k, e in enumerate(node.inputs[:count])
        ]
        rest = [self._float(e) for e in node.inputs[count:]]
        if name == "Embedding":
            triples, rest = [self._constant(node.inputs[1])], [self._float(node.inputs[0])]
            inputs = [*rest, *(e for t in triples for e in t)]
        else:
            inputs = [*(t[0] for t in triples), *rest, *(end for t in triples for end in t[1:])]
        attrs = {k: v for k, v in node.attrs.items() if k in OPS[new].params or k.startswith("__")}
        params = _parsed(new, {k: v for k, v in attrs.items() if not k.startswith("__")})
        made = Node(OPS[new], f"quantized_{node.name}", inputs, params, attrs)
        found = [(made, i) for i in range(3)]
        if name in WIDE:
            attrs, op = {"out_type": self.out_type}, "_contrib_requantize"
            narrow = Node(OPS[op], f"requantize_{node.name}", found, _parsed(op, attrs), attrs)
            found = [(narrow, i) for i in range(3)]
        if name in ("BatchNorm", "elemwise_mul"):
            self.sources[entry_name((node, 0))] = (node, 0)
        self.triples[id(node), 0] = found


def _parsed(op: str, attrs: Mapping[str, Any]) -> dict[str, Any]:
    return OPS[op].parse(attrs)


def with_ranges(symbol: Symbol, ranges: Mapping[str, tuple[float, float]]) -> Symbol:
    """Return a quantized graph with calibrated ranges, by the names of the float values."""
    made: dict[int, Node] = {}
    for node in topological(symbol.entries):
        attrs, params = dict(node.attrs), dict(node.params)
        found = ranges.get(_calibrated_by(node)) if node.op is not None else None
        if found is not None and node.op is not None:
            attrs |= {"min_calib_range": f"{found[0]:f}", "max_calib_range": f"{found[1]:f}"}
            params = node.op.parse({k: v for k, v in attrs.items() if not k.startswith("__")})
        made[id(node)] = Node(node.op, node.name, [(made[id(c)], i) for c, i in node.inputs], params, attrs)
    return Symbol([(made[id(n)], i) for n, i in symbol.entries])


def _calibrated_by(node: Node) -> str:
    """The name of the float values from which a node gets its range, `""` if it needs none."""
    assert node.op is not None
    if node.op.name == "_contrib_quantize_v2":
        return node.name.removesuffix("_quantize")
    if node.op.name == "_contrib_quantized_batch_norm":
        return f"{node.name.removeprefix('quantized_')}_output"
    if node.op.name == "_contrib_requantize" and node.inputs[0][0].op is OPS["_contrib_quantized_elemwise_mul"]:
        return f"{node.name.removeprefix('requantize_')}_0"
    return ""


__all__ = ["Quantizer", "can_quantize", "chosen_nodes", "entry_name", "with_ranges"]
