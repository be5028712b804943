"""Shape inference over a graph, forwards and backwards.

An unknown shape is `None`; an unknown dimension is 0, or -1 under NumPy semantics (`mx.npx.set_np`), where 0 is a size.
Shapes travel forwards through `Call.infer`, backwards and sideways through the operators' `complete=` functions, until
nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from types import SimpleNamespace
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from ..core import np_mode
from ..core.errors import DtypeError, MXNetError
from ..op.registry import Call, Op

ShapeT = tuple[int, ...]
Key = tuple[int, int]  # (id of a node, index of its output)
FLOAT32 = np.dtype("float32")
# Shapes do not depend on dtypes, but operators on quantized values refuse float32.
QUANTIZED = (np.dtype("int8"), np.dtype("int32"), np.dtype("uint8"))
# Sizes put in place of unknown dimensions: a result that is the same for all of them does not depend on them.
PROBE_SIZES = (1, 5040, 55440)
# Shapes no operator has built into its parameters, to see whether a call keeps the shape of its input.
MAX_PROBES = ((1009,), (1009, 2003), (1009, 1, 3001), (1009, 2003, 1, 4001), (1009, 1, 2003, 3001, 4001))


class GraphNode(Protocol):
    """What inference reads of a node; a variable has no op."""

    op: Op | None
    name: str
    params: dict[str, Any]
    inputs: list[Any]

    @property
    def call(self) -> Call:
        """The op with the node's parameters."""
        ...

    @property
    def n_outputs(self) -> int:
        """How many outputs the node has, hidden ones included."""
        ...

    def input_names(self) -> list[str]:
        """Names of the inputs that the node has."""
        ...


def unknown_size() -> int:
    """What stands for an unknown dimension: 0, or -1 under NumPy semantics."""
    return -1 if np_mode.shape.get() else 0


def is_known(shape: ShapeT | None) -> bool:
    """True if rank and all dimensions are known."""
    return shape is not None and unknown_size() not in shape


def merge(old: ShapeT | None, new: ShapeT | None) -> ShapeT | None:
    """Combine two partial shapes; `ValueError` if they contradict each other."""
    if old is None or new is None:
        return new if old is None else old
    gap = unknown_size()
    if len(old) != len(new) or any(gap not in (a, b) and a != b for a, b in zip(old, new, strict=True)):
        raise ValueError(f"{new} against {old}")
    return tuple(b if a == gap else a for a, b in zip(old, new, strict=True))


def _with_size(shape: ShapeT, size: int) -> ShapeT:
    """A shape with `size` in place of unknown dimensions."""
    gap = unknown_size()
    return tuple(size if d == gap else d for d in shape)


