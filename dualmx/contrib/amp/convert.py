"""Mixed precision for symbols: a pass that inserts casts between operators of different precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import as_dtype
from ...core.errors import ArgumentError, MXNetError, suggest
from ...gluon import HybridBlock, SymbolBlock
from ...ndarray import NDArray
from ...op.registry import OPS
from ...op.schema import TENSOR
from ...symbol import Symbol, var
from ...symbol.node import Entry, Node, topological
from . import lists


def target_of(target_dtype: Any) -> np.dtype[Any]:
    """Return a 16-bit type by its name or class.

    Raises:
        ArgumentError: any other type.
    """
    try:
        target = as_dtype(target_dtype)
    except MXNetError:
        target = None
    if target is None or target.name not in ("float16", "bfloat16"):
        raise ArgumentError(f"amp: target_dtype={target_dtype!r}: expected 'float16' or 'bfloat16'")
    return target


_UNKNOWN, _LOW, _WIDE = "unknown", "low", "wide"


class _CastInserter:
    """Builds the converted graph, with one cast for each value and type.

    Args:
        target: name of the 16-bit type.
        cast_variables: names of the variables that are given in the 16-bit type themselves.
    """

    def __init__(self, target: str, cast_variables: set[str]):
        self.target, self.cast_variables = target, cast_variables
        self.new: dict[tuple[int, int], Entry] = {}
        self.kind: dict[tuple[int, int], str] = {}
        self.made: dict[tuple[int, int, str], Entry] = {}
        self.uses: dict[str, set[str]] = {}

    def to(self, entry: Entry, dtype: str) -> Entry:
        """Return the converted form of an entry, cast to `dtype`."""
        node, index = entry
        key = (id(node), index)
        if node.op is None:
            self.uses.setdefault(node.name, set()).add(dtype)
            if node.name in self.cast_variables and dtype == self.target:
                return self.new[key]
        if (*key, dtype) not in self.made:
            name = f"{node.output_name(index)}_amp_cast_{dtype}"
            params = {"dtype": dtype}
            cast = Node(OPS["amp_cast"], name, [self.new[key]], OPS["amp_cast"].parse(params), params)
            self.made[*key, dtype] = (cast, 0)
        return self.made[*key, dtype]

    def plain(self, entry: Entry) -> Entry:
        """Return the converted entry without a cast."""
        if entry[0].op is None:
            self.uses.setdefault(entry[0].name, set()).add("")
        return self.new[id(entry[0]), entry[1]]


def _convert(
    symbol: Symbol,
    target: str,
    low: set[str],
    full: set[str],
    conditions: Mapping[str, tuple[str, Sequence[str]]],
    excluded: set[str],
    cast_variables: set[str],
) -> tuple[Symbol, dict[str, set[str]]]:
    """Return the symbol with casts, and the types in which each variable is read ("" for its own)."""
    casts = _CastInserter(target, cast_variables)
    for node in topological(symbol.entries):
        if node.op is None:
            casts.new[id(node), 0] = (node, 0)
            casts.kind[id(node), 0] = _UNKNOWN
            continue
        kinds = [casts.kind[id(n), i] for n, i in node.inputs]
        name = node.op.name
        parameter, values = conditions.get(name, ("", ()))
        wide = name in full or node.name in excluded or (parameter and node.params.get(parameter) in values)
        free = free_inputs(node)
        if name in low and node.name not in excluded:
            inputs = [casts.plain(e) if f else casts.to(e, target) for e, f in zip(node.inputs, free, strict=True)]
            kind = _LOW
        elif wide or _LOW not in kinds:
            inputs = [
                casts.to(e, "float32") if k == _LOW and not f else casts.plain(e)
                for e, k, f in zip(node.inputs, kinds, free, strict=True)
            ]
            kind = _WIDE
        elif _WIDE in [k for k, f in zip(kinds, free, strict=True) if not f]:
            inputs = [
                casts.plain(e) if f or k != _LOW else casts.to(e, "float32")
                for e, k, f in zip(node.inputs, kinds, free, strict=True)
            ]
            kind = _WIDE
        else:
            inputs = [
                casts.to(e, target) if k == _UNKNOWN and not f else casts.plain(e)
                for e, k, f in zip(node.inputs, kinds, free, strict=True)
            ]
            kind = _LOW
        made = node.with_inputs(inputs)
        for i in range(node.n_outputs):
            casts.new[id(node), i] = (made, i)
            casts.kind[id(node), i] = kind
    heads = [casts.to(e, "float32") if casts.kind[id(e[0]), e[1]] == _LOW else casts.plain(e) for e in symbol.entries]
    return Symbol(heads), casts.uses


def free_inputs(node: Node) -> list[bool]:
    """For each input, whether its type does not depend on that of the others (indices, labels, statistics)."""
    assert node.op is not None
    if node.op.variadic:
        return [False] * len(node.inputs)
    inputs = [i for i in node.op.inputs if i.when is None or i.when.holds(node.params)]
    return [i.role is not TENSOR for i, _ in zip(inputs, node.inputs, strict=False)]


def _plan(
    symbol: Symbol, target_dtype: Any, low: Any, full: Any, conditional: Any, excluded: Any
) -> tuple[str, set[str], set[str], Mapping[str, tuple[str, Sequence[str]]], set[str]]:
    if not isinstance(symbol, Symbol):
        raise ArgumentError(f"amp: expected a Symbol, got {type(symbol).__name__}")
    target = target_of(target_dtype).name
    names = {n.name for n in topological(symbol.entries) if n.op is not None}
    for name in excluded or ():
        if name not in names:
            raise ArgumentError(f"amp: excluded_sym_names: {name!r} is no operator here; {suggest(name, names)}")
    for given in (low, full):
        for name in given or ():
            if name not in OPS:
                raise ArgumentError(f"amp: operator {name!r} is unknown; {suggest(name, OPS)}")
    chosen = set(lists.LOW if low is None else low)
    wide = {*(lists.FULL if full is None else full), *lists.LOSSES} - chosen
    conditions: dict[str, tuple[str, Sequence[str]]] = {
        n: (p, v) for n, p, v in (lists.CONDITIONAL if conditional is None else conditional)
    }
    canonical = [{OPS[n].name for n in some if n in OPS} for some in (chosen, wide)]
    return target, canonical[0], canonical[1], conditions, set(excluded or ())


def convert_symbol(
    sym: Symbol,
    target_dtype: Any = "float16",
    target_dtype_ops: Sequence[str] | None = None,
    fp32_ops: Sequence[str] | None = None,
    conditional_fp32_ops: Sequence[tuple[str, str, list[str]]] | None = None,
    excluded_sym_names: Sequence[str] | None = None,
    data_names: Sequence[str] | None = None,
    cast_optional_params: bool = False,
) -> Symbol:
    """Return a symbol that computes in mixed precision, with inputs, parameters and outputs in float32.

    Args:
        sym: the symbol.
        target_dtype: `"float16"` or `"bfloat16"`.
        target_dtype_ops, fp32_ops, conditional_fp32_ops: the operators of each precision, instead of the usual ones.
        excluded_sym_names: nodes that stay in float32.
        data_names: accepted; the inputs.
        cast_optional_params: expect parameters that are read in 16 bits only in that type.

    Raises:
        ArgumentError: another type, an unknown operator, or a node that is not there.
    """
    plan = _plan(sym, target_dtype, target_dtype_ops, fp32_ops, conditional_fp32_ops, excluded_sym_names)
    converted, uses = _convert(sym, *plan, set())
    if cast_optional_params:
        data = set(data_names or ("data",))
        converted, _ = _convert(sym, *plan, {n for n, types in uses.items() if types == {plan[0]} and n not in data})
    return converted


def convert_model(
    sym: Symbol,
    arg_params: Mapping[str, NDArray],
    aux_params: Mapping[str, NDArray],
    target_dtype: Any = "float16",
    target_dtype_ops: Sequence[str] | None = None,
    fp32_ops: Sequence[str] | None = None,
    conditional_fp32_ops: Sequence[tuple[str, str, list[str]]] | None = None,
    excluded_sym_names: Sequence[str] | None = None,
    cast_optional_params: bool = False,
) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """Return symbol and parameters in mixed precision; see `convert_symbol`.

    With `cast_optional_params`, parameters that are read in 16 bits only are stored so.
    """
    plan = _plan(sym, target_dtype, target_dtype_ops, fp32_ops, conditional_fp32_ops, excluded_sym_names)
    converted, uses = _convert(sym, *plan, set())
    cast: set[str] = set()
    if cast_optional_params:
        cast = {n for n, types in uses.items() if types == {plan[0]} and n in arg_params}
        converted, _ = _convert(sym, *plan, cast)
    args = {n: a.astype(plan[0]) if n in cast else a for n, a in arg_params.items()}
    return converted, args, dict(aux_params)


def convert_hybrid_block(
    block: HybridBlock,
    target_dtype: Any = "float16",
    target_dtype_ops: Sequence[str] | None = None,
    fp32_ops: Sequence[str] | None = None,
    conditional_fp32_ops: Sequence[tuple[str, str, list[str]]] | None = None,
    excluded_sym_names: Sequence[str] | None = None,
    ctx: Any = None,
    cast_optional_params: bool = False,
) -> SymbolBlock:
    """Return a block that computes in mixed precision with the parameters of a hybridized one.

    Args:
        block: hybridized, and called once since.
        ctx: contexts of the new parameters; those of the old ones by default.
        target_dtype, target_dtype_ops, fp32_ops, conditional_fp32_ops, excluded_sym_names, cast_optional_params: see
            `convert_symbol`.

    Raises:
        MXNetError: the block was not hybridized, or not called since.
    """
    graph = getattr(block, "_graph", None)
    if graph is None:
        raise MXNetError(f"amp: {block.name}: call hybridize(), then run the block once on example data")
    symbol = graph.symbol
    params = {p.name: p for p in block.collect_params().values()}
    auxiliary = set(symbol.list_auxiliary_states())
    inputs = [n for n in symbol.list_arguments() if n not in params]
    args = {n: p.reduce() for n, p in params.items() if n not in auxiliary}
    converted, args, aux = convert_model(
        symbol, args, {n: params[n].reduce() for n in auxiliary}, target_dtype, target_dtype_ops, fp32_ops,
        conditional_fp32_ops, excluded_sym_names, cast_optional_params,
    )  # fmt: skip
    made = SymbolBlock(converted, [var(n) for n in inputs])
    contexts = ctx if ctx is not None else next(iter(params.values())).list_ctx() if params else None
    values = {**args, **aux}
    for name, parameter in made.collect_params().items():
        parameter.grad_req = params[name].grad_req
        if np.dtype(values[name].dtype) != np.dtype(np.float32):
            parameter.cast(values[name].dtype)
        parameter.load_init(values[name], contexts)
    return made


__all__ = ["convert_hybrid_block", "convert_model", "convert_symbol"]
