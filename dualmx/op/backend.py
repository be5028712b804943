"""The platform that operator bodies are being lowered for; bodies choose formulations by it, users never see it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_platform: ContextVar[str] = ContextVar("dualmx_platform", default="cpu")


def platform() -> str:
    """Return the platform (`"cpu"`, `"gpu"`, `"tpu"`) that the current lowering targets."""
    return _platform.get()


@contextmanager
def lowering_for(name: str) -> Iterator[None]:
    """Set what `platform()` returns inside the `with` block; the compile room wraps every trace in it.

    Example:
        >>> with lowering_for("gpu"):
        ...     platform()
        'gpu'
    """
    token = _platform.set(name)
    try:
        yield
    finally:
        _platform.reset(token)
