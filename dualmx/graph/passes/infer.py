"""Two-way inference of shapes and element types over a graph of nodes.

An unknown shape is `None`, an unknown dimension of a known rank is 0. Facts travel forwards through `Call.infer`, and
backwards and sideways through the operators' `complete=` functions, until nothing changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from ...core.dtypes import as_dtype
from ...core.errors import ArgumentError, MXNetError
from ...op.registry import Call, Op
from ...op.schema import TENSOR

ShapeT = tuple[int, ...]
Key = tuple[int, int]  # (id of a node, index of its output)
FLOAT32 = np.dtype("float32")
# Sizes put in place of unknown dimensions: a result that is the same for all of them does not depend on them.
STAND_INS = (1, 5040, 55440)
# Shapes no operator has built into its parameters, to see whether a call keeps the shape of its input.
TRIAL_SIZES = (1009, 2003, 3001, 4001, 5003, 6007)


class GraphNode(Protocol):
    """What inference reads of a node; a variable has no op."""

    op: Op | None
    name: str
    params: dict[str, Any]
    inputs: list[Any]

    @property
    def call(self) -> Call: ...

    @property
    def n_outputs(self) -> int: ...

    def input_names(self) -> list[str]: ...


def is_known(shape: ShapeT | None) -> bool:
    """True if rank and all dimensions are known."""
    return shape is not None and 0 not in shape


def merge(old: ShapeT | None, new: ShapeT | None) -> ShapeT | None:
    """Combine two partial shapes; `ValueError` if they contradict each other."""
    if old is None or new is None:
        return new if old is None else old
    if len(old) != len(new) or any(a and b and a != b for a, b in zip(old, new, strict=True)):
        raise ValueError(f"{new} against {old}")
    return tuple(a or b for a, b in zip(old, new, strict=True))


class _Params:
    """Parameters as attributes, as `complete=` functions read them."""

    def __init__(self, params: Mapping[str, Any]):
        self.__dict__.update(params)


class ShapePass:
    """Shapes of all entries of `order` (nodes in topological order) that follow from those of some variables.

    Args:
        order: the nodes.
        known: shape by `id` of a variable node.
    """

    def __init__(self, order: Sequence[GraphNode], known: Mapping[int, ShapeT | None]):
        self.order = order
        self.shapes: dict[Key, ShapeT | None] = {(node, 0): shape for node, shape in known.items()}
        self.settled: set[int] = set()
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
            todo = [node for node in todo if id(node) not in self.settled]
            for node in reversed(todo):
                self._visit(node)
            if not self.changed:
                break
        return self.shapes

    def _visit(self, node: GraphNode) -> None:
        if id(node) in self.settled:
            return
        keys = [(id(child), index) for child, index in node.inputs]
        self._complete(node, keys)
        ins = [self.shapes.get(k) for k in keys]
        if all(map(is_known, ins)):
            self._forward(node, [s for s in ins if s is not None])
            self.settled.add(id(node))
            return
        outs = [self.shapes.get((id(node), i)) for i in range(node.n_outputs)]
        ranked = [s for s in ins if s is not None]
        if outs[0] is not None and keeps_shape(node.call, len(ins), len(outs[0])):
            for name, key in zip(_schema_names(node), keys, strict=True):
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
        names = _schema_names(node)
        known = {n: s for n, k in zip(names, keys, strict=True) if (s := self.shapes.get(k)) is not None}
        for i in range(node.n_outputs):
            shape = self.shapes.get((id(node), i))
            if shape is not None:
                known[f"output{i}" if i else "output"] = shape
        try:
            found = op.complete(_Params(node.params), known)
        except MXNetError as e:
            raise _at(node, e) from None
        except (KeyError, IndexError, TypeError, ZeroDivisionError):
            return
        at = dict(zip(names, keys, strict=True))
        for name, shape in (found or {}).items():
            if name in at and shape is not None:
                self._put(node, f"input {name!r}", at[name], tuple(max(int(d), 0) for d in shape))

    def _forward(self, node: GraphNode, ins: Sequence[ShapeT]) -> None:
        try:
            results = infer_call(node.call, ins)
        except MXNetError as e:
            raise _at(node, e) from None
        for i in range(node.n_outputs):
            self._put(node, f"output {i}", (id(node), i), results[i])

    def _forward_partly(self, node: GraphNode, ins: Sequence[ShapeT]) -> None:
        """Infer outputs from inputs with unknown dimensions: what does not vary with them is known."""
        tries: list[list[ShapeT]] = []
        for size in dict.fromkeys((*STAND_INS, *(d for s in ins for d in s if d))):
            try:
                tries.append(infer_call(node.call, [tuple(d or size for d in s) for s in ins]))
            except MXNetError:
                continue
        for i in range(node.n_outputs if tries else 0):
            shapes = [t[i] for t in tries]
            if len({len(s) for s in shapes}) == 1:
                self._put(
                    node,
                    f"output {i}",
                    (id(node), i),
                    tuple(d[0] if len(set(d)) == 1 else 0 for d in zip(*shapes, strict=True)),
                )

    def _solve(self, node: GraphNode, keys: Sequence[Key], ins: Sequence[ShapeT], outs: Sequence[ShapeT]) -> None:
        """Find the one size, among those of the outputs, that in place of unknown dimensions gives these outputs."""

        def gives(size: int) -> bool:
            try:
                return infer_call(node.call, [tuple(d or size for d in s) for s in ins])[: len(outs)] == list(outs)
            except MXNetError:
                return False

        fitting = [size for size in sorted({d for s in outs for d in s}) if gives(size)]
        if len(fitting) == 1 and not gives(fitting[0] + 1):
            for name, key, shape in zip(_schema_names(node), keys, ins, strict=True):
                self._put(node, f"input {name!r}", key, tuple(d or fitting[0] for d in shape))


def infer_shapes(order: Sequence[GraphNode], known: Mapping[int, ShapeT | None]) -> dict[Key, ShapeT | None]:
    """Infer the shapes of all entries of `order` from those of the variables in `known` (by `id`); see `ShapePass`."""
    return ShapePass(order, known).run()


def _schema_names(node: GraphNode) -> list[str]:
    """Input names as `complete=` functions know them."""
    assert node.op is not None
    return node.op.input_names(node.params, len(node.inputs)) if node.op.variadic else node.input_names()


def _at(node: GraphNode, error: MXNetError) -> MXNetError:
    return type(error)(f"in node {node.name!r}: {error}")


def infer_call(call: Call, ins: Sequence[ShapeT]) -> list[ShapeT]:
    """Output shapes of a call for fully known input shapes."""
    return [shape for shape, _ in call.infer(tuple((s, FLOAT32) for s in ins))[: call.n_outputs]]


_keeps: WeakKeyDictionary[Call, dict[tuple[int, int], bool]] = WeakKeyDictionary()


def keeps_shape(call: Call, n_inputs: int, rank: int) -> bool:
    """True if the call maps `n_inputs` equal shapes of `rank` to that shape and rejects unequal ones."""
    known = _keeps.setdefault(call, {})
    if (n_inputs, rank) not in known:
        known[n_inputs, rank] = n_inputs > 0 and 0 < rank <= len(TRIAL_SIZES) and _try_shape(call, n_inputs, rank)
    return known[n_inputs, rank]


def _try_shape(call: Call, n_inputs: int, rank: int) -> bool:
    trial = TRIAL_SIZES[:rank]
    try:
        if infer_call(call, [trial] * n_inputs)[0] != trial:
            return False
    except MXNetError:
        return False
    for at in range(n_inputs) if n_inputs > 1 else ():
        try:
            infer_call(call, [(1, *trial[1:]) if i == at else trial for i in range(n_inputs)])
            return False
        except MXNetError:
            continue
    return True


class DtypePass:
    """Element types of all entries of `order` that follow from those of some variables.

    Args:
        order: nodes in topological order.
        known: dtype by `id` of a variable node.
        shapes: shapes already inferred, which make asking an operator for its result dtypes exact.
    """

    def __init__(
        self,
        order: Sequence[GraphNode],
        known: Mapping[int, np.dtype],
        shapes: Mapping[Key, ShapeT | None] | None = None,
    ):
        self.order = order
        self.dtypes: dict[Key, np.dtype] = {(node, 0): dtype for node, dtype in known.items()}
        self.shapes = shapes or {}
        self.changed = False

    def run(self) -> dict[Key, np.dtype]:
        """Return the dtype of every entry for which one follows; `MXNetError` on a contradiction."""
        while True:
            self.changed = False
            for node in self.order:
                if node.op is not None:
                    self._visit(node)
            for node in reversed(self.order):
                if node.op is not None:
                    self._visit(node)
            if not self.changed:
                self._follow_data()
            if not self.changed:
                return self.dtypes

    def _follow_data(self) -> None:
        """Give label variables of unknown dtype the dtype of the data beside them."""
        for node in self.order:
            if node.op is None or node.op.variadic or "label" not in (names := node.input_names()):
                continue
            (data, index), (label, at) = node.inputs[0], node.inputs[names.index("label")]
            if label.op is None and (id(data), index) in self.dtypes and (id(label), at) not in self.dtypes:
                self._put(node, "input 'label'", (id(label), at), self.dtypes[id(data), index])

    def _put(self, node: GraphNode, what: str, key: Key, dtype: np.dtype) -> None:
        old = self.dtypes.get(key)
        if old is None:
            self.dtypes[key] = dtype
            self.changed = True
        elif old != dtype:
            raise MXNetError(
                f"infer_type: node {node.name!r} ({node.op.name if node.op else 'variable'}): {what} is {old}, but "
                f"{dtype} follows from the others; there is no promotion, cast with Cast"
            )

    def _visit(self, node: GraphNode) -> None:
        assert node.op is not None
        keys = [(id(child), index) for child, index in node.inputs]
        names = _schema_names(node)
        strict = _strict_positions(node)
        for at in strict:
            dtype = self.dtypes.get(keys[at])
            if dtype is not None:
                for other in strict:
                    self._put(node, f"input {names[other]!r}", keys[other], dtype)
                break
        self._complete(node, names, keys)
        out_keys = [(id(node), i) for i in range(node.n_outputs)]
        ins = [self.dtypes.get(k) for k in keys]
        if all(ins[at] is not None for at in strict) and (strict or None not in ins):
            if any(k not in self.dtypes for k in out_keys):
                results = self._ask(node, [d or FLOAT32 for d in ins])
                for i, key in enumerate(out_keys):
                    self._put(node, f"output {i}", key, results[i])
        elif out_keys[0] in self.dtypes and strict:
            dtype = self.dtypes[out_keys[0]]
            other = np.dtype("float16") if dtype != np.float16 else FLOAT32
            filled = [[t if i in strict else (d or FLOAT32) for i, d in enumerate(ins)] for t in (dtype, other)]
            if [self._ask(node, f)[0] for f in filled] == [dtype, other]:
                for at in strict:
                    self._put(node, f"input {names[at]!r}", keys[at], dtype)

    def _complete(self, node: GraphNode, names: Sequence[str], keys: Sequence[Key]) -> None:
        assert node.op is not None
        if node.op.complete_dtype is None:
            return
        known = {n: self.dtypes[k].name for n, k in zip(names, keys, strict=True) if k in self.dtypes}
        try:
            found = node.op.complete_dtype(_Params(node.params), known)
        except (KeyError, TypeError):
            return
        at = dict(zip(names, keys, strict=True))
        for name, dtype in (found or {}).items():
            if name in at and at[name] not in self.dtypes and dtype is not None:
                self._put(node, f"input {name!r}", at[name], as_dtype(dtype))

    def _ask(self, node: GraphNode, ins: Sequence[np.dtype]) -> list[np.dtype]:
        """Result dtypes of a call for these input dtypes, by inference on known or on made-up shapes."""
        shapes = [self.shapes.get((id(child), index)) for child, index in node.inputs]
        candidates: list[Sequence[ShapeT | None]] = [shapes] if all(map(is_known, shapes)) else []
        for shape in [()] if not node.inputs else [(8,) * rank for rank in (4, 2, 3, 1, 5)]:
            candidates.append(_made_up(node, shape))
        for trial in candidates:
            try:
                results = node.call.infer(tuple((s, d) for s, d in zip(trial, ins, strict=True) if s is not None))
                return [dtype for _, dtype in results]
            except MXNetError:
                continue
        named = node.params.get("dtype")
        fallback = as_dtype(named) if named else next((ins[i] for i in _strict_positions(node)), FLOAT32)
        return [fallback] * node.n_outputs


def infer_dtypes(
    order: Sequence[GraphNode], known: Mapping[int, np.dtype], shapes: Mapping[Key, ShapeT | None] | None = None
) -> dict[Key, np.dtype]:
    """Infer the dtypes of all entries of `order` from those of the variables in `known`; see `DtypePass`."""
    return DtypePass(order, known, shapes).run()


def default_dtypes(
    order: Sequence[GraphNode], known: Mapping[int, np.dtype], shapes: Mapping[Key, ShapeT | None] | None = None
) -> dict[Key, np.dtype]:
    """Like `infer_dtypes`, with a default for variables whose dtype does not follow.

    Inputs whose dtype is independent of the others become float32; if none of these is left, the first variable
    becomes float32 and inference goes on from there.
    """
    known = dict(known)
    strict_use = {id(node.inputs[at][0]) for node in order if node.op is not None for at in _strict_positions(node)}
    while True:
        dtypes = infer_dtypes(order, known, shapes)
        missing = [n for n in order if n.op is None and (id(n), 0) not in dtypes]
        if not missing:
            return dtypes
        free = [n for n in missing if id(n) not in strict_use]
        known.update((id(n), FLOAT32) for n in free or missing[:1])


def _strict_positions(node: GraphNode) -> list[int]:
    """Positions of the inputs that must share one dtype."""
    op = node.op
    assert op is not None
    if op.variadic:
        return list(range(len(node.inputs))) if op.inputs[0].role is TENSOR else []
    roles = {i.name: i.role for i in op.inputs}
    return [at for at, name in enumerate(node.input_names()) if roles[name] is TENSOR]


def _made_up(node: GraphNode, shape: ShapeT) -> list[ShapeT | None]:
    """Input shapes for trying a call: `shape` for the first input, what completes it for the others."""
    assert node.op is not None
    names = _schema_names(node)
    found: Mapping[str, Any] = {}
    if node.op.complete is not None and names:
        try:
            found = node.op.complete(_Params(node.params), {names[0]: shape}) or {}
        except (ArgumentError, MXNetError, KeyError, IndexError, TypeError, ZeroDivisionError):
            found = {}
    made = [tuple(found.get(name) or shape) for name in names]
    return [shape if i == 0 else (s if is_known(s) else shape) for i, s in enumerate(made)]
