"""Exchanges between processes, as programs of their own over one device of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import jax
from jax import lax

from ..core.context import Context
from ..op.joint import device_axis, psum
from .devices import context_of
from .spmd import AXIS, DeviceGroup
from .x64 import x64


def process_count() -> int:
    """Return how many processes `jax.distributed` has joined, 1 if it was not started."""
    return jax.process_count() if jax.distributed.is_initialized() else 1


def process_index() -> int:
    """Return the number of this process among them."""
    return jax.process_index() if jax.distributed.is_initialized() else 0


@cache
def process_group(ctx: Context) -> DeviceGroup:
    """Return the group of one device of each process, of the kind of `ctx`; `ctx` is this process's member."""
    from .devices import device_of

    mine = device_of(ctx)
    kind = mine.platform
    first: dict[int, Any] = {}
    for d in jax.devices(kind):
        first.setdefault(d.process_index, d)
    first[mine.process_index] = mine
    return DeviceGroup((ctx,), [first[p] for p in sorted(first)])


@cache
def _program(kind: str, root: int, group: DeviceGroup, types: tuple[Any, ...]) -> Any:
    shapes = [shape for shape, _ in types]

    def add(*values: Any) -> list[Any]:
        return psum(values)

    def broadcast(*values: Any) -> list[Any]:
        here = lax.axis_index(AXIS) == root
        return psum([lax.select(lax.broadcast(here, v.shape), v, lax.full_like(v, 0)) for v in values])

    def gather(*values: Any) -> list[Any]:
        return [lax.all_gather(v, AXIS) for v in values]

    bodies: dict[str, Callable[..., list[Any]]] = {"sum": add, "broadcast": broadcast, "gather": gather}
    ndims = [len(s) for s in shapes]
    after = [n + 1 for n in ndims] if kind == "gather" else ndims
    body = group.shard_mapped(bodies[kind], ndims, after)
    with x64(), device_axis(AXIS, group.size, True):
        specs = [group.global_aval(shape, dtype) for shape, dtype in types]
        return jax.jit(body).lower(*specs).compile()


def launch_collective(kind: str, arrays: Sequence[Any], root: int = 0) -> list[Any]:
    """Start an exchange of this process's arrays with those of the same types of all processes.

    Args:
        kind: `"sum"`, `"broadcast"` (of process `root`) or `"gather"` (stacked along a new first axis).
        arrays: JAX arrays on one device.

    Returns:
        The results on that device; they may not be there yet.
    """
    group = process_group(context_of(arrays[0]))
    program = _program(kind, root, group, tuple((a.shape, a.dtype) for a in arrays))
    with x64():
        results = program(*[group.from_shards([a]) for a in arrays])
    return [group.local_shards(r)[0] for r in results]