class ShapePass:
    """Shapes of all entries of `order` (nodes in topological order) that follow from those of some variables.

    Args:
        order: the nodes.
        known: shape by `id` of a variable node.
    """

    def __init__(self, order: Sequence[GraphNode], known: Mapping[int, ShapeT | None]):
        self.order = order
        self.shapes: dict[Key, ShapeT | None] = {(node, 0): shape for node, shape in known.items()}
        self.finished: set[int] = set()
        self.changed = False

    def run(self) -> dict[Key, ShapeT | None]:
        """Return the shape of every entry, `None` where the rank is unknown.

        Raises:
            MXNetError: two facts contradict each other, or an operator rejects its inputs.
        """
        todo = [node for node in self.order if node.op is not None]
        while todo:
            self.changed = False
            for node in todo:
                self._visit(node)
            todo = [node for node in todo if id(node) not in self.finished]
            for node in reversed(todo):
                self._visit(node)
            if not self.changed:
                break
        return self.shapes

    def _visit(self, node: GraphNode) -> None:
        if id(node) in self.finished:
            return
        keys = [(id(child), index) for child, index in node.inputs]
        self._complete(node, keys)
        ins = [self.shapes.get(k) for k in keys]
        if all(map(is_known, ins)):
            self._forward(node, [s for s in ins if s is not None])
            self.finished.add(id(node))
            return
        outs = [self.shapes.get((id(node), i)) for i in range(node.n_outputs)]
        ranked = [s for s in ins if s is not None]
        if outs[0] is not None and keeps_shape(node.call, len(ins), len(outs[0])):
            for name, key in zip(schema_names(node), keys, strict=True):
                self._put(node, f"input {name!r}", key, outs[0])
        elif len(ranked) == len(ins):
            if all(map(is_known, outs)):
                self._solve(node, keys, ranked, [s for s in outs if s is not None])
            else:
                self._forward_partly(node, ranked)

    def _put(self, node: GraphNode, what: str, key: Key, shape: ShapeT | None) -> None:
        """Record a fact about input or output `what` of `node`."""
        old = self.shapes.get(key)
        try:
            new = merge(old, shape)
        except ValueError:
            raise MXNetError(
                f"infer_shape: node {node.name!r} ({node.op.name if node.op else 'variable'}): {what} has shape {old}, "
                f"but {shape} follows from the other shapes"
            ) from None
        if new != old:
            self.shapes[key] = new
            self.changed = True

    def _complete(self, node: GraphNode, keys: Sequence[Key]) -> None:
        op = node.op
        assert op is not None
        if op.complete is None:
            return
        names = schema_names(node)
        known = {n: s for n, k in zip(names, keys, strict=True) if (s := self.shapes.get(k)) is not None}
        for i in range(node.n_outputs):
            shape = self.shapes.get((id(node), i))
            if shape is not None:
                known[f"output{i}" if i else "output"] = shape
        try:
            found = dict(complete_inputs(node, {n: _with_size(s, 0) for n, s in known.items()}))
        except MXNetError as e:
            raise _at_node(node, e) from None
        gap = unknown_size()
        partial = {n for n, s in known.items() if gap in s}
        if partial:
            for name, shape in _complete_inputs_partially(node, known).items():
                if name not in partial and found.get(name) is None:
                    found[name] = shape
        at = dict(zip(names, keys, strict=True))
        for name, shape in found.items():
            if name in at and shape is not None:
                self._put(node, f"input {name!r}", at[name], tuple(int(d) if d > 0 else gap for d in shape))

    def _forward(self, node: GraphNode, ins: Sequence[ShapeT]) -> None:
        assert node.op is not None
        try:
            results = infer_call(node.call, ins)
        except MXNetError as e:
            if node.op.dynamic:  # the shape depends on values
                return
            raise _at_node(node, e) from None
        for i in range(node.n_outputs):
            self._put(node, f"output {i}", (id(node), i), results[i])

    def _forward_partly(self, node: GraphNode, ins: Sequence[ShapeT]) -> None:
        """Infer outputs from inputs with unknown dimensions: what does not vary with them is known."""
        tries: list[list[ShapeT]] = []
        for size in _probe_sizes(ins):
            try:
                tries.append(infer_call(node.call, [_with_size(s, size) for s in ins]))
            except MXNetError:
                continue
        for i in range(node.n_outputs if tries else 0):
            self._put(node, f"output {i}", (id(node), i), _common_shape([t[i] for t in tries]))

    def _solve(self, node: GraphNode, keys: Sequence[Key], ins: Sequence[ShapeT], outs: Sequence[ShapeT]) -> None:
        """Find the one size, among those of the outputs, that in place of unknown dimensions gives these outputs."""

        def fits(size: int) -> bool:
            try:
                return infer_call(node.call, [_with_size(s, size) for s in ins])[: len(outs)] == list(outs)
            except MXNetError:
                return False

        fitting = [size for size in sorted({d for s in outs for d in s}) if fits(size)]
        if len(fitting) == 1 and not fits(fitting[0] + 1):
            for name, key, shape in zip(schema_names(node), keys, ins, strict=True):
                self._put(node, f"input {name!r}", key, _with_size(shape, fitting[0]))


