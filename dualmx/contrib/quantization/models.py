"""Quantize a symbol and its parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core.context import Context, cpu
from ...core.errors import ArgumentError, ArgumentTypeError
from ...io import DataIter
from ...namespace import nd
from ...ndarray import NDArray
from ...ndarray import load as load_arrays
from ...symbol.node import topological
from ...symbol.symbol import Symbol
from ...symbol.symbol import load as load_symbol
from .calibration import HistogramCollector, MinMaxCollector, collect
from .passes import Quantizer, chosen_nodes, with_ranges

Params = dict[str, NDArray]
DTYPES, MODES = ("int8", "uint8", "auto"), ("full", "smart")


def names_of(what: str, given: Any) -> list[str]:
    """Return a list of names; none for None.

    Raises:
        ArgumentError: another type.
    """
    if given is None:
        return []
    if not isinstance(given, (list, tuple)) or not all(isinstance(n, str) for n in given):
        raise ArgumentError(f"{what}={given!r}: expected a list of names")
    return list(given)


def _one_of(what: str, value: Any, known: Sequence[str]) -> None:
    if value not in known:
        raise ArgumentError(f"{what}={value!r}: expected one of {', '.join(known)}")


def _loaded(params: Any, kind: str) -> Params:
    """Return parameters; of a path, those of the kind in the file."""
    if not isinstance(params, str):
        return dict(params)
    found = load_arrays(params)
    if not isinstance(found, dict):
        raise ArgumentError(f"{params}: expected a file of named parameters")
    return {n.partition(":")[2]: a for n, a in found.items() if n.partition(":")[0] == kind}


def _quantized(
    sym: Symbol,
    offline: Sequence[str],
    names: Sequence[str],
    operators: Sequence[str],
    mode: str,
    dtype: str,
    ranges: bool,
) -> tuple[Symbol, dict[str, Symbol]]:
    """Return the quantized graph, and the float values that its ranges come from."""
    order = topological(sym.entries)
    chosen = chosen_nodes(order, set(names), set(operators), mode, ranges)
    quantizer = Quantizer(sym.entries, chosen, set(offline), dtype)
    made = quantizer.run()
    return made, {name: Symbol([entry]) for name, entry in quantizer.sources.items()}


def quantized_params(qsym: Symbol, params: Mapping[str, NDArray]) -> Params:
    """Return the arguments of a quantized graph: 8-bit weights, and their ranges."""
    made: Params = {}
    for name in qsym.list_arguments():
        if name in params:
            made[name] = params[name]
            continue
        source = name.removesuffix("_quantize")
        if source == name or source not in params:
            continue
        value = params[source]
        ends = nd.array([float(value.min().asscalar())]), nd.array([float(value.max().asscalar())])
        made[name], made[f"{name}_min"], made[f"{name}_max"] = nd.contrib.quantize(value, *ends, out_type="int8")
    return made


def quantize_graph(
    sym: Symbol | str, arg_params: Any, aux_params: Any, ctx: Context | None = None, excluded_sym_names: Any = None,
    excluded_op_names: Any = None, calib_mode: str = "entropy", quantized_dtype: str = "int8",
    quantize_mode: str = "full", quantize_granularity: str = "tensor-wise", LayerOutputCollector: Any = None,
    logger: Any = None,
) -> tuple[Symbol, Params, Params, Any]:  # fmt: skip
    """Quantize a network without examples; arguments as for `quantize_model`.

    Args:
        LayerOutputCollector: with `calib_mode="customize"`, an object whose `collect(name, op_name, arr)` takes values
            and whose `min_max_dict` has the ranges by name.

    Returns:
        The network, its arguments, its auxiliary states, and the collector to fill with the values of layers.
    """
    sym, arg_params, aux_params = _checked(sym, arg_params, aux_params, ctx, quantized_dtype, quantize_mode)
    _one_of("quantize_granularity", quantize_granularity, ("tensor-wise", "channel-wise"))
    _one_of("calib_mode", calib_mode, ("none", "naive", "entropy", "customize"))
    names, operators = (
        names_of("excluded_sym_names", excluded_sym_names),
        names_of("excluded_op_names", excluded_op_names),
    )
    made, sources = _quantized(
        sym, list(arg_params), names, operators, quantize_mode, quantized_dtype, calib_mode != "none"
    )
    collector: Any = None
    if calib_mode == "naive":
        collector = MinMaxCollector(quantized_dtype, list(sources), logger)
    elif calib_mode == "entropy":
        collector = HistogramCollector(include_layer=list(sources), logger=logger)
    elif calib_mode == "customize":
        if not hasattr(LayerOutputCollector, "collect"):
            raise ArgumentError("LayerOutputCollector: expected an object with collect(name, op_name, arr)")
        collector = LayerOutputCollector
    if collector is not None:
        collector.include_layer = list(sources)
        collector.sources = sources
    return made, quantized_params(made, arg_params), dict(aux_params), collector


def calib_graph(
    qsym: Symbol, arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray], collector: Any,
    calib_mode: str = "entropy", quantized_dtype: str = "int8", logger: Any = None,
) -> tuple[Symbol, Params, Params]:  # fmt: skip
    """Set the collected ranges in the graph of `quantize_graph`.

    Returns:
        The network, its arguments, its auxiliary states.

    Raises:
        ArgumentError: there is no collector, or a mode without one.
    """
    _one_of("calib_mode", calib_mode, ("naive", "entropy", "customize"))
    if calib_mode == "customize":
        ranges = dict(collector.min_max_dict)
    elif not isinstance(collector, HistogramCollector if calib_mode == "entropy" else MinMaxCollector):
        raise ArgumentError(
            f"collector={collector!r}: expected the one that quantize_graph returned for {calib_mode!r}"
        )
    else:
        ranges = collector.ranges(quantized_dtype)
    if logger:
        logger.info("ranges of %d layers are known", len(ranges))
    return with_ranges(qsym, ranges), dict(arg_params), dict(aux_params)


def _checked(
    sym: Any, arg_params: Any, aux_params: Any, ctx: Any, dtype: str, mode: str
) -> tuple[Symbol, Params, Params]:
    if isinstance(sym, str):
        sym = load_symbol(sym)
    if not isinstance(sym, Symbol):
        raise ArgumentTypeError(f"sym={sym!r}: expected a Symbol or the path of one")
    if ctx is not None and not isinstance(ctx, Context):
        raise ArgumentError(f"ctx={ctx!r}: expected a single context")
    _one_of("quantized_dtype", dtype, DTYPES)
    _one_of("quantize_mode", mode, MODES)
    return sym, _loaded(arg_params, "arg"), _loaded(aux_params, "aux")


def quantize_model(
    sym: Symbol | str, arg_params: Any, aux_params: Any, data_names: Sequence[str] = ("data",),
    label_names: Sequence[str] | None = ("softmax_label",), ctx: Context | None = None, excluded_sym_names: Any = None,
    excluded_op_names: Any = None, calib_mode: str = "entropy", calib_data: DataIter | None = None,
    num_calib_examples: int | None = None, quantized_dtype: str = "int8", quantize_mode: str = "smart",
    quantize_granularity: str = "tensor-wise", logger: Any = None,
) -> tuple[Symbol, Params, Params]:  # fmt: skip
    """Return an 8-bit network of a float one.

    Args:
        sym: the network, or the path of its JSON.
        arg_params, aux_params: its parameters, or the path of a file of them.
        data_names, label_names: inputs of the network.
        ctx: where examples run; the CPU by default.
        excluded_sym_names, excluded_op_names: nodes and operators that stay float.
        calib_mode: where the ranges of values come from: "none" looks at the values of every batch, "naive" takes
            the least and largest value of the examples, "entropy" the thresholds that lose least information.
        calib_data: iterator over examples.
        num_calib_examples: how many to take, rounded up to batches; all if None.
        quantized_dtype: "int8", "uint8", or "auto": uint8 for values that are never negative.
        quantize_mode: "full" quantizes all that it can; "smart" convolutions, dense layers and what lies between them.
        quantize_granularity: "tensor-wise"; "channel-wise" is accepted and does the same.
        logger: where progress is written.

    Returns:
        The network, its arguments (weights as int8 with their ranges), its auxiliary states.

    Raises:
        ArgumentError: an unknown mode or dtype, no examples where they are needed, or examples of the wrong kind.
    """
    if calib_mode not in ("none", None):
        if calib_data is None:
            raise ArgumentError(f"calib_data must be given for calib_mode={calib_mode!r}")
        if not isinstance(calib_data, DataIter):
            raise ArgumentError(f"calib_data is a {type(calib_data).__name__}: expected a DataIter")
    mode = calib_mode or "none"
    _one_of("calib_mode", mode, ("none", "naive", "entropy"))
    sym, args, aux = _checked(sym, arg_params, aux_params, ctx, quantized_dtype, quantize_mode)
    made, qargs, qaux, collector = quantize_graph(
        sym, args, aux, ctx, excluded_sym_names, excluded_op_names, mode, quantized_dtype, quantize_mode,
        quantize_granularity, logger=logger,
    )  # fmt: skip
    if collector is None:
        return made, qargs, qaux
    calibrate(collector, args, aux, calib_data, list(data_names), num_calib_examples, ctx, logger)
    return calib_graph(made, qargs, qaux, collector, mode, quantized_dtype, logger)


def calibrate(
    collector: Any, args: Params, aux: Params, data: Any, names: list[str], limit: int | None, ctx: Context | None,
    logger: Any,
) -> None:  # fmt: skip
    """Fill a collector of `quantize_graph` with the values of a network's layers on examples."""
    if not collector.sources:
        return
    count = collect(collector.sources, args, aux, data, names, collector, limit, ctx or cpu())
    if logger:
        logger.info("calibrated %d layers on %d examples", len(collector.sources), count)


