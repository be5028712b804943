"""Groups of contexts: one program runs on the devices of several contexts at once and exchanges values between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ..core.context import Context
from .devices import device_of

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
        """Return the array of the group made of its members' arrays, which it takes over when it is donated."""
        shape = parts[0].shape
        if not shape:
            return jax.make_array_from_single_device_arrays(shape, self._equal, parts)
        return jax.make_array_from_single_device_arrays((self.size * shape[0], *shape[1:]), self._joined, parts)

    def stack_scalars(self, rows: Sequence[Sequence[Any]], dtype: Any) -> Any:
        """Return the array of the group made of one list of numbers per member of this process."""
        values = np.asarray(rows, dtype)
        return jax.make_array_from_process_local_data(self._joined, values.reshape(-1, *values.shape[2:]))

    def local_shards(self, whole: Any) -> list[Any]:
        """Return the parts of this process's members."""
        if whole.ndim:
            return [whole.addressable_data(k) for k in range(len(self.contexts))]
        return [s.data for s in whole.addressable_shards]

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
