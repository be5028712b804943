"""Contexts to JAX devices and meshes; 64-bit scope, transfers, programs of several processes, JAX's logging.

64-bit types are on inside dualmx only, not for the user's own JAX code. Programs over several processes run one at a
time, and whoever waits for one learns of lost processes. JAX logs warnings and worse.
"""

from __future__ import annotations

import logging
import math
import operator
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec, SingleDeviceSharding

from ..core.context import Context, current_context
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError, suggest
from ..core.knobs import DIST_TIMEOUT
from ..core.process import fork_guard
from ..core.process import retain_freed as keep_memory
from ..core.syntax import literal_of

# JAX logs every program it traces at level DEBUG, which scripts give to the root logger.
if not logging.getLogger("jax").level:
    logging.getLogger("jax").setLevel(logging.WARNING)


def x64() -> Any:
    """Context manager under which JAX keeps 64-bit types (about half a microsecond)."""
    return jax.enable_x64(True)


# Functions that say which processes are known to be gone, "" for none; asked while others are waited for.
failure_detectors: list[Callable[[], str]] = []
END_SECONDS = 1.0  # seconds that a program has to end here after others have left


def wait_or_raise_lost(results: Sequence[Any]) -> None:
    """Wait for the results of a program in which other processes take part.

    Several such programs must not be under way at once: each process could wait in another one.

    Raises:
        MXNetError: a process died, or did not come in time.
    """
    limit, began, pause, noticed = DIST_TIMEOUT.integer() or float("inf"), time.monotonic(), 2e-5, 0.0
    for r in results:
        while not r.is_ready():
            time.sleep(pause)
            pause, now = min(2 * pause, 5e-3), time.monotonic()
            gone = next((text for text in (w() for w in failure_detectors) if text), "")
            # The program may be about to end here, with the others gone after it.
            noticed = noticed or (now if gone else 0.0)
            if not gone and now - began > limit:
                gone = f"the others did not take part within {limit:.0f} s (DUALMX_DIST_TIMEOUT)"
            elif now - noticed < END_SECONDS:
                gone = ""
            if gone:
                raise MXNetError(f"process {jax.process_index()} of {jax.process_count()} lost another one: {gone}")
    jax.block_until_ready(results)


@cache
def _mover(sharding: NamedSharding) -> Any:
    return jax.jit(jnp.copy, out_shardings=sharding)


def reshard(data: Any, sharding: NamedSharding) -> Any:
    """Return a copy with another sharding on the devices of a mesh."""
    with x64():
        data = _mover(sharding)(data)
    wait_or_raise_lost([data])
    return data


def fully_replicated(data: Any) -> Any:
    """Return an array that this process can read completely, gathered if other processes have parts of it.

    All processes that share the array must do this.

    Raises:
        MXNetError: a process died, or did not come in time.
    """
    if not isinstance(data, jax.Array) or data.is_fully_addressable:
        return data
    if not data.is_fully_replicated:
        assert isinstance(data.sharding, NamedSharding)
        data = reshard(data, NamedSharding(data.sharding.mesh, PartitionSpec()))
    return data.addressable_data(0)


def broadcast_number(mesh: Any, number: int) -> int:
    """Return the number of the process with the mesh's first device; all processes of the mesh must call it."""
    grid = mesh.mesh
    parts = NamedSharding(grid, PartitionSpec(grid.axis_names))
    given = jax.make_array_from_callback((mesh.size,), parts, lambda at: np.full(1, number, np.uint32))
    return int(np.asarray(fully_replicated(given))[0])


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

    _interned: dict[Any, Any] = {}
    axes: dict[str, int]
    remote: bool  # devices of other processes belong to it

    def __new__(cls, axes: Mapping[str, int], devices: Iterable[Any] | None = None) -> Mesh:
        sizes = _sizes(axes)
        count = math.prod(sizes.values())
        kind = current_context().device_type.split("_")[0]
        if devices is None:
            found = jax.devices(kind)[:count]
        else:
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
            value = literal_of(value.replace("Ellipsis", "..."))
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
        >>> shard_one_more_axis(Mesh({"data": 1}), (), (2, 6), "data")
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
    """Return the partition spec of a JAX array, `None` on one device or for other shardings."""
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
    """Return an array sharded over the processes along its first axis, from each one's part."""
    processes = len({d.process_index for d in mesh.mesh.devices.flat})
    global_shape = (part.shape[0] * processes, *part.shape[1:]) if part.ndim else ()
    sharding = mesh.sharding(spec, global_shape, what)
    with x64():
        # A copy, for JAX keeps the memory of NumPy's arrays where it can, and the caller may write to it.
        return jax.make_array_from_process_local_data(sharding, np.array(part), global_shape)


ALIGNMENT = 64  # bytes
MAX_COPIED_BYTES = 32 << 10  # bytes that are not aligned, which JAX copies before it returns
_FIRST_CPU = Context("cpu", 0)
_BACKEND = {"cpu": "cpu", "cpu_pinned": "cpu", "cpu_shared": "cpu", "gpu": "gpu", "tpu": "tpu"}


def local_devices(kind: str) -> list[Any]:
    """Return this process's devices of one kind, `[]` if there are none."""
    keep_memory()
    fork_guard.runs_xla = True
    try:
        return jax.local_devices(backend=_BACKEND[kind])
    except RuntimeError:
        return []


