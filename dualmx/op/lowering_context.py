"""What an operator body may ask of the lowering: platform, mesh, device axis, sums over devices and processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

MIN_LIBRARY_FLOPS = (
    4_000_000  # floating-point operations from which a call of a library costs nothing beside a convolution
)

_platform: ContextVar[str] = ContextVar("dualmx_platform", default="cpu")
_library: ContextVar[Callable[[], bool] | None] = ContextVar("dualmx_convolution_library", default=None)


def platform() -> str:
    """Return the platform (`"cpu"`, `"gpu"`, `"tpu"`) that the current lowering targets."""
    return _platform.get()


def uses_onednn(flops: int) -> bool:
    """True if a float32 convolution of that many floating-point operations goes to a library instead of XLA."""
    there = _library.get()
    return flops >= MIN_LIBRARY_FLOPS and there is not None and there()


_layers: ContextVar[bool] = ContextVar("dualmx_layer_primitives", default=False)


def has_layer_primitives() -> bool:
    """True where a body is traced for the interpreter, which runs some layers as one primitive."""
    return _layers.get()


@contextmanager
def with_layer_primitives() -> Iterator[None]:
    """Inside the `with` block, `has_layer_primitives()` returns True."""
    token = _layers.set(True)
    try:
        yield
    finally:
        _layers.reset(token)


@contextmanager
def lowering_on_platform(name: str, library: Callable[[], bool] | None = None) -> Iterator[None]:
    """Set what `platform()` returns inside the `with` block; the compile room wraps every trace in it.

    `library` tells, when it matters, whether large convolutions are computed by a library instead of XLA.

    Example:
        >>> with lowering_on_platform("gpu"):
        ...     platform()
        'gpu'
    """
    tokens = _platform.set(name), _library.set(library)
    try:
        yield
    finally:
        _platform.reset(tokens[0])
        _library.reset(tokens[1])


REMAT_NAME = "unsaved"  # name of values that backward passes make again
_MIN_MESSAGE_BYTES = 1 << 20  # bytes from which a value is worth a message of its own

_axis: ContextVar[tuple[str, int, bool] | None] = ContextVar("dualmx_joint_axis", default=None)


@contextmanager
def device_axis(name: str, size: int, fuse: bool) -> Iterator[None]:
    """Inside the `with` block, `psum` sums over the `size` devices of the mapped axis `name`.

    With `fuse`, small values of one element type are exchanged as one: fewer messages between processes, for two
    copies.
    """
    token = _axis.set((name, size, fuse))
    try:
        yield
    finally:
        _axis.reset(token)


_mesh: ContextVar[Any] = ContextVar("dualmx_mesh", default=None)


@contextmanager
def lowering_on(mesh: Any) -> Iterator[None]:
    """Inside the `with` block, `mesh()` returns `mesh`."""
    token = _mesh.set(mesh)
    try:
        yield
    finally:
        _mesh.reset(token)


def mesh() -> Any:
    """Return the mesh context that the current lowering targets, `None` if it is for one device."""
    return _mesh.get()


def device_grid() -> Any:
    """Return the devices of the mesh as JAX names them here: inside of `shard_map` it takes its own name only."""
    there = jax.sharding.get_abstract_mesh()
    return mesh().mesh if there.empty else there


def axis_size() -> int:
    """Return how many devices run the program that is being lowered together; 1 while shapes are inferred."""
    found = _axis.get()
    return found[1] if found else 1


def psum(values: Sequence[Any]) -> list[Any]:
    """Sum each value over the devices that run the program together.

    Example:
        >>> psum([jnp.ones(2), jnp.ones(3)])[1].shape
        (3,)
    """
    found = _axis.get()
    if found is None:
        return list(values)
    name, _, fuse = found
    if not fuse:
        return [jax.lax.psum(v, name) for v in values]
    out: list[Any] = [None if v.size * v.dtype.itemsize < _MIN_MESSAGE_BYTES else jax.lax.psum(v, name) for v in values]
    for dtype in dict.fromkeys(v.dtype for v in values):
        at = [i for i, v in enumerate(values) if v.dtype == dtype and out[i] is None]
        if not at:
            continue
        flat = [values[i].reshape(-1) for i in at]
        total = jax.lax.psum(jnp.concatenate(flat) if len(at) > 1 else flat[0], name)
        begin = 0
        for i in at:
            out[i] = total[begin : begin + values[i].size].reshape(values[i].shape)
            begin += values[i].size
    return out


CrossProcessSum = Callable[
    [str, list[np.ndarray]], list[np.ndarray]
]  # sums arrays over processes; the text names the exchange
_beyond: list[CrossProcessSum] = []


def sum_processes_by(function: CrossProcessSum) -> None:
    """Let `psum_over_processes` sum over processes by `function`."""
    _beyond[:] = [function]


def psum_over_processes(values: Sequence[Any], processes: int, key: str) -> list[Any]:
    """Sum each value over the devices that run the program together, and over processes that run the same program.

    Args:
        values: of 32 or 64 bits, with axes, of the same shapes and dtypes everywhere.
        processes: how many there are; 1 for this one alone.
        key: tells this exchange from others of the program, alike in all processes.
    """
    found = psum(values)
    if processes == 1:
        return found
    axis = _axis.get()
    device = jax.lax.axis_index(axis[0]) if axis else jnp.int32(0)

    # As words of 32 bits: the threads that call back know no longer ones.
    words = [jax.lax.bitcast_convert_type(v, jnp.uint32) for v in found]
    kinds = [(np.dtype(v.dtype), v.shape, w.shape) for v, w in zip(found, words, strict=True)]

    def exchange(device: Any, *arrays: Any) -> tuple[np.ndarray, ...]:
        values = [np.asarray(a).view(t).reshape(s) for a, (t, s, _) in zip(arrays, kinds, strict=True)]
        sums = _beyond[0](f"{key}/{int(device)}", values)
        flat = [np.ascontiguousarray(a).reshape(-1).view(np.uint32) for a in sums]
        return tuple(a.reshape(w) for a, (_, _, w) in zip(flat, kinds, strict=True))

    like = tuple(jax.ShapeDtypeStruct(w.shape, w.dtype) for w in words)
    sums = jax.pure_callback(exchange, like, device, *words)
    return [jax.lax.bitcast_convert_type(t, v.dtype) for t, v in zip(sums, found, strict=True)]
