"""Process settings, NumPy semantics switches, devices."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from typing import Any, TypeVar

from .compile.devices import device_of, local_devices
from .core import np_mode
from .core.context import Context
from .core.errors import ArgumentError, ArgumentTypeError, MXNetError

T = TypeVar("T")


def is_np_array() -> bool:
    """Return whether Gluon blocks and parameters work with `mx.np.ndarray`."""
    return np_mode.array.get()


def is_np_shape() -> bool:
    """Return whether shapes follow NumPy: a 0 is an empty axis, -1 an unknown one."""
    return np_mode.shape.get()


def set_np(shape: bool = True, array: bool = True) -> None:
    """Switch NumPy semantics on, for shapes and for the arrays of Gluon.

    Raises:
        ArgumentError: arrays without shapes.

    Example:
        >>> import dualmx as mx
        >>> mx.npx.set_np()
        >>> mx.util.is_np_array(), mx.util.is_np_shape()
        (True, True)
        >>> mx.npx.reset_np()
    """
    if array and not shape:
        raise ArgumentError("set_np: shape=False, array=True: NumPy arrays need NumPy shapes")
    np_mode.array.set(bool(array))
    np_mode.shape.set(bool(shape))


def reset_np() -> None:
    """Switch NumPy semantics off."""
    set_np(False, False)


def set_np_shape(active: bool) -> bool:
    """Switch NumPy shapes on or off; returns what was set before."""
    before = np_mode.shape.get()
    np_mode.shape.set(bool(active))
    return before


def np_shape(active: bool = True) -> np_mode.Scope:
    """Return a scope of NumPy shapes: `with np_shape(): …`.

    Example:
        >>> import dualmx as mx
        >>> with mx.util.np_shape():
        ...     mx.util.is_np_shape()
        True
    """
    return np_mode.Scope(np_mode.shape, active)


def np_array(active: bool = True) -> np_mode.Scope:
    """Return a scope of NumPy arrays: `with np_array(): …`."""
    return np_mode.Scope(np_mode.array, active)


def _scoped(func: Any, *switches: Any) -> Any:
    """Return a function, or a class with all its methods, that runs with the switches on."""
    if inspect.isclass(func):
        for name, member in list(vars(func).items()):
            if inspect.isfunction(member):
                setattr(func, name, _scoped(member, *switches))
        return func
    if not callable(func):
        raise ArgumentTypeError(f"use_np: {func!r}: expected a function or a class")

    @functools.wraps(func)
    def run(*args: Any, **kwargs: Any) -> Any:
        scopes = [np_mode.Scope(s, True) for s in switches]
        for scope in scopes:
            scope.__enter__()
        try:
            return func(*args, **kwargs)
        finally:
            for scope in reversed(scopes):
                scope.__exit__()

    return run


def use_np(func: Any) -> Any:
    """Return a function, or a class with all its methods, that runs with NumPy shapes and arrays; a decorator."""
    return _scoped(func, np_mode.shape, np_mode.array)


def use_np_shape(func: Any) -> Any:
    """Return a function, or a class with all its methods, that runs with NumPy shapes; a decorator."""
    return _scoped(func, np_mode.shape)


def use_np_array(func: Any) -> Any:
    """Return a function, or a class with all its methods, that runs with NumPy arrays; a decorator."""
    return _scoped(func, np_mode.array)


# Keywords of NumPy's ufuncs and the only values that MXNet accepts.
_UFUNC_OPTIONS = {"where": (True,), "casting": ("same_kind",), "order": ("K",), "dtype": None, "subok": (True,)}
_UFUNC_TYPES = ("float16", "float32", "float64", "int8", "uint8", "int32", "int64")


def np_ufunc_legal_option(key: str, value: Any) -> bool:
    """Return whether a keyword of NumPy's ufuncs may have this value."""
    if key == "dtype":
        return getattr(value, "__name__", str(value)) in _UFUNC_TYPES
    allowed = _UFUNC_OPTIONS.get(key)
    return allowed is not None and any(value is a or value == a for a in allowed)


def _checked(func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    def run(*args: Any, **kwargs: Any) -> Any:
        for key, value in kwargs.items():
            if key != "out" and not np_ufunc_legal_option(key, value):
                raise ArgumentTypeError(f"{func.__name__}: {key}={value!r} is not supported")
        return func(*args, **{k: v for k, v in kwargs.items() if k == "out"})

    return run


def wrap_np_unary_func(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return `func(x, out=None)` with NumPy's further keywords checked and dropped; a decorator."""
    return _checked(func)


def wrap_np_binary_func(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return `func(x1, x2, out=None)` with NumPy's further keywords checked and dropped; a decorator."""
    return _checked(func)


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
    return len(local_devices("gpu"))


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
    "np_array", "np_shape", "np_ufunc_legal_option", "reset_np", "set_module", "set_np", "set_np_shape", "setenv",
    "use_np", "use_np_array", "use_np_shape", "wrap_np_binary_func", "wrap_np_unary_func",
]  # fmt: skip