@cache
def device_of(ctx: Context) -> Any:
    """Return the JAX device of `ctx`; CPU contexts beyond the physical ones share them in turn.

    Raises:
        MXNetError: there is no such GPU or TPU; the text names the context and what there is.
    """
    if ctx.mesh is not None:
        return ctx.mesh.devices.flat[0]
    found = local_devices(ctx.device_type)
    if _BACKEND[ctx.device_type] == "cpu":
        return found[ctx.device_id % len(found)]
    if ctx.device_id >= len(found):
        kinds = {k: len(local_devices(k)) for k in ("cpu", "gpu", "tpu")}
        there = ", ".join(f"{n} {k}" for k, n in kinds.items() if n)
        raise MXNetError(
            f"{ctx}: no such device in this process; there is {there}. Use mx.cpu(), or install a JAX with "
            f"{ctx.device_type.upper()} support"
        )
    return found[ctx.device_id]


@cache
def sharding_of(ctx: Context) -> Any:
    """Return the sharding on the device of `ctx`, replicated on a mesh."""
    if isinstance(ctx, Mesh):
        return ctx.sharding()
    return SingleDeviceSharding(device_of(ctx))


def context_of(array: jax.Array) -> Context:
    """Return the context of a JAX array (of its first device if it has several)."""
    device = min(array.devices(), key=lambda d: d.id)
    kind = {"cpu": "cpu", "tpu": "tpu"}.get(device.platform, "gpu")
    local = local_devices(kind)
    return Context(kind, local.index(device) if device in local else 0)


def device_put(value: Any, ctx: Context, like: Any = None) -> jax.Array:
    """Copy a NumPy or JAX array to the device of `ctx`, keeping 64-bit types; on a mesh sharded like `like`."""
    with x64():
        if isinstance(ctx, Mesh):
            if isinstance(value, jax.Array) and getattr(value.sharding, "mesh", None) is ctx.mesh:
                return value.copy()
            spec = None if like is None or like.shape != value.shape else spec_of(like)
            return device_put_sharded(fully_replicated(value), ctx, spec or ())
        value = fully_replicated(value)
        if isinstance(value, np.ndarray):
            # XLA on CPU may alias an aligned NumPy buffer; the caller's later writes must not reach the array.
            value = value.copy()
        # Contexts may share a device: an alias would be deleted when one of the two arrays is donated.
        return jax.device_put(value, device_of(ctx), may_alias=False if isinstance(value, jax.Array) else None)


def jax_from_numpy_nocopy(value: np.ndarray, ctx: Context) -> jax.Array:
    """Return a JAX array of NumPy memory that nobody writes any more, without a copy if it is aligned."""
    with x64():
        return jax.device_put(value, device_of(ctx), may_alias=True)


def accepts_numpy(value: np.ndarray, ctx: Context) -> bool:
    """Whether programs on `ctx` accept NumPy arrays: CPUs do, for types that JAX does not narrow."""
    return value.itemsize < 8 and ctx.mesh is None and _BACKEND.get(ctx.device_type) == "cpu"


def is_aligned(value: np.ndarray) -> bool:
    """Whether XLA's programs read the memory of an array in place; they copy other arrays each time."""
    return value.flags.c_contiguous and value.__array_interface__["data"][0] % ALIGNMENT == 0


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype, zeros: bool = False) -> np.ndarray:
    """Return an aligned array of any values, or of zeros, for which the system needs no memory before it is written."""
    n_bytes = math.prod(shape) * dtype.itemsize
    memory = (np.zeros if zeros else np.empty)(n_bytes + ALIGNMENT, np.uint8)
    start = -memory.__array_interface__["data"][0] % ALIGNMENT
    return memory[start : start + n_bytes].view(dtype).reshape(shape)


def aligned_copy(value: np.ndarray) -> np.ndarray:
    """Return an aligned copy in new memory, not to be written."""
    copy = aligned_empty(value.shape, value.dtype)
    copy[...] = value
    copy.flags.writeable = False
    return copy


def device_put_small(value: np.ndarray, ctx: Context) -> jax.Array:
    """As `put`, for a NumPy array; quicker where it is small and `ctx` is the device that programs run on anyway."""
    if value.nbytes > MAX_COPIED_BYTES and not is_aligned(value):
        value = value.copy()  # JAX copies it after it has returned, and by then it may have changed
    if ctx is _FIRST_CPU and _on_cpu_by_default() and jax.config.jax_default_device is None:  # type: ignore[attr-defined]
        if value.itemsize < 8:
            return _identity_program(value)
        with x64():
            return _identity_program(value)
    return device_put(value, ctx)


_identity_program = jax.jit(lambda value: value)  # no program runs: what goes in is copied, and comes out


@cache
def _on_cpu_by_default() -> bool:
    return jax.default_backend() == "cpu"


def copy_buffer(array: jax.Array) -> jax.Array:
    """Return a copy that shares no memory with `array`."""
    with x64():
        return array.copy()


def reset_effect_errors() -> None:
    """Run a program with a callback on each device, since JAX keeps reporting how the last one ended."""
    for device in jax.local_devices():
        with jax.default_device(device):
            jax.jit(lambda: jax.debug.callback(lambda: None))()
