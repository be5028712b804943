"""Data worker process: receives lists of indices on a socket, returns batches in shared memory.

A batch is an anonymous memory file whose descriptor goes over the socket: nothing stays in /dev/shm, however a process
ends. Workers compute with NumPy and never touch JAX.
"""

from __future__ import annotations

import gc
import io
import mmap
import os
import pickle
import random
import signal
import socket
import struct
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.process import fork_guard
from ...ndarray import NDArray
from .batchify import to_host, worker_mode

REQUEST = struct.Struct("<QQ")  # ticket, size of the pickled indices that follow
REPLY = struct.Struct("<QQB")  # ticket, size of the memory file that comes along, kind
BATCH, FAILURE, UNPICKLE_FAILED = range(3)
_HEAD = struct.Struct("<QQ")  # size of the pickle, number of buffers
_PLACE = struct.Struct("<QQ")  # offset and size of a buffer
_ALIGNMENT = 64


class Failure(NamedTuple):
    """An exception raised in a worker, with its traceback as text; `error` is `None` if it cannot be pickled."""

    error: BaseException | None
    text: str


class HostPickler(pickle.Pickler):
    """Pickles datasets for workers: NDArrays arrive there as NumPy arrays."""

    def reducer_override(self, obj: Any) -> Any:
        """Replace NDArrays, leave everything else to pickle."""
        if isinstance(obj, NDArray):
            return np.asarray, (obj.asnumpy(),)
        return NotImplemented


def flatten(obj: Any, pickler: type[pickle.Pickler] = pickle.Pickler) -> tuple[bytes, list[memoryview]]:
    """Return the pickle of `obj` without the contents of its arrays, and these contents."""
    out, buffers = io.BytesIO(), []
    pickler(out, 5, buffer_callback=buffers.append).dump(obj)
    return out.getvalue(), [b.raw() for b in buffers]


