"""Meshes: several devices as one context, over which arrays may be cut."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from ..core.context import Context, current_context
from ..core.errors import ArgumentError, ArgumentTypeError, suggest
from .quiet import quiet_jax_logging
from .remote import broadcast_number, reshard
from .x64 import x64

Spec = tuple[Any, ...]


class Mesh(Context):
    """Devices in a grid with named axes, used wherever a context is.

    Arrays on a mesh are either cut along axes of the mesh, by `parallel.shard` and by the `shard` of parameters and
    variables, or whole on every device. Operations on them are compiled into one program for all devices; XLA decides
    what each computes and inserts the exchanges.

    A mesh may have devices of several processes, which must then all make it, and all do the same with its arrays.

    Args:
        axes: size of each axis by name, such as `{"data": 2, "model": 4}`.
        devices: contexts or JAX devices, as many as the product of the sizes; the first ones of the current context's
            kind by default, those of other processes of a `jax.distributed` job included.

    Raises:
        ArgumentError: there are not as many devices, or a size is below 1.

    Example:
        >>> mesh = Mesh({"data": 1})
        >>> mesh
        mesh(data=1)
        >>> mesh.size
        1
    """

    _interned: dict[Any, Mesh] = {}
    axes: dict[str, int]
    remote: bool  # devices of other processes belong to it

    def __new__(cls, axes: Mapping[str, int], devices: Iterable[Any] | None = None) -> Mesh:
        sizes = _sizes(axes)
        count = math.prod(sizes.values())
        kind = current_context().device_type.split("_")[0]
        if devices is None:
            with quiet_jax_logging():
                found = jax.devices(kind)[:count]
        else:
            from .devices import device_of

            listed = list(devices)
            for d in listed:
                if not isinstance(d, (Context, jax.Device)) or isinstance(d, Mesh):
                    raise ArgumentTypeError(f"Mesh: devices: {d!r}: expected contexts or JAX devices")
            found = [device_of(d) if isinstance(d, Context) else d for d in listed]
        if len(found) != count or len(set(found)) != count:
            raise ArgumentError(
                f"Mesh: axes={sizes} need {count} different devices, there are {len(set(found))}; on a CPU, the "
                f"environment variable XLA_FLAGS=--xla_force_host_platform_device_count={count} makes that many"
            )
        key = (tuple(sizes.items()), tuple(found))
        made = cls._interned.get(key)
        if made is None:
            made = object.__new__(cls)
            made.device_type = {"cpu": "cpu", "tpu": "tpu"}.get(found[0].platform, "gpu")
            made.device_id, made.axes = 0, sizes
            grid = np.array(found, object).reshape(tuple(sizes.values()))
            made.remote = len({d.process_index for d in found}) > 1
            made.mesh = jax.sharding.Mesh(grid, tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
            made = cls._interned.setdefault(key, made)
        return made

    def common_seed(self, seed: int) -> int:
        """Return the seed of the process of the first device."""
        return seed if not self.remote else broadcast_number(self, seed)

    @property
    def size(self) -> int:
        """Number of devices."""
        return math.prod(self.axes.values())

    def __repr__(self) -> str:
        return f"mesh({', '.join(f'{n}={k}' for n, k in self.axes.items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        raise ArgumentTypeError("a Mesh cannot be pickled: its devices belong to this process")

    def sharding(
        self,
        spec: Sequence[Any] = (),
        shape: Sequence[int] | None = None,
        what: str = "sharding",
        open_axes: Any = None,
    ) -> NamedSharding:
        """Return the JAX sharding of a spec, checked against a shape if one is given.

        Args:
            spec: see `parse_spec`.
            shape: of the array; needed where the spec has `...`.
            what: how errors begin.
            open_axes: what stands for the axes under `...`: not cut by default.

        Raises:
            ArgumentError: the mesh has no such axis, one is used twice, or the array cannot be cut this way.
        """
        spec = parse_spec(spec)
        for n in (used := _axes_of(spec)):
            if n not in self.axes:
                raise ArgumentError(f"{what} {spec}: {self!r} has no axis {n!r}; {suggest(n, self.axes)}")
        if len(set(used)) != len(used):
            raise ArgumentError(f"{what} {spec}: an axis of the mesh may be used once")
        if shape is not None:
            spec = self._check(spec, tuple(shape), what, open_axes)
        return NamedSharding(self.mesh, PartitionSpec(*spec))

    def _check(self, spec: Spec, shape: tuple[int, ...], what: str, open_axes: Any) -> Spec:
        given = len(spec) - (... in spec)
        if given > len(shape):
            raise ArgumentError(f"{what} {spec}: {given} axes for an array of shape {shape}")
        if ... in spec:
            at = spec.index(...)
            spec = (*spec[:at], *[open_axes] * (len(shape) - given), *spec[at + 1 :])
        for k, (part, size) in enumerate(zip(spec, shape, strict=False)):
            names = _axes_of((part,))
            parts = math.prod(self.axes[n] for n in names)
            if size % parts:
                raise ArgumentError(
                    f"{what} {spec}: axis {k} of shape {shape} cannot be cut into {parts} equal parts along "
                    f"{' and '.join(map(repr, names))} of {self!r}"
                )
        return spec


def _sizes(axes: Any) -> dict[str, int]:
    """Return the size of each axis of a mesh by name."""
    if not isinstance(axes, Mapping):
        raise ArgumentTypeError(f"Mesh: axes={axes!r}: expected sizes by name, such as {{'data': 2, 'model': 4}}")
    try:
        sizes = {str(n): operator.index(k) for n, k in axes.items()}
    except TypeError:
        raise ArgumentTypeError(f"Mesh: axes={dict(axes)}: expected whole numbers as sizes") from None
    if not sizes or min(sizes.values()) < 1:
        raise ArgumentError(f"Mesh: axes={dict(axes)}: expected one or more axes of size 1 or more")
    return sizes


def _axes_of(spec: Spec) -> list[str]:
    """Return the axes of the mesh that a spec names."""
    cut = [part for part in spec if part is not None and part is not ... and part is not PartitionSpec.UNCONSTRAINED]
    return [n for part in cut for n in ((part,) if isinstance(part, str) else part)]


def parse_spec(spec: Any) -> Spec:
    """Return a sharding spec, one entry per axis of an array: `None`, an axis of the mesh, or a tuple of them.

    One entry may be `...`: any number of axes that the spec says nothing about.

    Raises:
        ArgumentError: something else; texts are read as Python tuples.
    """
    value = spec
    if isinstance(value, str):
        try:
            value = ast.literal_eval(value.replace("Ellipsis", "..."))
        except (ValueError, SyntaxError):
            value = (spec,)
    if value is None:
        return ()
    if isinstance(value, str):
        value = (value,)
    if not isinstance(value, (tuple, list, PartitionSpec)):
        raise ArgumentError(f"sharding {spec!r}: expected a tuple such as ('model', None)")
    out = tuple(tuple(p) if isinstance(p, list) else p for p in value)
    for part in out:
        if part is not None and part is not ... and not isinstance(part, str) and not _names(part):
            raise ArgumentError(f"sharding {spec!r}: {part!r}: expected None, the name of an axis, or a tuple of names")
    if out.count(...) > 1:
        raise ArgumentError(f"sharding {spec!r}: '...' may stand once")
    return out


def _names(part: Any) -> bool:
    return isinstance(part, tuple) and all(isinstance(n, str) for n in part)


def shard_one_more_axis(mesh: Mesh, spec: Sequence[Any], shape: Sequence[int], axis: str) -> Spec:
    """Return a spec that cuts an array along one more axis of the mesh, where its parts are largest.

    The spec stays as it is if it uses that axis already or no axis of the array divides.

    Raises:
        ArgumentError: the mesh has no such axis.

    Example:
        >>> spread(Mesh({"data": 1}), (), (2, 6), "data")
        (None, 'data')
    """
    mesh.sharding((axis,))
    spec = parse_spec(spec)
    if axis in _axes_of(spec):
        return spec
    parts = [(*spec, *[None] * len(shape))[k] for k in range(len(shape))]
    sizes = [n // math.prod(mesh.axes[a] for a in _axes_of((p,))) for p, n in zip(parts, shape, strict=True)]
    fitting = [k for k, n in enumerate(sizes) if n and n % mesh.axes[axis] == 0]
    if not fitting:
        return spec
    k = max(fitting, key=lambda k: sizes[k])
    parts[k] = axis if parts[k] is None else (*_axes_of((parts[k],)), axis)
    return tuple(parts)


def spec_of(array: Any) -> Spec | None:
    """Return the spec by which a JAX array is cut, `None` if it is on one device or cut in some other way."""
    sharding = array.sharding
    if not isinstance(sharding, NamedSharding):
        return None
    spec = tuple(sharding.spec)
    return spec + (None,) * (array.ndim - len(spec))


def device_put_sharded(value: Any, mesh: Mesh, spec: Sequence[Any] = (), what: str = "sharding") -> jax.Array:
    """Copy a NumPy or JAX array to a mesh; each device receives its part only. Errors begin with `what`."""
    sharding = mesh.sharding(spec, value.shape, what)
    with x64():
        if mesh.remote and isinstance(value, jax.Array):
            if not value.is_fully_addressable:
                return reshard(value, sharding)
            value = np.asarray(value)
        if isinstance(value, np.ndarray):
            # Each part is made on its own, so that no device ever holds the whole.
            return jax.make_array_from_callback(value.shape, sharding, lambda at: np.array(value[at]))
        return jax.device_put(value, sharding, may_alias=False)


def from_process_local(part: np.ndarray, mesh: Mesh, spec: Sequence[Any], what: str) -> jax.Array:
    """Return the array of which each process has a part, cut over the processes along its first axis."""
    processes = len({d.process_index for d in mesh.mesh.devices.flat})
    whole = (part.shape[0] * processes, *part.shape[1:]) if part.ndim else ()
    sharding = mesh.sharding(spec, whole, what)
    with x64():
        # A copy, for JAX keeps the memory of NumPy's arrays where it can, and the caller may write to it.
        return jax.make_array_from_process_local_data(sharding, np.array(part), whole)
