"""Saving and loading arrays, and waiting for everything."""

from __future__ import annotations

import gc
import os
from typing import Any

import numpy as np

from ..compile.devices import device_of
from ..core.context import current_context
from ..core.errors import FormatError
from . import serialize
from .array import NDArray
from .creation import from_host
from .flush import flush
from .trace import local


def _make(body: Any) -> NDArray:
    if isinstance(body, serialize.SparseBody):
        raise FormatError(f"load: the file holds a {body.stype} array; only dense arrays can be made from it")
    return from_host(np.asarray(body))


def save(fname: str | os.PathLike[str], data: Any) -> None:
    """Write an array, a list or a dict of arrays in MXNet's `.params` format.

    Example:
        >>> save("/tmp/w.params", {"w": NDArray.__new__})  # doctest: +SKIP
    """
    serialize.save(fname, data)


def save_tobuffer(data: Any) -> bytes:
    """Return what `save` would write."""
    return serialize.dumps(data)


def load(fname: str | os.PathLike[str]) -> list[Any] | dict[str, Any]:
    """Read a `.params` file of any MXNet version: a list, or a dict if the arrays were saved with names.

    Raises:
        MXNetError: the file cannot be opened. FormatError: it is truncated or altered.
    """
    return serialize.load(fname, _make)


def load_frombuffer(buf: bytes) -> list[Any] | dict[str, Any]:
    """Read the content of a `.params` file from memory."""
    return serialize.load_frombuffer(buf, _make)


def waitall() -> None:
    """Execute everything this thread has recorded, and wait until every device is idle.

    Raises:
        MXNetError: a pending operation failed.
    """
    for tr in list(local.traces.values()):
        flush(tr)
    # XLA runs the programs of one device in order, so a fresh transfer ends after all of them.
    for ctx in {current_context(), *local.traces}:
        import jax

        jax.device_put(np.zeros(1, np.float32), device_of(ctx)).block_until_ready()
    jax.effects_barrier()


__all__ = ["gc", "load", "load_frombuffer", "save", "save_tobuffer", "waitall"]
