"""Pictures of symbols: a table of layers, and a Graphviz drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from .core.dtypes import as_dtype
from .core.errors import ArgumentError, ArgumentTypeError, MXNetError
from .graph.infer import Key, infer_shapes
from .op.traits import Layer
from .symbol import Symbol
from .symbol.inference import initial_shapes, match_by_name
from .symbol.node import Node, topological

PARAMETER_ENDINGS = (
    "_weight", "_bias", "_beta", "_gamma", "_alpha", "_moving_var", "_moving_mean", "_running_var", "_running_mean",
    "_parameters",
)  # fmt: skip
VARIABLE_COLOR = "#8dd3c7"
COLORS: dict[Layer | None, str] = {
    Layer.DENSE: "#fb8072",
    Layer.CONVOLUTION: "#fb8072",
    Layer.ACTIVATION: "#ffffb3",
    Layer.NORMALIZATION: "#bebada",
    Layer.POOLING: "#80b1d3",
    Layer.ARRANGEMENT: "#fdb462",
}
OTHER_COLOR = "#fccde5"


def _shapes(symbol: Symbol, shape: Mapping[str, tuple[int, ...]] | None) -> tuple[list[Node], dict[Key, Any]]:
    """Nodes of the graph, and the shapes that follow from `shape`."""
    order = topological(symbol.entries)
    given = match_by_name(order, (), shape or {}, "shape")
    found = infer_shapes(order, initial_shapes(order, given)) if shape is not None else {}
    if shape is not None and any(not found.get((id(n), i)) for n, i in symbol.entries):
        raise MXNetError(f"shape={dict(shape)}: the shapes of the outputs do not follow; give those of more inputs")
    return order, found


def _dtypes(symbol: Symbol, dtype: Mapping[str, Any] | None) -> dict[Key, str]:
    """Names of the element types of all entries of the graph that follow from `dtype`; none without it."""
    if dtype is None:
        return {}
    if not isinstance(dtype, Mapping):
        raise ArgumentTypeError(f"plot_network: dtype={dtype!r}: expected a dict of input names to element types")
    internals = symbol.get_internals()
    found = internals.infer_type(**dtype)[1]
    if found is None:
        raise ArgumentError(f"plot_network: dtype={dict(dtype)}: types do not follow; give those of more inputs")
    return {(id(n), i): as_dtype(t).name for (n, i), t in zip(internals.entries, found, strict=True)}


def _parameters(node: Node) -> list[Node]:
    """Variables that `node` learns: inputs after the first that are no labels and no states."""
    states = node.aux_positions()
    return [
        child
        for at, ((child, _), name) in enumerate(zip(node.inputs, node.input_names(), strict=True))
        if child.op is None and at and at not in states and name != "label"
    ]


def _text(shape: Sequence[int] | None) -> str:
    """Shape without the batch axis, as `3x8x8`."""
    return "x".join(map(str, shape[1:])) if shape else ""


def print_summary(
    symbol: Symbol,
    shape: Mapping[str, tuple[int, ...]] | None = None,
    line_length: int = 120,
    positions: Sequence[float] = (0.44, 0.64, 0.74, 1.0),
) -> None:
    """Print one line a layer: name, kind, output shape (without the batch axis), parameters, inputs.

    Args:
        symbol: the network.
        shape: shapes of inputs by name; without them shapes and numbers of parameters stay empty.
        line_length: characters a line.
        positions: ends of the four columns, as fractions of the line or as columns.

    Raises:
        ArgumentTypeError: not a symbol. MXNetError: the shapes do not fit or do not suffice.

    Example:
        >>> import dualmx as mx
        >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")
        >>> mx.viz.print_summary(net, shape={"data": (2, 4)})  # doctest: +SKIP
    """
    if not isinstance(symbol, Symbol):
        raise ArgumentTypeError(f"print_summary: expected a Symbol, got {type(symbol).__name__}")
    order, shapes = _shapes(symbol, shape)
    ends = [int(line_length * p) if p <= 1 else int(p) for p in positions]
    data = _data_variables(order)
    counted: set[int] = set()
    total = 0

    def row(cells: Sequence[Any]) -> str:
        line = ""
        for cell, end in zip(cells, ends, strict=True):
            line = (line + str(cell))[:end].ljust(end)
        return line

    print("_" * line_length)
    print(row(["Layer (type)", "Output Shape", "Param #", "Previous Layer"]))
    print("=" * line_length)
    shown = [n for n in order if n.op is not None or id(n) in data]
    for i, node in enumerate(shown):
        kind = "null" if node.op is None else node.op.name
        parameters = [v for v in _parameters(node) if id(v) not in counted] if node.op is not None else []
        counted.update(id(v) for v in parameters)
        size = sum(prod(s) for v in parameters if (s := shapes.get((id(v), 0)))) if shapes else _certain(node)
        total += size
        before = [c.name for c, _ in node.inputs if c.op is not None or id(c) in data] or [""]
        print(row([f"{node.name}({kind})", _text(shapes.get((id(node), 0))), size, before[0]]))
        for name in before[1:]:
            print(row(["", "", "", name]))
        print(("=" if i == len(shown) - 1 else "_") * line_length)
    print(f"Total params: {total}")
    print("_" * line_length)


def _certain(node: Node) -> int:
    """How many parameters a node has for sure when no shape is known."""
    p = node.params
    match node.op.traits.layer if node.op is not None else None:
        case Layer.DENSE:
            return 0 if p["no_bias"] else p["num_hidden"]
        case Layer.CONVOLUTION:
            return 0 if p["no_bias"] else p["num_filter"]
        case Layer.EMBEDDING:
            return p["input_dim"] * p["output_dim"]
    return 0


def _data_variables(order: Sequence[Node]) -> set[int]:
    """Variables that carry data, by `id`: neither parameters nor states nor labels."""
    found = {id(n) for n in order if n.op is None}
    for node in order:
        if node.op is not None:
            found.difference_update(id(v) for v in _parameters(node))
            states, names = node.aux_positions(), node.input_names()
            found.difference_update(
                id(child) for at, (child, _) in enumerate(node.inputs) if at in states or names[at] == "label"
            )
    return found


def _label(node: Node) -> str:
    """What is written on a node: the op and its main parameters, or else the node's name."""
    assert node.op is not None
    p, name = node.params, node.op.name
    match node.op.traits.layer:
        case Layer.CONVOLUTION:
            stride = "x".join(map(str, p["stride"])) or "1"
            return f"{name}\n{'x'.join(map(str, p['kernel']))}/{stride}, {p['num_filter']}"
        case Layer.DENSE:
            return f"{name}\n{p['num_hidden']}"
        case Layer.ACTIVATION:
            return f"{name}\n{p['act_type']}"
        case Layer.POOLING:
            stride = "x".join(map(str, p["stride"])) or "1"
            return f"{name}\n{p['pool_type']}, {'x'.join(map(str, p['kernel']))}/{stride}"
    return node.name


