"""Quantize Gluon blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.context import Context, cpu
from ...core.errors import ArgumentError, ArgumentTypeError
from ...gluon import HybridBlock, SymbolBlock
from ...io import DataDesc, DataIter
from ...namespace import nd, sym
from ...ndarray import NDArray
from ...symbol.node import topological
from ...symbol.symbol import Group, Symbol
from .models import calib_graph, calibrate, names_of, quantize_graph


def _inputs(calib_data: Any, data_shapes: Any) -> list[tuple[str, tuple[int, ...]]]:
    """Names and shapes of the inputs, as described or as in the first batch."""
    if data_shapes is not None:
        described = data_shapes if isinstance(data_shapes, (list, tuple)) else [data_shapes]
        if described and isinstance(described[0], int):
            described = [described]
        shapes = [
            d.shape if isinstance(d, DataDesc) else tuple(d[1] if isinstance(d[0], str) else d) for d in described
        ]
    elif isinstance(calib_data, DataIter):
        shapes = [d[1] for d in calib_data.provide_data]
    elif calib_data is not None:
        first = next(iter(calib_data))
        arrays = list(first) if isinstance(first, (list, tuple)) else [first]
        shapes = [a.shape for a in arrays]
    else:
        raise ArgumentError("quantize_net: expected calib_data or data_shapes, to know the shapes of the inputs")
    return [("data" if len(shapes) == 1 else f"data{i}", tuple(s)) for i, s in enumerate(shapes)]


def _traced(network: HybridBlock, given: list[tuple[str, tuple[int, ...]]], ctx: Context) -> tuple[Symbol, list[str]]:
    """Return the graph of a block and its input names; labels that a loader appends are dropped."""
    error: Exception | None = None
    for count in range(len(given), 0, -1):
        names = ["data"] if count == 1 else [n for n, _ in given[:count]]
        try:
            network(*(nd.zeros(shape, ctx=ctx) for _, shape in given[:count])).wait_to_read()
            found = network(*(sym.var(n) for n in names))
        except (TypeError, ValueError) as e:
            error = error or e
            continue
        return (Group(list(found)) if isinstance(found, (list, tuple)) else found), names
    assert error is not None
    raise error


def quantize_net_v2(
    network: HybridBlock, quantized_dtype: str = "auto", quantize_mode: str = "full",
    quantize_granularity: str = "tensor-wise", exclude_layers: Any = None, exclude_layers_match: Any = None,
    exclude_operators: Any = None, calib_data: Any = None, data_shapes: Any = None, calib_mode: str = "none",
    num_calib_examples: int | None = None, ctx: Context | None = None, LayerOutputCollector: Any = None,
    logger: Any = None,
) -> SymbolBlock:  # fmt: skip
    """Return an 8-bit block of a float one.

    Args:
        network: an initialized `HybridBlock`.
        quantized_dtype, quantize_mode, quantize_granularity, calib_mode: as for `quantize_model`.
        exclude_layers: names of layers that stay float.
        exclude_layers_match: parts of such names.
        exclude_operators: operators that stay float.
        calib_data: `DataIter` or `DataLoader` over examples.
        data_shapes: shapes of the inputs (`DataDesc`s or tuples), needed without `calib_data`.
        num_calib_examples: how many examples to take; all if None.
        ctx: where the network runs; the CPU by default.
        LayerOutputCollector: see `quantize_graph`.
        logger: where progress is written.

    Raises:
        ArgumentError: as for `quantize_model`; neither examples nor shapes. ArgumentTypeError: not a `HybridBlock`.

    Example:
        >>> import dualmx as mx
        >>> net = mx.gluon.nn.Dense(2, in_units=3, prefix="d_")
        >>> net.initialize()
        >>> small = mx.contrib.quantization.quantize_net(net, data_shapes=[(1, 3)])
        >>> sorted(small.collect_params())[:2]
        ['d_bias_quantize', 'd_bias_quantize_max']
    """
    if not isinstance(network, HybridBlock):
        raise ArgumentTypeError(f"network is a {type(network).__name__}: expected a HybridBlock")
    if isinstance(ctx, (list, tuple)) and len(ctx) == 1:
        ctx = ctx[0]
    if calib_mode not in ("none", None) and calib_data is None:
        raise ArgumentError(f"calib_data must be given for calib_mode={calib_mode!r}")
    where = ctx if ctx is not None else cpu()
    graph, names = _traced(network, _inputs(calib_data, data_shapes), where)
    values: dict[str, NDArray] = {n: p.data(where) for n, p in network.collect_params().items() if p.is_initialized}
    states = graph.list_auxiliary_states()
    args = {n: values[n] for n in graph.list_arguments() if n in values}
    aux = {n: values[n] for n in states}
    excluded = names_of("exclude_layers", exclude_layers)
    parts = names_of("exclude_layers_match", exclude_layers_match)
    excluded += [n.name for n in topological(graph.entries) if n.op is not None and any(p in n.name for p in parts)]
    mode = calib_mode or "none"
    made, qargs, qaux, collector = quantize_graph(
        graph, args, aux, where, excluded, exclude_operators, mode, quantized_dtype, quantize_mode,
        quantize_granularity, LayerOutputCollector, logger,
    )  # fmt: skip
    if collector is not None:
        calibrate(collector, args, aux, _renamed(calib_data, names), names, num_calib_examples, where, logger)
        made, qargs, qaux = calib_graph(made, qargs, qaux, collector, mode, quantized_dtype, logger)
    return _block(made, names, qargs | qaux, where)


def _renamed(data: Any, names: list[str]) -> Any:
    """Batches whose inputs have the names of the traced graph."""
    if not isinstance(data, DataIter):
        return data
    data.reset()
    return [batch.data[: len(names)] for batch in data]


def _block(graph: Symbol, names: Sequence[str], values: dict[str, NDArray], ctx: Context) -> SymbolBlock:
    block = SymbolBlock(graph, [sym.var(n) for n in names])
    for name, param in block.collect_params().items():
        value = values[name]
        param.shape = value.shape
        param.grad_req = "null"
        param.cast(value.dtype)
        param.initialize(ctx=ctx)
        param.set_data(value)
    return block


def quantize_net(
    network: HybridBlock, quantized_dtype: str = "auto", quantize_mode: str = "full", exclude_layers: Any = None,
    exclude_layers_match: Any = None, exclude_operators: Any = None, calib_data: Any = None, data_shapes: Any = None,
    calib_mode: str = "none", num_calib_examples: int | None = None, ctx: Context | None = None, logger: Any = None,
) -> SymbolBlock:  # fmt: skip
    """`quantize_net_v2` with its older arguments."""
    return quantize_net_v2(
        network, quantized_dtype, quantize_mode, "tensor-wise", exclude_layers, exclude_layers_match, exclude_operators,
        calib_data, data_shapes, calib_mode, num_calib_examples, ctx, None, logger,
    )  # fmt: skip


__all__ = ["quantize_net", "quantize_net_v2"]
