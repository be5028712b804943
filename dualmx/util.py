"""Process settings and devices.

The NumPy front end (`mx.np`) is not part of dualmx: arrays have MXNet's classic semantics, and asking for the other
ones is an error instead of being ignored.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from .compile.devices import device_of, devices_of
from .core.context import Context
from .core.errors import ArgumentError, MXNetError

T = TypeVar("T")


def is_np_array() -> bool:
    """Return whether functions yield NumPy-like arrays: never."""
    return False


def is_np_shape() -> bool:
    """Return whether 0 in a shape means an empty axis: never, it means an unknown one."""
    return False


def _refuse(what: str) -> MXNetError:
    return MXNetError(f"{what}: dualmx has no NumPy semantics (mx.np); use mx.nd, or NumPy functions on arrays")


def set_np(shape: bool = True, array: bool = True) -> None:
    """Refuse to switch NumPy semantics on; `set_np(False, False)` changes nothing."""
    if shape or array:
        raise _refuse("set_np")


def reset_np() -> None:
    """Switch NumPy semantics off, as they are."""


def set_np_shape(active: bool) -> bool:
    """Refuse to switch NumPy shapes on; returns what was set, False."""
    if active:
        raise _refuse("set_np_shape")
    return False


@contextlib.contextmanager
def np_shape(active: bool = True) -> Iterator[None]:
    """Return a scope without NumPy shapes; `active=True` is refused."""
    set_np_shape(active)
    yield


@contextlib.contextmanager
def np_array(active: bool = True) -> Iterator[None]:
    """Return a scope without NumPy arrays; `active=True` is refused."""
    if active:
        raise _refuse("np_array")
    yield


def use_np(func: Any) -> Any:
    """Refuse: see the module's text."""
    raise _refuse("use_np")


def use_np_shape(func: Any) -> Any:
    """Refuse: see the module's text."""
    raise _refuse("use_np_shape")


def use_np_array(func: Any) -> Any:
    """Refuse: see the module's text."""
    raise _refuse("use_np_array")


def set_module(module: str) -> Callable[[T], T]:
    """Return a decorator that sets `__module__`, the place under which an object is shown."""

    def decorate(found: T) -> T:
        found.__module__ = module
        return found

    return decorate


def getenv(name: str) -> str | None:
    """Return an environment variable, None if it is not set."""
    return os.environ.get(name)


def setenv(name: str, value: str | None) -> None:
    """Set an environment variable of this process; None removes it."""
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = str(value)


def get_gpu_count() -> int:
    """Return the number of GPUs of this process."""
    return len(devices_of("gpu"))


def get_gpu_memory(gpu_dev_id: int) -> tuple[int, int]:
    """Return free and total bytes of a GPU, as far as this process may use it.

    Raises:
        MXNetError: there is no such GPU, or it does not tell.
    """
    found = device_of(Context("gpu", gpu_dev_id)).memory_stats() or {}
    if "bytes_limit" not in found:
        raise MXNetError(f"get_gpu_memory: gpu({gpu_dev_id}) does not tell its memory")
    return found["bytes_limit"] - found.get("bytes_in_use", 0), found["bytes_limit"]


def get_cuda_compute_capability(ctx: Context) -> int:
    """Return the compute capability of an NVIDIA GPU as one number, 90 for 9.0.

    Raises:
        ArgumentError: `ctx` is no GPU. MXNetError: it has no such number.
    """
    if not isinstance(ctx, Context) or ctx.device_type != "gpu":
        raise ArgumentError(f"get_cuda_compute_capability: ctx={ctx!r}: expected a GPU context")
    text = getattr(device_of(ctx), "compute_capability", None)
    if text is None:
        raise MXNetError(f"get_cuda_compute_capability: {ctx} has no compute capability")
    return int(str(text).replace(".", ""))


__all__ = [
    "get_cuda_compute_capability", "get_gpu_count", "get_gpu_memory", "getenv", "is_np_array", "is_np_shape",
    "np_array", "np_shape", "reset_np", "set_module", "set_np", "set_np_shape", "setenv", "use_np", "use_np_array",
    "use_np_shape",
]  # fmt: skip
