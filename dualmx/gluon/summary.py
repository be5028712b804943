"""`Block.summary`: run one forward pass and print a table of layers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..core.errors import ArgumentError
from ..ndarray import NDArray
from .parameter import Parameter

if TYPE_CHECKING:
    from .base import Block

_ROW = "{:>20}  {:>42} {:>15}"


def _shapes(value: Any, outermost: bool = True) -> str:
    if isinstance(value, NDArray):
        return str(value.shape)
    if isinstance(value, (list, tuple)):
        text = ", ".join(_shapes(v, False) for v in value)
        return text if outermost else f"[{text}]"
    return str(value)


def print_summary(block: Block, inputs: tuple[Any, ...], quiet: frozenset[type] | set[type]) -> None:
    """Print output shapes and parameter counts of `block` and its children, called on `inputs`.

    Args:
        quiet: block classes that get no row of their own (containers).

    Raises:
        ArgumentError: a block is hybridized, so that its children are not called.
    """
    rows: list[tuple[str, str, int]] = [("Input", _shapes(inputs), 0)]
    counts = {"total": 0, "trainable": 0, "shared": 0}
    seen: set[Parameter] = set()
    handles = []

    def record(layer: Block, _: Any, output: Any) -> None:
        size = 0
        for param in layer.params.values():
            n = math.prod(param.shape or ())
            size += n
            counts["trainable"] += n if param.grad_req != "null" else 0
            counts["shared"] += n if param in seen else 0
            seen.add(param)
        counts["total"] += size
        rows.append((f"{type(layer).__name__}-{len(rows)}", _shapes(output), size))

    def watch(layer: Block) -> None:
        if getattr(layer, "_active", False):
            raise ArgumentError(f"summary: {layer.name!r} is hybridized; call hybridize(False) before summary()")
        if type(layer) not in quiet:
            handles.append(layer.register_forward_hook(record))

    try:
        block.apply(watch)
        block(*inputs)
    finally:
        for handle in handles:
            handle.detach()
    print("-" * 80)
    print(_ROW.format("Layer (type)", "Output Shape", "Param #"))
    print("=" * 80)
    for row in rows:
        print(_ROW.format(*row))
    print("=" * 80)
    print("Parameters in forward computation graph, duplicate included")
    print(f"   Total params: {counts['total']}")
    print(f"   Trainable params: {counts['trainable']}")
    print(f"   Non-trainable params: {counts['total'] - counts['trainable']}")
    print(f"Shared params in forward computation graph: {counts['shared']}")
    print(f"Unique parameters in model: {counts['total'] - counts['shared']}")
    print("-" * 80)
