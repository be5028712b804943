"""Save and load arrays, and wait for everything."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ..compile.devices import reset_effect_errors
from ..core.argcheck import require_instance
from . import serialize
from .execute import flush, in_flight, in_flight_lock
from .interop import array_from_numpy
from .ndarray import NDArray
from .recorder import async_error, local, note_failure, reported_failures
from .storage import sparse_storage


def _make(body: Any) -> NDArray:
    if isinstance(body, serialize.SparseBody):
        return sparse_storage().of_body(body)
    return array_from_numpy(np.asarray(body))


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
    require_instance("load_frombuffer", "buf", buf, (bytes, bytearray, memoryview), "bytes")
    return serialize.load_frombuffer(buf, _make)


def waitall() -> None:
    """Execute everything this thread has recorded, and wait until every device is idle.

    Raises:
        MXNetError: a pending operation failed, and nothing that was read before has told so.
    """
    for tr in list(local.traces.values()):
        if tr.state.depth:
            flush(tr)
    failures: list[RuntimeError] = []
    # Programs without a dependency may end in any order, so each is waited for; donated results have gone elsewhere.
    while True:
        with in_flight_lock:
            results = in_flight.popleft() if in_flight else None
        if results is None:
            break
        for result in [r() for r in results]:
            if result is not None and not result.is_deleted():
                _wait(result.block_until_ready, failures)
    if not _wait(jax.effects_barrier, failures):
        reset_effect_errors()
    error = async_error(failures[0]) if failures else None
    reported_failures.clear()
    if error is not None:
        raise error from failures[0]


def _wait(action: Callable[[], Any], failures: list[RuntimeError]) -> bool:
    """Wait for something to end; returns whether it ended well, and adds a failure that nobody knows of."""
    try:
        action()
    except RuntimeError as e:
        if note_failure(e):
            failures.append(e)
        return False
    return True


__all__ = ["load", "load_frombuffer", "save", "save_tobuffer", "waitall"]
