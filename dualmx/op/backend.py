"""The platform that operator bodies are being lowered for; bodies choose formulations by it, users never see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LARGE = 4_000_000  # floating-point operations from which a call of a library costs nothing beside a convolution

_platform: ContextVar[str] = ContextVar("dualmx_platform", default="cpu")
_library: ContextVar[Callable[[], bool] | None] = ContextVar("dualmx_convolution_library", default=None)


def platform() -> str:
    """Return the platform (`"cpu"`, `"gpu"`, `"tpu"`) that the current lowering targets."""
    return _platform.get()


def uses_onednn(flops: int) -> bool:
    """True if a float32 convolution of that many floating-point operations goes to a library instead of XLA."""
    there = _library.get()
    return flops >= LARGE and there is not None and there()


@contextmanager
def lowering_on_platform(name: str, library: Callable[[], bool] | None = None) -> Iterator[None]:
    """Set what `platform()` returns inside the `with` block; the compile room wraps every trace in it.

    `library` tells, when it matters, whether large convolutions are computed by a library instead of XLA.

    Example:
        >>> with lowering_for("gpu"):
        ...     platform()
        'gpu'
    """
    tokens = _platform.set(name), _library.set(library)
    try:
        yield
    finally:
        _platform.reset(tokens[0])
        _library.reset(tokens[1])