def infer_shapes(order: Sequence[GraphNode], known: Mapping[int, ShapeT | None]) -> dict[Key, ShapeT | None]:
    """Infer the shapes of all entries of `order` from those of the variables in `known` (by `id`); see `ShapePass`."""
    return ShapePass(order, known).run()


def schema_names(node: GraphNode) -> list[str]:
    """Input names as `complete=` functions know them."""
    assert node.op is not None
    return node.op.input_names(node.params, len(node.inputs)) if node.op.variadic else node.input_names()


def _at_node(node: GraphNode, error: MXNetError) -> MXNetError:
    return type(error)(f"in node {node.name!r}: {error}")


def complete_inputs(node: GraphNode, known: Mapping[str, ShapeT]) -> Mapping[str, ShapeT | None]:
    """What the operator's `complete=` function deduces; nothing if it lacks what it needs."""
    assert node.op is not None and node.op.complete is not None
    try:
        return node.op.complete(SimpleNamespace(**node.params), dict(known)) or {}
    except (KeyError, IndexError, TypeError, ZeroDivisionError):
        return {}


def _complete_inputs_partially(node: GraphNode, known: Mapping[str, ShapeT]) -> dict[str, ShapeT | None]:
    """What follows whatever the unknown dimensions of `known` are."""
    tries = []
    for size in _probe_sizes(known.values()):
        try:
            tries.append(complete_inputs(node, {n: _with_size(s, size) for n, s in known.items()}))
        except MXNetError:
            continue
    return {n: _common_shape([t.get(n) for t in tries]) for n in (tries[0] if tries else {})}


def _probe_sizes(shapes: Iterable[ShapeT]) -> list[int]:
    """Sizes to try for unknown dimensions: some unrelated ones, and those of the known dimensions."""
    return list(dict.fromkeys((*PROBE_SIZES, *(d for s in shapes for d in s if d > 0))))


def _common_shape(shapes: Sequence[ShapeT | None]) -> ShapeT | None:
    """What is common to several shapes: unknown where dimensions differ, `None` where ranks do."""
    if None in shapes or len({len(s) for s in shapes if s is not None}) != 1:
        return None
    return tuple(
        d[0] if len(set(d)) == 1 else unknown_size() for d in zip(*(s for s in shapes if s is not None), strict=True)
    )


def infer_call(call: Call, ins: Sequence[ShapeT]) -> list[ShapeT]:
    """Output shapes of a call for fully known input shapes."""
    refused: DtypeError | None = None
    for dtype in (FLOAT32, *QUANTIZED):
        try:
            return [shape for shape, _ in call.infer(tuple((s, dtype) for s in ins))[: call.n_outputs]]
        except DtypeError as e:
            refused = e
    assert refused is not None
    raise refused


_keeps: WeakKeyDictionary[Call, dict[int, frozenset[int]]] = WeakKeyDictionary()


def keeps_shape(call: Call, n_inputs: int, rank: int) -> bool:
    """True if the call maps `n_inputs` equal shapes to that shape, whatever their rank, and rejects unequal ones."""
    known = _keeps.setdefault(call, {})
    if n_inputs not in known:
        known[n_inputs] = _preserved_ranks(call, n_inputs)
    return rank in known[n_inputs]


def _preserved_ranks(call: Call, n_inputs: int) -> frozenset[int]:
    """Ranks that a shape-preserving call accepts; none if it changes the shape for some rank."""
    kept = set()
    for trial in MAX_PROBES:
        try:
            if infer_call(call, [trial] * n_inputs)[0] != trial:
                return frozenset()
        except MXNetError:
            continue
        kept.add(len(trial))
        others = [s for s in ((1, *trial[1:]), trial[:1]) if s != trial]
        for at, other in product(range(n_inputs), others) if n_inputs > 1 else ():
            try:
                infer_call(call, [other if i == at else trial for i in range(n_inputs)])
                return frozenset()
            except MXNetError:
                pass
    return frozenset(kept)
