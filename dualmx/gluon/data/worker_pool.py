"""Pool of data worker processes.

A worker starts in one of two ways. If the dataset and the collate function can be pickled and do not come from the main
script, it is forked from a *fork server*: a small process that never started JAX. Otherwise (lambdas, classes of the
script) it is forked from this process, and must then keep to NumPy.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ...core.errors import ArgumentError, MXNetError
from . import worker as worker_process

_lock = threading.Lock()
_open_sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()  # a forked worker closes its copies of them
_PROTOCOL = 5
_BIG = 1 << 28


class _Worker:
    """One worker: its socket, its process, and how many batches it owes."""

    def __init__(self, sock: socket.socket, pid: int, is_child: bool):
        self.sock, self.pid, self.is_child, self.n_pending = sock, pid, is_child, 0

    def cause_of_death(self) -> str:
        """Why the process ended, as far as it can be known."""
        if self.is_child:
            with contextlib.suppress(ChildProcessError):
                _, status = os.waitpid(self.pid, 0)
                self.is_child = False
                code = os.waitstatus_to_exitcode(status)
                return f"killed by signal {-code}" if code < 0 else f"exit status {code}"
        return "killed or crashed"

    def stop(self) -> None:
        """Close the socket, which ends the process, and reap it if it is a child."""
        self.sock.close()
        if self.is_child:
            self.is_child = False
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)


class WorkerPool:
    """Processes that make batches of a dataset.

    Args:
        dataset: what the batches are made of.
        batchify: collation of a list of items, `None` for the default one.
        count: number of processes.
        timeout: seconds to wait for a batch.
    """

    def __init__(self, dataset: Any, batchify: Callable[[Any], Any] | None, count: int, timeout: float):
        if not hasattr(os, "fork") or not hasattr(socket, "send_fds"):
            raise ArgumentError("DataLoader: num_workers: processes need a POSIX system; use thread_pool=True here")
        self.timeout = timeout
        self.fork_unsafe = False  # its work needs arrays to be computed, which a fork cannot
        self._next_ticket = 1
        self._arrived: dict[int, Any] = {}
        self._cancelled: set[int] = set()
        self._selector = selectors.DefaultSelector()
        self._workers: list[_Worker] = []
        self._finish = weakref.finalize(self, _stop_all, self._workers, self._selector)
        packed = _pack(dataset, batchify)
        seed = _seed()
        try:
            for i in range(count):
                worker = _spawn_worker(packed, seed + i) if packed else _fork(dataset, batchify, seed + i)
                self._workers.append(worker)
                self._selector.register(worker.sock, selectors.EVENT_READ, worker)
        finally:
            if packed:
                os.close(packed[0])

    @property
    def alive(self) -> bool:
        """False once the pool is closed or a worker has died."""
        return self._finish.alive

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers."""
        return [w.pid for w in self._workers]

    def close(self) -> None:
        """End all workers."""
        self._finish()

    def request_batch(self, indices: Any) -> int:
        """Request a batch from the least busy worker; returns the ticket to fetch it with."""
        worker = min(self._workers, key=lambda w: w.n_pending)
        ticket, self._next_ticket = self._next_ticket, self._next_ticket + 1
        try:
            worker_process.send_object(worker.sock, ticket, worker_process.pickle.dumps(indices, _PROTOCOL))
        except OSError:
            self._died(worker)
        worker.n_pending += 1
        return ticket

    def result(self, ticket: int) -> Any:
        """Return the batch of `ticket`; raises what the worker raised.

        Raises:
            MXNetError: a worker died, or nothing came within `timeout` seconds.
        """
        deadline = time.monotonic() + self.timeout
        while ticket not in self._arrived:
            ready = self._selector.select(max(deadline - time.monotonic(), 0))
            if not ready:
                self.close()
                raise MXNetError(
                    f"DataLoader: no batch within timeout={self.timeout:g} seconds; the dataset or the collation is "
                    "slow or blocked: raise timeout=, or find the cause with num_workers=0"
                )
            for key, _ in ready:
                self._take(key.data)
        answer = self._arrived.pop(ticket)
        if isinstance(answer, worker_process.Failure):
            raise _error(answer)
        return answer

    def forget(self, tickets: Iterable[int]) -> None:
        """Drop the batches of `tickets`, arrived or not."""
        for t in tickets:
            if t in self._arrived:
                del self._arrived[t]
            else:
                self._cancelled.add(t)

    def _take(self, worker: _Worker) -> None:
        try:
            head, fds, _, _ = socket.recv_fds(worker.sock, worker_process.REPLY.size, 1)
        except OSError:
            head, fds = b"", []
        if 0 < len(head) < worker_process.REPLY.size:
            head += worker_process.receive(worker.sock, worker_process.REPLY.size - len(head)) or b""
        if len(head) < worker_process.REPLY.size or not fds:
            self._died(worker)
        ticket, size, kind = worker_process.REPLY.unpack(head)
        worker.n_pending -= 1
        try:
            if ticket in self._cancelled:
                self._cancelled.discard(ticket)
                return
            answer = worker_process.load(fds[0], size)
        finally:
            os.close(fds[0])
        if kind == worker_process.UNPICKLE_FAILED:
            self.close()
            raise MXNetError(f"DataLoader: a worker could not receive the dataset:\n{answer.text}") from answer.error
        self._arrived[ticket] = answer

    def _died(self, worker: _Worker) -> None:
        cause = worker.cause_of_death()
        self.close()
        raise MXNetError(
            f"DataLoader: worker process {worker.pid} ended unexpectedly ({cause}); if the system ran out of memory, "
            "use fewer workers or smaller batches; num_workers=0 shows errors of the dataset in place"
        )


