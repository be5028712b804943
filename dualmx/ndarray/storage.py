"""Saving and loading arrays, and waiting for everything."""

from __future__ import annotations

import contextlib
import os
import weakref
from typing import Any

import jax
import numpy as np

from ..core.checks import instance
from ..core.errors import MXNetError
from . import serialize
from .array import NDArray
from .creation import from_host
from .flush import flush, in_flight
from .trace import engine, local


def _make(body: Any) -> NDArray:
    if isinstance(body, serialize.SparseBody):
        return engine.sparse.of_body(body)
    return from_host(np.asarray(body))


def save(fname: str | os.PathLike[str], data: Any) -> None:
    """Write an array, a list or a dict of arrays in MXNet's `.params` format.

    Example:
        >>> import dualmx as mx
        >>> mx.nd.save("w.params", {"w": mx.nd.ones((2,))})
        >>> mx.nd.load("w.params")["w"].asnumpy().tolist()
        [1.0, 1.0]
    """
    serialize.save(fname, data)


def save_tobuffer(data: Any) -> bytes:
    """Return what `save` would write.

    Example:
        >>> import dualmx as mx
        >>> mx.nd.load_frombuffer(mx.nd.save_tobuffer([mx.nd.zeros((2, 3))]))[0].shape
        (2, 3)
    """
    return serialize.dumps(data)


def load(fname: str | os.PathLike[str]) -> list[Any] | dict[str, Any]:
    """Read a `.params` file of any MXNet version: a list, or a dict if the arrays were saved with names.

    Raises:
        MXNetError: the file cannot be opened. FormatError: it is truncated or altered.
    """
    return serialize.load(fname, _make)


def load_frombuffer(buf: bytes) -> list[Any] | dict[str, Any]:
    """Read the content of a `.params` file from memory."""
    instance("load_frombuffer", "buf", buf, (bytes, bytearray, memoryview), "bytes")
    return serialize.load_frombuffer(buf, _make)


def waitall() -> None:
    """Execute everything this thread has recorded, and wait until every device is idle.

    Raises:
        MXNetError: a pending operation failed.
    """
    for tr in list(local.traces.values()):
        flush(tr)
    # Programs without a dependency may end in any order, so each is waited for; donated results have gone elsewhere.
    with contextlib.suppress(IndexError):
        while True:
            _wait(in_flight.popleft())
    jax.effects_barrier()


def _wait(results: list[weakref.ref[Any]]) -> None:
    for result in [r() for r in results]:
        if result is not None and not result.is_deleted():
            try:
                result.block_until_ready()
            except RuntimeError as e:
                raise MXNetError(f"execution failed: {str(e).strip()}") from e


__all__ = ["load", "load_frombuffer", "save", "save_tobuffer", "waitall"]
