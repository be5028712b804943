"""Export a symbol and its parameters as an ONNX model."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import as_dtype
from ...core.errors import ArgumentError, ArgumentTypeError, MXNetError
from ...graph.infer import infer_shapes
from ...graph.infer_dtype import infer_dtypes
from ...ndarray import NDArray, array, invoke
from ...ndarray import load as load_arrays
from ...symbol.node import Node, split_variables, topological
from ...symbol.symbol import Symbol
from ...symbol.symbol import load as load_symbol
from .export_rules import OPERATORS, OPSET, onnx


class Graph:
    """An ONNX graph that grows: nodes and constants, with names that occur once."""

    def __init__(self, shapes: Mapping[Any, Any], dtypes: Mapping[Any, Any], values: Mapping[str, np.ndarray]):
        self.nodes: list[Any] = []
        self.constants: dict[str, np.ndarray] = {}
        self.names: dict[tuple[int, int], str] = {}
        self.shapes, self.dtypes, self.values = shapes, dtypes, values
        self._taken: set[str] = set()

    def fresh(self, name: str) -> str:
        """Return `name`, with a number appended if it is in use."""
        found, k = name, 0
        while found in self._taken:
            k += 1
            found = f"{name}_{k}"
        self._taken.add(found)
        return found

    def constant(self, values: Any, name: str) -> str:
        """Add a constant and return its name."""
        name = self.fresh(name)
        self.constants[name] = np.asarray(values)
        return name

    def node(self, op: str, inputs: Sequence[str], name: str, outputs: int = 1, **attrs: Any) -> Any:
        """Add a node and return the name of its output, or a list of several."""
        made = [self.fresh(f"{name}_out{i}" if outputs > 1 else name) for i in range(outputs)]
        given = {k: v for k, v in attrs.items() if v is not None}
        self.nodes.append(onnx().helper.make_node(op, list(inputs), made, name=self.fresh(f"{name}_node"), **given))
        return made[0] if outputs == 1 else made

    def shape(self, node: Node, k: int) -> tuple[int, ...]:
        """The shape of input `k` of a node."""
        child, index = node.inputs[k]
        found = self.shapes.get((id(child), index))
        if found is None:
            raise MXNetError(f"export_model: the shape of input {k} of node {node.name!r} is unknown")
        return found

    def dtype(self, node: Node, k: int) -> np.dtype:
        """The dtype of input `k` of a node."""
        child, index = node.inputs[k]
        return np.dtype(self.dtypes.get((id(child), index), np.float32))

    def value(self, node: Node, k: int) -> np.ndarray:
        """The values of input `k` of a node, a parameter.

        Raises:
            MXNetError: it is none.
        """
        name = self.names.get((id(node.inputs[k][0]), node.inputs[k][1]), "")
        if name not in self.constants:
            raise MXNetError(f"export_model: input {k} of node {node.name!r} has to follow from parameters alone")
        return self.constants[name]


def _parameters(params: Any) -> dict[str, np.ndarray]:
    if isinstance(params, (str, os.PathLike)):
        params = load_arrays(os.fspath(params))
    if isinstance(params, (list, tuple)):
        params = {n: a for part in params for n, a in part.items()}
    if not isinstance(params, Mapping):
        raise ArgumentTypeError(
            f"export_model: params is a {type(params).__name__}: expected a dict, a list, or a path"
        )
    return {
        n.partition(":")[2] if n.startswith(("arg:", "aux:")) else n: a.asnumpy() if isinstance(a, NDArray) else a
        for n, a in params.items()
    }


def _model(graph: Graph, inputs: Sequence[tuple[str, Any, Any]], outputs: Sequence[tuple[str, Any, Any]]) -> Any:
    """Return the ONNX model of a graph; inputs and outputs are given by name, dtype and shape."""
    package = onnx()
    helper = package.helper

    def infos(values: Sequence[tuple[str, Any, Any]]) -> list[Any]:
        return [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
            for name, dtype, shape in values
        ]

    used = {n for node in graph.nodes for n in node.input} | {name for name, _, _ in outputs}
    constants = [
        package.numpy_helper.from_array(np.asarray(a, order="C"), n) for n, a in graph.constants.items() if n in used
    ]
    made = helper.make_graph(graph.nodes, "dualmx", infos(inputs), infos(outputs), constants)
    model = helper.make_model(made, producer_name="dualmx", opset_imports=[helper.make_opsetid("", OPSET)])
    model.ir_version = min(model.ir_version, 8)
    return model


def export_model(
    sym: Symbol | str, params: Any, in_shapes: Any = None, in_types: Any = np.float32,
    onnx_file_path: str = "model.onnx", verbose: bool = False, dynamic: bool = False,
    dynamic_input_shapes: Any = None, run_shape_inference: bool = False, input_type: Any = None,
    input_shape: Any = None,
) -> str:  # fmt: skip
    """Write a network as an ONNX model (opset 13) for inference and return the path of the file.

    Args:
        sym: the network, or the path of its JSON.
        params: parameters: a dict, a list of dicts (arguments, states), or the path of a file.
        in_shapes: shapes of the inputs, in the order of `list_arguments`.
        in_types: dtype of the inputs, or a list of them.
        onnx_file_path: where to write.
        verbose: print the graph.
        dynamic: the first axis of every input, or what is None in `dynamic_input_shapes`, may have any length.
        dynamic_input_shapes: shapes with None, or a name, where the length is free.
        run_shape_inference: add the shapes of inner values, by ONNX's own inference.
        input_type, input_shape: older names of `in_types` and `in_shapes`.

    Raises:
        MXNetError: the package onnx is not installed, a node has no counterpart (the text names it), or a shape does
            not follow. ArgumentError: a number of shapes that is not that of the inputs.
    """
    package = onnx()
    symbol = load_symbol(sym) if isinstance(sym, (str, os.PathLike)) else sym
    if not isinstance(symbol, Symbol):
        raise ArgumentTypeError(f"export_model: sym={sym!r}: expected a Symbol or the path of one")
    values = _parameters(params)
    order = topological(symbol.entries)
    arguments, states = split_variables(order)
    labels = _labels(order)
    inputs = [v for v in arguments if v.name not in values and id(v) not in labels]
    shapes = list(in_shapes if in_shapes is not None else input_shape or [])
    if shapes and isinstance(shapes[0], int):
        shapes = [tuple(shapes)]
    if len(shapes) != len(inputs):
        raise ArgumentError(f"export_model: {len(shapes)} shapes for the inputs {[v.name for v in inputs]}")
    given_types = in_types if input_type is None else input_type
    types = list(given_types) if isinstance(given_types, (list, tuple)) else [given_types] * len(inputs)
    known = {id(v): tuple(s) for v, s in zip(inputs, shapes, strict=True)}
    known |= {id(v): values[v.name].shape for v in (*arguments, *states) if v.name in values}
    dtypes = {id(v): as_dtype(t) for v, t in zip(inputs, types, strict=True)}
    found = infer_shapes(order, known)
    kinds = infer_dtypes(order, dtypes | {id(v): values[v.name].dtype for v in arguments if v.name in values})
    graph = Graph(found, kinds, values)
    _convert(graph, order, labels)
    heads = [graph.names[id(n), i] for n, i in symbol.entries]
    free = list(dynamic_input_shapes or [(None, *s[1:]) for s in shapes]) if dynamic else shapes
    outs = []
    for name, (n, i) in zip(heads, symbol.entries, strict=True):
        shape = found.get((id(n), i)) or ()
        outs.append((name, kinds.get((id(n), i), np.float32), [None] * len(shape) if dynamic else shape))
    model = _model(graph, [(v.name, dtypes[id(v)], s) for v, s in zip(inputs, free, strict=True)], outs)
    if run_shape_inference:
        model = package.shape_inference.infer_shapes(model)
    package.checker.check_model(model)
    package.save(model, onnx_file_path)
    if verbose:
        print(package.helper.printable_graph(model.graph))
    return onnx_file_path


def _labels(order: Sequence[Node]) -> set[int]:
    """Variables that only the labels of output operators read; inference needs none."""
    read: dict[int, set[bool]] = {}
    for node in order:
        if node.op is not None:
            for name, (child, _) in zip(node.input_names(), node.inputs, strict=True):
                read.setdefault(id(child), set()).add(name == "label" and child.op is None)
    return {key for key, seen in read.items() if seen == {True}}


def _convert(graph: Graph, order: Sequence[Node], labels: set[int]) -> None:
    for node in order:
        if node.op is None:
            if id(node) in labels:
                continue
            name = graph.fresh(node.name)
            graph.names[id(node), 0] = name
            if node.name in graph.values:
                graph.constants[name] = graph.values[node.name]
            continue
        if node.inputs and all(graph.names.get((id(c), i)) in graph.constants for c, i in node.inputs):
            _fold(graph, node)
            continue
        convert = OPERATORS.get(node.op.name)
        if convert is None:
            raise MXNetError(
                f"export_model: operator {node.op.name!r} of node {node.name!r} has no counterpart in ONNX here; "
                f"see dualmx.contrib.onnx.OPERATORS for those that have"
            )
        ins = [graph.names.get((id(c), i), "") for c, i in node.inputs]
        outs = convert(graph, node, ins, node.params)
        for i, name in enumerate(outs if isinstance(outs, list) else [outs]):
            graph.names[id(node), i] = name


def _fold(graph: Graph, node: Node) -> None:
    """Compute what follows from parameters alone."""
    ins = [array(v, dtype=v.dtype) for v in (graph.constants[graph.names[id(c), i]] for c, i in node.inputs)]
    for i, value in enumerate(invoke(node.call, ins)[: node.n_visible]):
        graph.names[id(node), i] = graph.constant(value.asnumpy(), f"{node.name}_{i}")


__all__ = ["Graph", "export_model"]