def _stop_all(workers: list[_Worker], selector: selectors.BaseSelector) -> None:
    selector.close()
    for w in workers:
        w.stop()
    workers.clear()


def _error(failure: worker_process.Failure) -> BaseException:
    if failure.error is None:
        return MXNetError(f"DataLoader: in a worker process:\n{failure.text}")
    failure.error.add_note(f"raised in a data worker process, where arrays are NumPy arrays:\n{failure.text}")
    return failure.error


def _pack(dataset: Any, batchify: Any) -> tuple[int, int] | None:
    """A memory file with the pair, `None` if it is better to fork this process than to make sense of it afresh."""
    try:
        head, raws = worker_process.flatten((dataset, batchify), worker_process.HostPickler)
    except Exception:  # pickling runs user code, which may raise anything; the fork needs no pickle
        return None
    # A fork shares big arrays without a copy, and has the classes of the main script.
    big = sum(r.nbytes for r in raws) > _BIG
    if big or b"__main__" in head or not sys.executable or getattr(sys, "frozen", False):
        return None
    return worker_process.dump(head, raws)


def _seed() -> int:
    """A seed for the workers that follows `numpy.random.seed` without drawing from the global generator."""
    state = np.random.get_state(legacy=False)["state"]
    return int(state["key"][int(state["pos"]) % 624]) ^ int(state["pos"])


def _pair() -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair()
    _open_sockets.update((ours, theirs))
    return ours, theirs


def _fork(dataset: Any, batchify: Any, seed: int) -> _Worker:
    with _lock:
        ours, theirs = _pair()
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            # The warnings are about children that use JAX or threads; this one keeps to NumPy.
            warnings.simplefilter("ignore")
            pid = os.fork()
        if not pid:
            for s in _open_sockets:
                if s is not theirs:
                    s.close()
            worker_process.run_forked(theirs, seed, dataset, batchify)
        theirs.close()
    return _Worker(ours, pid, True)


class _ForkServer:
    process: subprocess.Popen[bytes] | None = None
    control: socket.socket | None = None
    owner = 0


_fork_server = _ForkServer()


def _spawn_worker(packed: tuple[int, int], seed: int) -> _Worker:
    with _lock:
        control = _start_fork_server()
        ours, theirs = _pair()
        socket.send_fds(control, [b"w"], [theirs.fileno()])
        theirs.close()
        answer = worker_process.receive(control, 8)
    if answer is None:
        raise MXNetError("DataLoader: the process that starts data workers has ended unexpectedly")
    worker = _Worker(ours, int.from_bytes(answer, "little"), False)
    fd, size = packed
    with contextlib.suppress(OSError):  # a worker that is gone already is noticed when its batch is due
        worker_process.send_object(ours, 0, worker_process.pickle.dumps((seed, sys.path, size), _PROTOCOL))
        socket.send_fds(ours, [b"d"], [fd])
    return worker


def _stop_fork_server(process: subprocess.Popen[bytes], control: socket.socket) -> None:
    control.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(5)


def _start_fork_server() -> socket.socket:
    n = _fork_server
    if n.control is not None and n.owner == os.getpid() and n.process is not None and n.process.poll() is None:
        return n.control
    ours, theirs = _pair()
    package = __name__.rpartition(".")[0]
    code = f"import sys; sys.path[:] = {sys.path!r}; from {package} import worker; "
    code += f"worker.fork_server({theirs.fileno()})"
    # Workers are many: one thread each for linear algebra, and no accelerator.
    env = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **os.environ, "JAX_PLATFORMS": "cpu"}
    # It is neither a member of a cluster nor profiled, whatever this process is.
    env = {k: v for k, v in env.items() if k not in ("DMLC_ROLE", "MXNET_PROFILER_AUTOSTART")}
    n.process = subprocess.Popen(
        [sys.executable, "-c", code], env=env, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
    )
    theirs.close()
    n.control, n.owner = ours, os.getpid()
    atexit.register(_stop_fork_server, n.process, ours)
    return ours
