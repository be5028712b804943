"""Shape, dtype and storage-type inference of symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core.dtypes import as_dtype
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError, suggest
from ..graph.infer import Key, ShapeT, infer_shapes, is_known
from ..graph.infer_dtype import infer_dtypes
from ..op.traits import StorageRule
from ..sparse import STYPES
from .attributes import parse_dtype, parse_partial_shape, parse_shape
from .node import Entry, Node, SymbolBase, split_variables, topological

Shapes = list[tuple[int, ...]]
Dtypes = list[type[Any] | None]


def match_by_name(
    order: Sequence[Node], args: Sequence[Any], kwargs: Mapping[str, Any], what: str
) -> list[tuple[Node, Any]]:
    """Pair variables with facts given by position (in argument order) or by name.

    Raises:
        ArgumentError: both ways are used, or too many are given. MXNetError: no variable of a given name.
    """
    if args and kwargs:
        raise ArgumentError(f"{what}: give the facts either by position or by keyword, not both")
    arguments, states = split_variables(order)
    if len(args) > len(arguments):
        raise ArgumentError(f"{what}: got {len(args)} facts for {len(arguments)} arguments")
    pairs = [(node, fact) for node, fact in zip(arguments, args, strict=False) if fact is not None]
    named: dict[str, list[Node]] = {}
    for node in (*arguments, *states):
        named.setdefault(node.name, []).append(node)
    for key, fact in kwargs.items():
        if key not in named:
            raise MXNetError(f"{what}: no variable {key!r}; {suggest(key, named)}")
        pairs += [(node, fact) for node in named[key]]
    return pairs


def initial_shapes(order: Sequence[Node], given: Sequence[tuple[Node, Any]]) -> dict[int, ShapeT | None]:
    """Initial shapes: those given, and the `__shape__` attributes of other variables."""
    known = {id(n): parse_shape(n.attrs["__shape__"]) for n in order if n.op is None and "__shape__" in n.attrs}
    for node, shape in given:
        if not isinstance(shape, tuple):
            raise ArgumentTypeError(f"infer_shape: {node.name}={shape!r}: shapes are tuples of integers")
        try:
            known[id(node)] = parse_partial_shape(tuple(int(d) for d in shape))
        except (TypeError, ValueError):
            raise ArgumentTypeError(f"infer_shape: {node.name}={shape!r}: shapes are tuples of integers") from None
    return known


def initial_dtypes(order: Sequence[Node], given: Sequence[tuple[Node, Any]]) -> dict[int, np.dtype]:
    """Initial dtypes: those given, and the `__dtype__` attributes of other variables."""
    known: dict[int, np.dtype] = {}
    for node in order:
        if node.op is None and "__dtype__" in node.attrs:
            dtype = parse_dtype(node.attrs["__dtype__"])
            if dtype is not None:
                known[id(node)] = dtype
    known.update((id(node), as_dtype(dtype)) for node, dtype in given)
    return known


def shape_lists(
    entries: Sequence[Entry], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[Any], list[Any], list[Any]]:
    """Shapes of arguments, outputs and states, as far as they follow from those of some variables."""
    order = topological(entries)
    found = infer_shapes(order, initial_shapes(order, match_by_name(order, args, kwargs, "infer_shape")))
    arguments, states = split_variables(order)
    return (
        [found.get((id(n), 0)) for n in arguments],
        [found.get((id(n), i)) for n, i in entries],
        [found.get((id(n), 0)) for n in states],
    )


def all_shapes(symbol: SymbolBase, **kwargs: Any) -> tuple[Shapes | None, Shapes | None, Shapes | None]:
    """Like `Symbol.infer_shape`, for callers that say themselves what is missing."""
    lists = shape_lists(symbol.entries, (), kwargs)
    return lists if all(map(is_known, sum(lists, []))) else (None, None, None)


def dtype_lists(
    entries: Sequence[Entry], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Dtypes, Dtypes, Dtypes]:
    """Dtypes of arguments, outputs and states, as far as they follow from those of some variables."""
    order = topological(entries)
    found = infer_dtypes(order, initial_dtypes(order, match_by_name(order, args, kwargs, "infer_type")))
    arguments, states = split_variables(order)

    def listed(keys: list[Key]) -> Dtypes:
        return [found[k].type if k in found else None for k in keys]

    return (
        listed([(id(n), 0) for n in arguments]),
        listed([(id(n), i) for n, i in entries]),
        listed([(id(n), 0) for n in states]),
    )


# The result has the one storage type of all inputs, gradients likewise.
_SAME_STYPE = (StorageRule.KEEPS_ZEROS, StorageRule.SAME_STORAGE, StorageRule.ADD_ALL)
_FLAGS = {"0": "default", "1": "row_sparse", "2": "csr"}  # MXNet's numbers


def declared_stype(node: Node, stype_dict: Mapping[str, str]) -> str:
    """The storage type that a variable was declared with.

    Raises:
        ArgumentError: there is no such type.
    """
    found = stype_dict.get(node.name, node.attrs.get("__storage_type__", "default"))
    found = _FLAGS.get(found, found)
    if found not in STYPES:
        raise ArgumentError(f"storage type {found!r} of {node.name!r}: expected one of {', '.join(STYPES)}")
    return found


def storage_types(order: Sequence[Node], stype_dict: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the storage types of all variables and of their gradients, by name.

    A gradient is sparse if every use of the variable yields one of that storage type: looking up rows with
    `sparse_grad`, products with a csr array on the left, element-wise operators on sparse arrays of one type.
    """
    kinds, uses = _walk(order, stype_dict)
    data, grads = {}, {}
    for node in order:
        if node.op is None:
            found = set(uses.get(id(node), ["default"]))
            data[node.name] = kinds[id(node)]
            grads[node.name] = found.pop() if len(found) == 1 else "default"
    return data, grads