def plot_network(
    symbol: Symbol,
    title: str = "plot",
    save_format: str = "pdf",
    shape: Mapping[str, tuple[int, ...]] | None = None,
    dtype: Any = None,
    node_attrs: Mapping[str, str] | None = None,
    hide_weights: bool = True,
) -> Any:
    """Return a `graphviz.Digraph` of the network; call its `render()` or `view()`.

    Args:
        symbol: the network.
        title: name of the drawing and of the rendered file.
        save_format: format in which it is rendered.
        shape: shapes of inputs by name, to write shapes on the edges.
        dtype: element types of inputs by name, to write those on the edges.
        node_attrs: Graphviz attributes of all nodes.
        hide_weights: leave out variables that are parameters.

    Raises:
        ArgumentTypeError: not a symbol. MXNetError: the Python package `graphviz` is missing, or shapes or types do not
            fit.
    """
    if not isinstance(symbol, Symbol):
        raise ArgumentTypeError(f"plot_network: expected a Symbol, got {type(symbol).__name__}")
    try:
        from graphviz import Digraph  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise MXNetError("plot_network: it needs the package graphviz; install it with: pip install graphviz") from None
    order, shapes = _shapes(symbol, shape)
    dtypes = _dtypes(symbol, dtype)
    style = {"shape": "box", "fixedsize": "true", "width": "1.3", "height": "0.8034", "style": "filled"}
    drawing = Digraph(name=title, format=save_format)
    hidden = {id(n) for n in order if n.op is None and hide_weights and n.name.endswith(PARAMETER_ENDINGS)}
    for node in order:
        if id(node) in hidden:
            continue
        look = {**style, **(node_attrs or {})}
        if node.op is None:
            look |= {"fillcolor": VARIABLE_COLOR, "shape": "oval"}
        else:
            look["fillcolor"] = COLORS.get(node.op.traits.layer, OTHER_COLOR)
        drawing.node(name=node.name, label=node.name if node.op is None else _label(node), **look)
    for node in order:
        for child, index in node.inputs:
            if id(child) not in hidden:
                at = (id(child), index)
                label = _text(shapes.get(at)) + (f"({dtypes[at]})" if at in dtypes else "")
                drawing.edge(tail_name=node.name, head_name=child.name, dir="back", arrowtail="open", label=label)
    return drawing