def quantize_model_mkldnn(
    sym: Symbol | str, arg_params: Any, aux_params: Any, data_names: Sequence[str] = ("data",),
    label_names: Sequence[str] | None = ("softmax_label",), ctx: Context | None = None, excluded_sym_names: Any = None,
    excluded_op_names: Any = None, calib_mode: str = "entropy", calib_data: DataIter | None = None,
    num_calib_examples: int | None = None, quantized_dtype: str = "int8", quantize_mode: str = "smart",
    quantize_granularity: str = "tensor-wise", logger: Any = None,
) -> tuple[Symbol, Params, Params]:  # fmt: skip
    """`quantize_model` for CPUs: fusing layers, which MXNet leaves to oneDNN, is XLA's work here.

    Raises:
        ArgumentError: `ctx` is not a CPU; otherwise as `quantize_model`.
    """
    if ctx is not None and (not isinstance(ctx, Context) or ctx.device_type != "cpu"):
        raise ArgumentError(f"quantize_model_mkldnn: ctx={ctx!r}: expected a CPU")
    return quantize_model(
        sym, arg_params, aux_params, data_names, label_names, ctx, excluded_sym_names, excluded_op_names, calib_mode,
        calib_data, num_calib_examples, quantized_dtype, quantize_mode, quantize_granularity, logger,
    )  # fmt: skip
