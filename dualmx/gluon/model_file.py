"""`Block.save` and `Block.load`: parameters, structure and traced graphs in two files, as MXNet writes them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..core.errors import FormatError
from ..core.reader import Content
from ..namespace import sym
from .cached_graph import CachedGraph
from .parameter import Parameter

if TYPE_CHECKING:
    from .base_block import Block


def save_model(block: Block, prefix: str) -> None:
    """Write `prefix-model.json` and `prefix-model.params`."""
    with open(f"{prefix}-model.json", "w") as f:
        json.dump(_describe(block, itertools.count()), f)
    block.save_parameters(f"{prefix}-model.params")


def load_model(block: Block, prefix: str) -> None:
    """Read what `save_model` wrote into a block of the same structure.

    Raises:
        FormatError: no such description, or one of another structure.
    """
    path = f"{prefix}-model.json"
    content = Content.of_file(path, "a description of a block", "load: cannot read")
    described = content.json()
    with content.parsing():
        (root,) = described.values()
        _check(block, root, path)
    block.load_parameters(f"{prefix}-model.params")
    with content.parsing():
        _restore_graphs(block, root, path)


def _graph_of(block: Block) -> CachedGraph | None:
    return getattr(block, "_graph", None) if getattr(block, "_active", False) else None


_FIELDS = {"orig_name", "in_format", "out_format", "inputs", "symbol", "hybridized", "children"}


def _describe(block: Block, numbers: Iterator[int]) -> dict[str, Any]:
    """The description of a block under its class and number, with those of its children inside."""
    key = type(block).__name__.lower() + str(next(numbers))
    found: dict[str, Any] = {"orig_name": block.name}
    graph = _graph_of(block)
    if graph is not None:
        found.update(
            in_format=graph.in_format,
            out_format=graph.out_format,
            inputs=[s.tojson() for s in graph.inputs],
            symbol=graph.symbol.tojson(),
        )
    found["hybridized"] = graph is not None
    found["children"] = {child.name: attribute for attribute, child in block._children.items()}
    for child in block._children.values():
        found.update(_describe(child, numbers))
    return {key: found}


def _pairs(block: Block, described: Any, path: str) -> list[tuple[Block, Any]]:
    """Children of a block with their descriptions."""
    try:
        inner = [v for k, v in described.items() if k not in _FIELDS]
        if list(described["children"].values()) == list(block._children):
            return list(zip(block._children.values(), inner, strict=True))
    except (KeyError, ValueError, AttributeError):
        pass
    raise FormatError(f"load: {path!r} describes a block of another structure than {block.name!r}")


def _check(block: Block, described: Any, path: str) -> None:
    for child, inner in _pairs(block, described, path):
        _check(child, inner, path)


def _original_names(block: Block, described: Any, path: str) -> dict[str, Parameter]:
    """The parameters of a block and its descendants under the names they were saved with."""
    old = described["orig_name"] + "_"
    found = {old + name.removeprefix(block.prefix): param for name, param in block.params.items()}
    for child, inner in _pairs(block, described, path):
        found.update(_original_names(child, inner, path))
    return found


def _restore_graphs(block: Block, described: Any, path: str) -> None:
    for child, inner in _pairs(block, described, path):
        _restore_graphs(child, inner, path)
    if not described.get("hybridized") or not hasattr(block, "_graph"):
        return
    block.hybridize()
    inputs = [sym.load_json(text) for text in described["inputs"]]
    graph = CachedGraph.of_symbol(
        sym.load_json(described["symbol"]), inputs, _original_names(block, described, path), block.name
    )
    graph.in_format, graph.out_format = described["in_format"], described["out_format"]
    object.__setattr__(block, "_graph", graph)
