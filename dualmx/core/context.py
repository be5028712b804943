"""`Context`, where an array lives (`cpu(0)`, `gpu(1)`, `tpu(0)`), and the default of each thread."""

from __future__ import annotations

import re
import threading
from typing import Any

from .errors import ArgumentError, ArgumentKeyError

DEVICE_TYPES = {"cpu": 1, "gpu": 2, "cpu_pinned": 3, "cpu_shared": 5, "tpu": 6}
_TYPE_NAMES = {code: name for name, code in DEVICE_TYPES.items()}


class _ContextType(type):
    """Class-level properties of `Context`."""

    @property
    def default_ctx(cls) -> Context:
        """The default context; an assignment holds outside of `with` statements."""
        return current_context()

    @default_ctx.setter
    def default_ctx(cls, ctx: Context) -> None:
        if not isinstance(ctx, Context):
            raise ArgumentError(f"Context.default_ctx: {ctx!r}: expected a Context")
        _scope.default = ctx


class Context(metaclass=_ContextType):
    """A device by kind and index; interned, so that equal contexts are the same object.

    Args:
        device_type: `"cpu"`, `"gpu"`, `"tpu"`, `"cpu_pinned"`, `"cpu_shared"`, or another `Context`.
        device_id: index of the device among those of its kind.

    Example:
        >>> with Context("cpu", 1):
        ...     str(current_context())
        'cpu(1)'
    """

    __slots__ = ("device_type", "device_id", "_outer", "__weakref__")
    devtype2str = _TYPE_NAMES
    devstr2type = DEVICE_TYPES
    _interned: dict[tuple[str, int], Context] = {}
    mesh: Any = None  # the grid of devices of a `parallel.Mesh`
    device_type: str
    device_id: int
    _outer: list[Context]

    def __new__(cls, device_type: str | Context, device_id: int = 0) -> Context:
        if isinstance(device_type, Context):
            return device_type
        if device_type not in DEVICE_TYPES:
            raise ArgumentKeyError(f"Context: device_type={device_type!r}: expected one of {', '.join(DEVICE_TYPES)}")
        try:
            key = (device_type, int(device_id))
        except (TypeError, ValueError):
            raise ArgumentError(f"Context: device_id={device_id!r}: expected an integer") from None
        if key[1] < 0:
            raise ArgumentError(f"Context: device_id={device_id}: expected 0 or more")
        ctx = cls._interned.get(key)
        if ctx is None:
            ctx = object.__new__(cls)
            ctx.device_type, ctx.device_id = key
            ctx._outer = []
            ctx = cls._interned.setdefault(key, ctx)
        return ctx

    def common_seed(self, seed: int) -> int:
        """Return the seed with which random numbers on this context begin: the same in all processes that share it."""
        return seed

    @property
    def device_typeid(self) -> int:
        """MXNet's number of the device kind (1 cpu, 2 gpu, 3 cpu_pinned, 5 cpu_shared)."""
        return DEVICE_TYPES[self.device_type]

    @classmethod
    def parse(cls, text: str) -> Context:
        """Return the context written as `text`, such as `"gpu(1)"`."""
        m = re.fullmatch(r"(\w+)\((\d+)\)", text)
        if not m:
            raise ArgumentError(f"Context: {text!r}: expected a text like 'cpu(0)'")
        return cls(m.group(1), int(m.group(2)))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Context, (self.device_type, self.device_id))

    def __repr__(self) -> str:
        return f"{self.device_type}({self.device_id})"

    def __enter__(self) -> Context:
        _scope.stack.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _scope.stack.pop()

    def empty_cache(self) -> None:
        """Accepted for compatibility: XLA's allocator returns memory by itself."""


class _Scope(threading.local):
    def __init__(self) -> None:
        self.stack: list[Context] = []
        self.default = Context("cpu", 0)


_scope = _Scope()


def current_context() -> Context:
    """Return the context of the innermost `with` statement of this thread, `cpu(0)` outside."""
    return _scope.stack[-1] if _scope.stack else _scope.default


def cpu(device_id: int = 0) -> Context:
    """Return the CPU context `device_id`; several may share one physical CPU."""
    return Context("cpu", device_id)


def gpu(device_id: int = 0) -> Context:
    """Return the GPU context `device_id`; its first use raises when there is no such GPU."""
    return Context("gpu", device_id)


def tpu(device_id: int = 0) -> Context:
    """Return the TPU context `device_id`; its first use raises when there is no such TPU."""
    return Context("tpu", device_id)


def cpu_pinned(device_id: int = 0) -> Context:
    """Return the page-locked CPU context `device_id`; under XLA the same memory as `cpu`."""
    return Context("cpu_pinned", device_id)
