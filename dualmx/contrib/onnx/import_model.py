"""Import ONNX models."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ...context import Context, cpu
from ...core.errors import MXNetError
from ...core.reader import Content
from ...gluon import SymbolBlock
from ...namespace import nd, sym
from ...ndarray import NDArray
from ...symbol.symbol import Group, Symbol
from .export_rules import onnx
from .import_rules import NODES, Reader

_IGNORED_OUTPUTS = {"BatchNormalization", "Dropout", "MaxPool"}  # further outputs are for training only


def _model(model_file: str | os.PathLike[str]) -> tuple[Any, Content]:
    package = onnx()
    path = os.fspath(model_file)
    if not os.path.exists(path):
        raise MXNetError(f"import_model: there is no file {path!r}")
    content = Content(b"", f"import_model: {path!r}", "an ONNX model", size=os.path.getsize(path))
    with content.parsing(Exception):  # protobuf's errors have no common base
        return package.load(path), content


def import_model(model_file: str | os.PathLike[str]) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """Read an ONNX model.

    Args:
        model_file: its path.

    Returns:
        The network, its arguments, its auxiliary states.

    Raises:
        MXNetError: the package onnx is not installed, there is no such file, or a node has no counterpart (the text
            names it). FormatError: the file is no ONNX model.
    """
    symbol, values, _ = _graph(model_file)
    states = set(symbol.list_auxiliary_states())
    arrays = {n: nd.array(v, dtype=v.dtype) for n, v in values.items()}
    return (
        symbol,
        {n: a for n, a in arrays.items() if n not in states},
        {n: a for n, a in arrays.items() if n in states},
    )


def _graph(model_file: str | os.PathLike[str]) -> tuple[Symbol, dict[str, np.ndarray], list[str]]:
    """The network of a file, its arrays, and the names of its inputs."""
    model, content = _model(model_file)
    with content.parsing(Exception):  # of onnx, and of nodes that lack inputs or attributes, or have odd ones
        return _read(model)


def _read(model: Any) -> tuple[Symbol, dict[str, np.ndarray], list[str]]:
    package, graph = onnx(), model.graph
    to_array, attribute = package.numpy_helper.to_array, package.helper.get_attribute_value
    reader = Reader({t.name: np.array(to_array(t)) for t in graph.initializer})
    reader.opset = max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=13)
    inputs = [i.name for i in graph.input if i.name not in reader.values]
    reader.symbols.update((name, sym.var(name)) for name in inputs)
    for node in graph.node:
        name = node.name or node.output[0]
        build = NODES.get(node.op_type)
        if build is None:
            raise MXNetError(
                f"import_model: operator {node.op_type!r} of node {name!r} is not supported; see "
                f"dualmx.contrib.onnx.NODES for those that are"
            )
        attrs: dict[str, Any] = {a.name: attribute(a) for a in node.attribute} | {"op_type": node.op_type}
        if node.op_type == "Constant" and "value" in attrs:
            reader.values[node.output[0]] = np.array(to_array(attrs["value"]))
            continue
        reader.outputs = list(node.output)
        made = build(reader, name, list(node.input), attrs)
        found = made if isinstance(made, list) else [made]
        if len(found) < len(node.output) and node.op_type not in _IGNORED_OUTPUTS:
            raise MXNetError(f"import_model: node {name!r} has {len(node.output)} outputs: expected {len(found)}")
        reader.symbols.update(zip(node.output, found, strict=False))
    heads = [reader.symbol(o.name) for o in graph.output]
    net = Group(heads) if len(heads) > 1 else heads[0]
    needed = set(net.list_inputs())
    return net, {n: v for n, v in reader.values.items() if n in needed}, inputs


def import_to_gluon(model_file: str | os.PathLike[str], ctx: Context | None = None) -> SymbolBlock:
    """Read an ONNX model as a block.

    Args:
        model_file: its path.
        ctx: where its parameters go; the CPU by default.

    Raises:
        MXNetError, FormatError: as `import_model`.
    """
    symbol, values, inputs = _graph(model_file)
    block = SymbolBlock(symbol, [sym.var(n) for n in inputs])
    for name, param in block.collect_params().items():
        value = values[name]
        param.shape = value.shape
        param.cast(value.dtype)
        param.initialize(ctx=ctx or cpu())
        param.set_data(nd.array(value, dtype=value.dtype))
    return block


def get_model_metadata(model_file: str | os.PathLike[str]) -> dict[str, list[tuple[str, tuple[int, ...]]]]:
    """Return names and shapes of the inputs and outputs of an ONNX model, 0 where a length is free.

    Returns:
        `{"input_tensor_data": [(name, shape), …], "output_tensor_data": […]}`.

    Raises:
        MXNetError, FormatError: as `import_model`.
    """
    model, content = _model(model_file)
    graph = model.graph
    constants = {t.name for t in graph.initializer}

    def described(values: Any) -> list[tuple[str, tuple[int, ...]]]:
        return [(v.name, tuple(d.dim_value for d in v.type.tensor_type.shape.dim)) for v in values]

    return {
        "input_tensor_data": [d for d in described(graph.input) if d[0] not in constants],
        "output_tensor_data": described(graph.output),
    }


__all__ = ["get_model_metadata", "import_model", "import_to_gluon"]