def output_stypes(order: Sequence[Node], heads: Sequence[Node], stype_dict: Mapping[str, str]) -> list[str]:
    """Return the storage types of the results of `heads`."""
    kinds, _ = _walk(order, stype_dict)
    return [kinds[id(node)] for node in heads]


def _walk(order: Sequence[Node], stype_dict: Mapping[str, str]) -> tuple[dict[int, str], dict[int, list[str]]]:
    """Storage types of nodes, and of the gradients that the uses of each yield."""
    kinds: dict[int, str] = {}
    uses: dict[int, list[str]] = {}
    for node in order:
        if node.op is None:
            kinds[id(node)] = declared_stype(node, stype_dict)
            continue
        ins = [kinds[id(child)] for child, _ in node.inputs]
        kinds[id(node)], wanted = _rule(node.op.traits.storage, node.params, ins)
        for (child, _), kind in zip(node.inputs, wanted, strict=True):
            uses.setdefault(id(child), []).append(kind)
    return kinds, uses


def _rule(rule: StorageRule | None, params: Mapping[str, Any], ins: list[str]) -> tuple[str, list[str]]:
    """Storage type of the result, and of the gradient of each input."""
    dense = ["default"] * len(ins)
    if rule is StorageRule.CAST:
        return params["stype"], [params["stype"]]
    if rule is StorageRule.RETAIN_ROWS:
        return "row_sparse", ["row_sparse", "default"]
    if rule is StorageRule.TABLE_LOOKUP:
        by_row = params.get("sparse_grad", True)
        return "default", ["default", "row_sparse" if by_row else "default"]
    if rule is StorageRule.MATRIX_PRODUCT and ins[0] == "csr" and ins[1] != "csr" and not params["transpose_b"]:
        if params["transpose_a"]:
            return "row_sparse", dense
        return "default", ["default", "row_sparse"]
    if rule is StorageRule.SQUARE_SUM and params["axis"] is not None:
        return "default", ins
    if rule in _SAME_STYPE and len(set(ins)) == 1:
        return ins[0], ins
    return "default", dense
