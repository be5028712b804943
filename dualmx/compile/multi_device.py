"""Programs over several contexts with collectives between them, and collectives between processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ..core.context import Context
from ..op.lowering_context import device_axis, psum
from .devices import context_of, device_of, x64

AXIS = "device"


class DeviceGroup:
    """Several contexts on different devices, in order.

    An array of the group is the arrays of its members joined along the first axis, without a copy: member k's part lies
    on member k's device. Arrays without axes are declared equal on all members, which nothing checks.

    Args:
        contexts: members in this process.
        devices: devices of all members, those of other processes included; those of `contexts` among them.
    """

    def __init__(self, contexts: tuple[Context, ...], devices: Sequence[Any]):
        self.contexts = contexts
        self.size = len(devices)
        self.is_multi_process = len(devices) > len(contexts)
        self.mesh = Mesh(np.array(devices), (AXIS,))
        self._joined = NamedSharding(self.mesh, PartitionSpec(AXIS))
        self._equal = NamedSharding(self.mesh, PartitionSpec())

    def global_aval(self, shape: tuple[int, ...], dtype: Any) -> jax.ShapeDtypeStruct:
        """The array of the group whose members' parts have this shape."""
        if not shape:
            return jax.ShapeDtypeStruct(shape, dtype, sharding=self._equal)
        return jax.ShapeDtypeStruct((self.size * shape[0], *shape[1:]), dtype, sharding=self._joined)

    def from_shards(self, parts: list[Any]) -> Any:
        """Return the group's array of its members' arrays, which it takes over when it is donated."""
        shape = parts[0].shape
        if not shape:
            return jax.make_array_from_single_device_arrays(shape, self._equal, parts)
        return jax.make_array_from_single_device_arrays((self.size * shape[0], *shape[1:]), self._joined, parts)

    def stack_scalars(self, rows: Sequence[Sequence[Any]], dtype: Any) -> Any:
        """Return the group's array of one list of numbers per member of this process."""
        values = np.asarray(rows, dtype)
        return jax.make_array_from_process_local_data(self._joined, values.reshape(-1, *values.shape[2:]))

    def local_shards(self, array: Any) -> list[Any]:
        """Return the parts of this process's members."""
        if array.ndim:
            return [array.addressable_data(k) for k in range(len(self.contexts))]
        return [s.data for s in array.addressable_shards]

    def shard_mapped(self, body: Callable[..., list[Any]], inputs: Sequence[int], outputs: Sequence[int]) -> Any:
        """Return `body`, a function of one member's parts, as a function of arrays of the group.

        Args:
            body: arrays in, list of arrays out.
            inputs, outputs: numbers of axes.
        """

        def spec(ndim: int) -> PartitionSpec:
            return PartitionSpec(AXIS) if ndim else PartitionSpec()

        return jax.shard_map(
            body,
            mesh=self.mesh,
            in_specs=tuple(spec(n) for n in inputs),
            out_specs=[spec(n) for n in outputs],
            check_vma=False,
        )


@cache
def group_of(contexts: tuple[Context, ...]) -> DeviceGroup | None:
    """Return the group of these contexts, None if two of them share a device."""
    devices = [device_of(c) for c in contexts]
    return DeviceGroup(contexts, devices) if len(set(devices)) == len(devices) > 1 else None


@cache
def group_over_processes(contexts: tuple[Context, ...]) -> DeviceGroup | None:
    """Return the group of these contexts and of those in their places in all processes that XLA has joined.

    None if XLA knows of no other process, or one has fewer devices.
    """
    here = [device_of(c) for c in contexts]
    by_process: dict[int, list[Any]] = {}
    for d in jax.devices(here[0].platform):
        by_process.setdefault(d.process_index, []).append(d)
    own = by_process[here[0].process_index]
    if len(by_process) == 1 or len(set(here)) < len(here) or any(d not in own for d in here):
        return None
    at = [own.index(d) for d in here]
    if any(len(devices) <= max(at) for devices in by_process.values()):
        return None
    return DeviceGroup(contexts, [devices[i] for _, devices in sorted(by_process.items()) for i in at])


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
