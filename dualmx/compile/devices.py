"""Contexts to JAX devices."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import numpy as np
from jax.sharding import SingleDeviceSharding

from ..core.context import Context
from ..core.errors import MXNetError
from ..core.memory import retain_freed as keep_memory
from ..core.process import fork_guard
from .mesh import Mesh, device_put_sharded, spec_of
from .quiet import quiet_jax_logging
from .remote import fully_replicated
from .x64 import x64

ALIGNMENT = 64  # bytes
AT_ONCE = 32 << 10  # bytes that are not aligned, which JAX copies before it returns
_FIRST_CPU = Context("cpu", 0)
_BACKEND = {"cpu": "cpu", "cpu_pinned": "cpu", "cpu_shared": "cpu", "gpu": "gpu", "tpu": "tpu"}


def local_devices(kind: str) -> list[Any]:
    """Return this process's devices of one kind, `[]` if there are none."""
    keep_memory()
    fork_guard.runs_xla = True
    try:
        # The first question makes JAX try every backend and report the missing ones.
        with quiet_jax_logging():
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
    """Return the sharding that puts an array on the device of `ctx`, whole on all devices of a mesh."""
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
    """Copy a NumPy or JAX array to the device of `ctx`, 64-bit types kept; on a mesh cut as the array `like` is."""
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
    """Return a JAX array of NumPy memory that nobody changes any more, without a copy where that is aligned."""
    with x64():
        return jax.device_put(value, device_of(ctx), may_alias=True)


def accepts_numpy(value: np.ndarray, ctx: Context) -> bool:
    """Whether programs on `ctx` take a NumPy array as it is: those on CPUs do, of types that JAX does not narrow."""
    return value.itemsize < 8 and ctx.mesh is None and _BACKEND.get(ctx.device_type) == "cpu"


def is_aligned(value: np.ndarray) -> bool:
    """Whether XLA's programs read the memory of an array where it lies; they copy other arrays each time."""
    return value.flags.c_contiguous and value.__array_interface__["data"][0] % ALIGNMENT == 0


def aligned_copy(value: np.ndarray) -> np.ndarray:
    """Return a copy in memory of its own, which is aligned and not to be changed."""
    memory = np.empty(value.nbytes + ALIGNMENT, np.uint8)
    start = -memory.__array_interface__["data"][0] % ALIGNMENT
    copy = memory[start : start + value.nbytes].view(value.dtype).reshape(value.shape)
    copy[...] = value
    copy.flags.writeable = False
    return copy


def device_put_small(value: np.ndarray, ctx: Context) -> jax.Array:
    """As `put`, for a NumPy array; quicker where it is small and `ctx` is the device that programs run on anyway."""
    if value.nbytes > AT_ONCE and not is_aligned(value):
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
    """Run a program with a callback on each device, since JAX tells for ever how the last one of them ended."""
    for device in jax.local_devices():
        with jax.default_device(device):
            jax.jit(lambda: jax.debug.callback(lambda: None))()
