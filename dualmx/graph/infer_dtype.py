"""Dtype inference over a graph, forwards and backwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..core.dtypes import as_dtype
from ..core.errors import MXNetError
from ..op.schema import TENSOR
from .infer import FLOAT32, GraphNode, Key, ShapeT, complete_inputs, is_known, schema_names

# Inputs of any dtype which take that of the first input unless they have one.
LABEL_LIKE_INPUTS = frozenset(("label", "sequence_length"))


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
                self._labels_follow_data()
            if not self.changed:
                return self.dtypes

    def _labels_follow_data(self) -> None:
        """Give variables of labels and lengths of unknown dtype the dtype of the data beside them."""
        for node in self.order:
            if node.op is None or node.op.variadic:
                continue
            for name in LABEL_LIKE_INPUTS.intersection(names := node.input_names()):
                (data, index), (label, at) = node.inputs[0], node.inputs[names.index(name)]
                if label.op is None and (id(data), index) in self.dtypes and (id(label), at) not in self.dtypes:
                    self._put(node, f"input {name!r}", (id(label), at), self.dtypes[id(data), index])

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
        names = schema_names(node)
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
                results = self._probe(node, [d or FLOAT32 for d in ins])
                for i, key in enumerate(out_keys):
                    self._put(node, f"output {i}", key, results[i])
        elif out_keys[0] in self.dtypes and strict:
            dtype = self.dtypes[out_keys[0]]
            other = np.dtype("float16") if dtype != np.float16 else FLOAT32
            filled = [[t if i in strict else (d or FLOAT32) for i, d in enumerate(ins)] for t in (dtype, other)]
            if [self._probe(node, f)[0] for f in filled] == [dtype, other]:
                for at in strict:
                    self._put(node, f"input {names[at]!r}", keys[at], dtype)

    def _complete(self, node: GraphNode, names: Sequence[str], keys: Sequence[Key]) -> None:
        assert node.op is not None
        if node.op.complete_dtype is None:
            return
        known = {n: self.dtypes[k].name for n, k in zip(names, keys, strict=True) if k in self.dtypes}
        try:
            found = node.op.complete_dtype(SimpleNamespace(**node.params), known)
        except (KeyError, TypeError):
            return
        at = dict(zip(names, keys, strict=True))
        at.update((f"output{i}" if i else "output", (id(node), i)) for i in range(node.n_outputs))
        for name, dtype in (found or {}).items():
            if name in at and at[name] not in self.dtypes and dtype is not None:
                self._put(node, f"input {name!r}", at[name], as_dtype(dtype))

    def _probe(self, node: GraphNode, ins: Sequence[np.dtype]) -> list[np.dtype]:
        """Result dtypes of a call for these input dtypes, by inference on known or on made-up shapes."""
        shapes = [self.shapes.get((id(child), index)) for child, index in node.inputs]
        candidates: list[Sequence[ShapeT | None]] = [shapes] if all(map(is_known, shapes)) else []
        for shape in [()] if not node.inputs else [(8,) * rank for rank in (4, 2, 3, 1, 5)]:
            candidates.append(_probe_shapes(node, shape))
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


def _probe_shapes(node: GraphNode, shape: ShapeT) -> list[ShapeT | None]:
    """Input shapes for trying a call: `shape` for the first input, what completes it for the others."""
    assert node.op is not None
    names = schema_names(node)
    found: Mapping[str, Any] = {}
    if node.op.complete is not None and names:
        try:
            found = complete_inputs(node, {names[0]: shape})
        except MXNetError:
            found = {}
    made = [tuple(found.get(name) or shape) for name in names]
    return [shape if i == 0 else (s if is_known(s) else shape) for i, s in enumerate(made)]