def dump(head: bytes, raws: Sequence[memoryview]) -> tuple[int, int]:
    """Return descriptor and size of a new memory file with the result of `flatten`, arrays aligned."""
    at = _HEAD.size + _PLACE.size * len(raws) + len(head)
    places = []
    for raw in raws:
        at = -(-at // _ALIGNMENT) * _ALIGNMENT
        places.append((at, raw.nbytes))
        at += raw.nbytes
    fd = _memory_file()
    os.ftruncate(fd, at)
    with mmap.mmap(fd, at) as m:
        table = b"".join(_PLACE.pack(*p) for p in places)
        prefix = _HEAD.pack(len(head), len(raws)) + table + head
        m[: len(prefix)] = prefix
        for (start, size), raw in zip(places, raws, strict=True):
            m[start : start + size] = raw
    return fd, at


def load(fd: int, size: int) -> Any:
    """Return the object in a memory file of this process's parent or child; arrays are private views of the file."""
    view = memoryview(mmap.mmap(fd, size, access=mmap.ACCESS_COPY))
    n_head, n_buffers = _HEAD.unpack_from(view)
    start = _HEAD.size + _PLACE.size * n_buffers
    places = [_PLACE.unpack_from(view, _HEAD.size + _PLACE.size * i) for i in range(n_buffers)]
    buffers = [view[at : at + n] for at, n in places]
    return pickle.Unpickler(io.BytesIO(view[start : start + n_head]), buffers=buffers).load()


def _memory_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("dualmx-batch")
    with tempfile.TemporaryFile(prefix="dualmx-batch") as f:
        return os.dup(f.fileno())


def receive(sock: socket.socket, size: int) -> bytes | None:
    """Return exactly `size` bytes, `None` at the end of the connection."""
    parts = []
    while size:
        try:
            part = sock.recv(min(size, 1 << 20))
        except ConnectionError:
            return None
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def fetch(dataset: Any, batchify: Callable[[Any], Any] | None, indices: Any) -> Any:
    """Return the batch of `indices` with NumPy leaves; `batchify=None` is the default collation."""
    if batchify is None:
        return dataset.host_batch(indices)
    return to_host(batchify([dataset[i] for i in indices]))


def serve(sock: socket.socket, dataset: Any, batchify: Callable[[Any], Any] | None) -> None:
    """Answer requests until the other side closes the socket."""
    while (message := receive_object(sock)) is not None:
        ticket, indices = message
        kind, answer = BATCH, None
        try:
            answer = fetch(dataset, batchify, indices)
        except Exception as e:
            kind, answer = FAILURE, Failure(e, traceback.format_exc())
        if not reply(sock, ticket, kind, answer):
            return
        sys.stdout.flush()
        sys.stderr.flush()


def reply(sock: socket.socket, ticket: int, kind: int, answer: Any) -> bool:
    """Send one reply; false if the connection is closed."""
    try:
        fd, size = dump(*flatten(answer))
    except Exception as e:
        # What cannot be pickled is described instead.
        text = answer.text if isinstance(answer, Failure) else f"the batch cannot be sent to the main process: {e!r}"
        kind = FAILURE if kind == BATCH else kind
        fd, size = dump(*flatten(Failure(None, text)))
    try:
        socket.send_fds(sock, [REPLY.pack(ticket, size, kind)], [fd])
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def run_forked(sock: socket.socket, seed: int, dataset: Any, batchify: Any) -> None:
    """Be a worker in a fresh fork of the calling process; does not return."""
    # Inherited objects must never be finalised here: their owners' threads exist only in the parent.
    gc.freeze()
    fork_guard.is_fork = (
        "this process is a fork that makes data batches, and cannot compute with NDArrays: use NumPy in the dataset's "
        "functions and the collation, or DataLoader(thread_pool=True), or num_workers=0"
    )
    _be_worker(seed)
    try:
        serve(sock, dataset, batchify)
    finally:
        os._exit(0)


def _be_worker(seed: int) -> None:
    worker_mode.worker = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    random.seed(seed)
    np.random.seed(seed % 2**32)


def receive_object(sock: socket.socket) -> tuple[int, Any] | None:
    """Return `(ticket, object)` of the parent's next message, `None` if it is gone."""
    head = receive(sock, REQUEST.size)
    if head is None:
        return None
    ticket, size = REQUEST.unpack(head)
    body = receive(sock, size)
    return None if body is None else (ticket, pickle.Unpickler(io.BytesIO(body)).load())


def send_object(sock: socket.socket, ticket: int, pickled: bytes) -> None:
    """Send a message for `receive_object`."""
    sock.sendall(REQUEST.pack(ticket, len(pickled)) + pickled)


def worker_from_pickle(sock: socket.socket) -> None:
    """Start a worker from (seed, import path, size), then the memory file of (dataset, collation)."""
    try:
        if (first := receive_object(sock)) is None:
            return
        seed, path, size = first[1]
        sys.path[:] = path
        _be_worker(seed)
        mark, fds, _, _ = socket.recv_fds(sock, 1, 1)
        if not mark or not fds:
            return
        dataset, batchify = load(fds[0], size)
        os.close(fds[0])
    except Exception as e:
        reply(sock, 0, UNPICKLE_FAILED, Failure(e, traceback.format_exc()))
        return
    serve(sock, dataset, batchify)


def fork_server(fd: int) -> None:
    """Fork a worker for every socket that arrives over socket `fd`; ends when the other side closes it.

    The process that runs this has never started JAX, so its forks are clean whatever the training process does.
    """
    control = socket.socket(fileno=fd)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, fds, _, _ = socket.recv_fds(control, 1, 1)
        if not message:
            return
        pid = os.fork()
        if not pid:
            control.close()
            sock = socket.socket(fileno=fds[0])
            try:
                worker_from_pickle(sock)
            finally:
                os._exit(0)
        os.close(fds[0])
        control.sendall(struct.pack("<Q", pid))
