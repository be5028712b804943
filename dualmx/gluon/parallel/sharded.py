"""Fully sharded parameters: each device holds a part of every parameter, gradient and state."""

from __future__ import annotations

from typing import Any

from ...core.errors import ArgumentError
from ..base import Block
from ..hybrid import HybridBlock


def fully_shard(block: Block, axis: str = "data", min_size: int = 1) -> Block:
    """Hold every parameter of a block cut along an axis of its mesh, mostly the one batches are cut along.

    Each parameter is cut along one more of its axes, the one with the largest parts that divide. A `HybridBlock`
    gathers its parameters when it computes with them; hybridized, it gathers them once more in the backward pass, and
    does not keep them in between. Gradients and optimizer states are cut as the parameters are (ZeRO-3, FSDP).
    Parameters that cannot be cut stay whole, and so do statistics, which layers write themselves.

    Args:
        block: initialized already, or not yet.
        axis: name of an axis of the mesh.
        min_size: parameters of fewer elements stay whole.

    Returns:
        The block.

    Raises:
        ArgumentError: the block is on a mesh without that axis. Before initialization, `initialize` raises it.

    Example:
        >>> import dualmx as mx
        >>> net = mx.gluon.parallel.fully_shard(mx.gluon.nn.Dense(4, in_units=8))
        >>> net.initialize(ctx=mx.parallel.Mesh({"data": 1}))
        >>> net.weight.data().sharding
        (None, 'data')
    """
    if not isinstance(axis, str) or not axis:
        raise ArgumentError(f"fully_shard: axis={axis!r}: expected the name of an axis of a mesh")
    for param in block.collect_params().values():
        shape = param.shape or ()
        size = 1
        for n in shape:
            size *= n
        if param._differentiable and (size >= min_size or min(shape, default=0) <= 0):
            param._shard_along(axis)

    def mark(part: Any) -> None:
        if isinstance(part, HybridBlock):
            part._holds_shards = any(p._extra_shard_axis for p in part._reg_params.values())
            part._clear_cached_op()

    block.apply(mark)
    return block
