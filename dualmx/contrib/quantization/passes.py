"""Passes that turn a float graph into an 8-bit one and insert calibrated ranges."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ...op.registry import OPS
from ...op.traits import Quantized
from ...symbol.node import Entry, Node, topological
from ...symbol.symbol import Symbol

QUANTIZE, REQUANTIZE, DEQUANTIZE = (OPS[f"_contrib_{n}"] for n in ("quantize_v2", "requantize", "dequantize"))


def entry_name(entry: Entry) -> str:
    """The name under which the values of an entry are calibrated."""
    node, index = entry
    if node.op is None:
        return node.name
    return f"{node.name}_output" if node.op.traits.has_named_output and index == 0 else f"{node.name}_{index}"


def can_quantize(node: Node) -> bool:
    """True if there is a quantized form of a node."""
    assert node.op is not None
    form = node.op.traits.quantized
    return form is not None and form.accepts(node.params)


def chosen_nodes(
    order: Sequence[Node], names: Collection[str], operators: Collection[str], mode: str, ranges: bool
) -> set[int]:
    """Return the `id`s of the nodes to quantize.

    In mode "full" all that can be; in mode "smart" convolutions and dense layers, and what lies between them.
    Normalization needs a known range of its results (`ranges`).
    """
    forms: dict[int, Quantized] = {}
    for n in order:
        if n.op is not None and n.name not in names and n.op.name not in operators and can_quantize(n):
            form = n.op.traits.quantized
            if form is not None and (ranges or not form.needs_range):
                forms[id(n)] = form
    if mode == "full":
        return set(forms)
    able = {n for n, form in forms.items() if not form.is_table}
    heavy = {n for n, form in forms.items() if form.starts}
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
            made = Node(DEQUANTIZE, f"{entry[0].name}_dequantize", self.triples[key], DEQUANTIZE.parse({}))
            self.plain[key] = (made, 0)
        return self.plain[key]

    def _triple(self, entry: Entry) -> list[Entry]:
        """The quantized form of an entry: values, least and largest of the range."""
        key = id(entry[0]), entry[1]
        if key not in self.triples:
            name = entry_name(entry)
            attrs = {"out_type": self.out_type}
            made = Node(QUANTIZE, f"{name}_quantize", [self._float(entry)], QUANTIZE.parse(attrs), attrs)
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
        form = node.op.traits.quantized
        assert form is not None
        new, count = OPS[form.name], len(node.inputs) if form.data_inputs is None else form.data_inputs
        triples = [
            self._constant(e) if (k and form.starts) else self._triple(e) for k, e in enumerate(node.inputs[:count])
        ]
        rest = [self._float(e) for e in node.inputs[count:]]
        if form.is_table:
            triples, rest = [self._constant(node.inputs[1])], [self._float(node.inputs[0])]
            inputs = [*rest, *(e for t in triples for e in t)]
        else:
            inputs = [*(t[0] for t in triples), *rest, *(end for t in triples for end in t[1:])]
        attrs = {k: v for k, v in node.attrs.items() if k in new.params or k.startswith("__")}
        params = new.parse({k: v for k, v in attrs.items() if not k.startswith("__")})
        made = Node(new, f"quantized_{node.name}", inputs, params, attrs)
        found = [(made, i) for i in range(3)]
        if form.is_wide:
            attrs = {"out_type": self.out_type}
            narrow = Node(REQUANTIZE, f"requantize_{node.name}", found, REQUANTIZE.parse(attrs), attrs)
            found = [(narrow, i) for i in range(3)]
        if form.is_calibrated:
            self.sources[entry_name((node, 0))] = (node, 0)
        self.triples[id(node), 0] = found


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
    if node.op is QUANTIZE:
        return node.name.removesuffix("_quantize")
    if node.op is OPS["_contrib_quantized_batch_norm"]:
        return f"{node.name.removeprefix('quantized_')}_output"
    if node.op is REQUANTIZE and node.inputs[0][0].op is OPS["_contrib_quantized_elemwise_mul"]:
        return f"{node.name.removeprefix('requantize_')}_0"
    return ""


__all__ = ["Quantizer", "can_quantize", "chosen_nodes", "entry_name", "with_ranges"]
