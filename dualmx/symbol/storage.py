"""Storage types of variables and of their gradients, as they follow from a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.errors import ArgumentError
from ..sparse import KEEP_ZEROS, STYPES
from .node import Node

# Operators whose result has the one storage type of all inputs, gradients likewise.
_SAME_STYPE = frozenset((*KEEP_ZEROS, "elemwise_add", "elemwise_sub", "add_n")) - {"BlockGrad"}
_FLAGS = dict(zip("012", STYPES, strict=True))


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
        kinds[id(node)], wanted = _rule(node.op.name, node.params, ins)
        for (child, _), kind in zip(node.inputs, wanted, strict=True):
            uses.setdefault(id(child), []).append(kind)
    return kinds, uses


def _rule(name: str, params: Mapping[str, Any], ins: list[str]) -> tuple[str, list[str]]:
    """Storage type of the result, and of the gradient of each input."""
    dense = ["default"] * len(ins)
    if name == "cast_storage":
        return params["stype"], [params["stype"]]
    if name == "_sparse_retain":
        return "row_sparse", ["row_sparse", "default"]
    if name in ("Embedding", "_contrib_SparseEmbedding"):
        by_row = params.get("sparse_grad", True)
        return "default", ["default", "row_sparse" if by_row else "default"]
    if name == "dot" and ins[0] == "csr" and ins[1] != "csr" and not params["transpose_b"]:
        if params["transpose_a"]:
            return "row_sparse", dense
        return "default", ["default", "row_sparse"]
    if name in _SAME_STYPE and len(set(ins)) == 1:
        return ins[0], ins
    return "default", dense


__all__ = ["declared_stype", "output_stypes", "storage_types"]
