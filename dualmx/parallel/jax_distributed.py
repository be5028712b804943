"""Join `jax.distributed`, run collectives by XLA, and keep in touch with the coordination service."""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax

from ..compile.devices import failure_detectors
from ..compile.multi_device import launch_collective, process_count, process_index
from ..core.errors import MXNetError
from ..core.knobs import DIST_TIMEOUT, HEARTBEAT_TIMEOUT, START_TIMEOUT
from ..ndarray import NDArray
from ..ndarray.handle import array_from_buffer, to_jax_array
from ..ps.heartbeat import ExchangeCounters

SCRIPT = Path(__file__).with_name("coordination_service.py")
_started: list[subprocess.Popen[str]] = []
_connections: list[socket.socket] = []


def heartbeat_seconds() -> int:
    """Seconds without a sign of life after which XLA gives a process up; dualmx is quicker."""
    return max(10, 2 * HEARTBEAT_TIMEOUT.integer())


def start_service(host: str, seen: str, count: int) -> str:
    """Start the service for `count` processes in a separate process; returns `seen:port:control`.

    Args:
        host: address to listen on.
        seen: address of this host as the others reach it.
        count: of processes.

    Raises:
        MXNetError: it does not start.
    """
    with socket.socket() as s:
        s.bind((host, 0))
        port = s.getsockname()[1]
    env = {k: v for k, v in os.environ.items() if not k.startswith(("DMLC_", "JAX_"))}
    command = [sys.executable, str(SCRIPT), host, str(port), str(count), str(heartbeat_seconds())]
    # What ends this process must not end the service, which the others may still need.
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env,
        start_new_session=True,
    )  # fmt: skip
    assert child.stdout is not None
    control = child.stdout.readline().strip()
    if not control.isdigit():
        raise MXNetError(f"the service by which XLA's processes meet did not start on {host}:{port}")
    _started.append(child)
    return f"{seen}:{port}:{control}"


def keep_connection(address: str) -> str:
    """Connect to a service for as long as this process lives; returns `host:port` for XLA.

    Raises:
        MXNetError: it cannot be reached.
    """
    host, port, control = address.rsplit(":", 2)
    try:
        _connections.append(socket.create_connection((host, int(control)), 10.0))
    except (OSError, ValueError) as e:
        raise MXNetError(f"parallel.init: the coordinator at {address} cannot be reached: {e}") from None
    return f"{host}:{port}"


END_SECONDS = 3.0  # seconds that a process has to end by itself when its script is over
_NAME_LOST_SECONDS = 1.5  # seconds within which the watchdog says which process is gone


class _State:
    broken = ""
    counters = ExchangeCounters()


_state = _State()


_LATE = (
    "parallel.init: XLA has started already; call it, or kvstore.create('collective'), at the beginning of the script, "
    "before any array is made, or take backend='host'"
)


def check_not_started() -> None:
    """Raise if XLA runs already: it learns of other processes when it starts.

    Raises:
        MXNetError: it does.
    """
    if jax.distributed.is_initialized():
        return
    try:  # JAX looks whether it is too late before it looks at the numbers, which cannot be
        jax.distributed.initialize("127.0.0.1:9", 0, 0, cluster_detection_method="deactivate")
    except ValueError:
        return
    except RuntimeError as e:
        raise MXNetError(_LATE) from e


def init_jax_distributed(coordinator: str, count: int, number: int) -> None:
    """Connect XLA with the other processes through `coordinator` (`host:port`), a separate process.

    Raises:
        MXNetError: XLA is running already, or not all processes came.
    """
    # Process 0 would be the coordinator: what it starts on a port of its own nobody asks.
    own = {"coordinator_bind_address": "127.0.0.1:0"} if number == 0 else {}
    _initialize(coordinator, count, number, cluster_detection_method="deactivate", **own)


def attach_counters(traffic: ExchangeCounters) -> None:
    """Count collectives by XLA; the arrays' own bytes are counted, since only XLA knows what it sends."""
    _state.counters = traffic


def init_from_environment() -> None:
    """Join the processes of JAX's environment, such as those of a TPU pod.

    Raises:
        MXNetError: XLA is running already, nothing tells about a job, or not all processes came.
    """
    if not jax.distributed.is_initialized():
        _initialize()


def _initialize(*args: Any, **more: Any) -> None:
    # Without it, XLA ends this process when another one dies.
    jax.config.update("jax_enable_recoverability", True)
    try:
        jax.distributed.initialize(
            *args,
            initialization_timeout=START_TIMEOUT.integer(1),
            heartbeat_timeout_seconds=heartbeat_seconds(),
            **more,
        )
    except (RuntimeError, ValueError) as e:
        if "must be called before" in str(e):
            raise MXNetError(_LATE) from e
        raise MXNetError(f"parallel.init: the processes did not come together: {str(e).splitlines()[0]}") from e


def rank() -> int:
    """Return the number of this process among those that XLA knows of, 0 if it is alone."""
    return process_index()


def size() -> int:
    """Return how many processes XLA knows of."""
    return process_count()


def run_with_timeout(work: Callable[[], Any], what: str) -> Any:
    """Run a collective in a thread and wait for it: XLA cannot be interrupted while ranks are missing.

    Raises:
        MXNetError: a process died or is stuck; this one cannot take part in further exchanges.
    """
    done = threading.Event()
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append((jax.block_until_ready(work()), None))
        except Exception as e:  # XLA and its transports have errors of many types
            outcome.append((None, e))
        done.set()

    thread = threading.Thread(target=run, name="dualmx-exchange", daemon=True)
    thread.start()
    limit = DIST_TIMEOUT.integer() or float("inf")
    began = time.monotonic()
    traffic, others = _state.counters, [r for r in range(size()) if r != rank()]
    traffic.rounds += 1
    try:
        while not done.wait(0.05):
            traffic.begin_wait(others, what, began)
            gone = _lost_processes()
            if not gone and time.monotonic() - began > limit:
                gone = f"the others did not take part within {limit:.0f} s (DUALMX_DIST_TIMEOUT)"
            # The exchange may just have ended, with the others gone after it.
            if gone and not done.wait(0.2):
                # A thread that comes back from XLA while Python ends would abort the process.
                atexit.register(thread.join, END_SECONDS / 2)
                raise _broken(what, gone)
    finally:
        traffic.end_wait()
    results, error = outcome[0]
    if error is not None:
        # XLA's transport may notice the end of a process first; the watchdog knows which one it was.
        noticed = time.monotonic()
        while time.monotonic() - noticed < _NAME_LOST_SECONDS:
            gone = _lost_processes()
            if gone:
                raise _broken(what, gone) from error
            time.sleep(0.02)
        raise _broken(what, (str(error).strip().splitlines() or [type(error).__name__])[0]) from error
    return results


def _lost_processes() -> str:
    """What the watchdogs say of processes that are lost; empty if none is."""
    return next((text for text in (w() for w in failure_detectors) if text), "")


def _broken(what: str, reason: str) -> MXNetError:
    if not _state.broken:
        threading.Thread(target=_exit_without_teardown, name="dualmx-watchdog", daemon=True).start()
    _state.broken = reason
    return MXNetError(f"{what}: process {rank()} of {size()} lost another one: {reason}")


def _exit_without_teardown() -> None:
    """See to it that this process ends after its script: XLA would wait for an exchange that cannot be completed."""
    threading.main_thread().join()
    time.sleep(END_SECONDS)
    rule = "-" * 78
    print(
        f"{rule}\ndualmx: process {rank()} of {size()} is ended: an exchange of XLA cannot be completed, and keeps the "
        f"process from its end\n    reason: {_state.broken}\n    status: 70\n{rule}",
        file=sys.stderr, flush=True,
    )  # fmt: skip
    os._exit(70)


def run_xla_collective(kind: str, what: str, arrays: Sequence[NDArray], root: int = 0) -> list[NDArray]:
    """Exchange arrays of one context with those of all processes, and wait for the results.

    Only one exchange is under way at a time: XLA's processes wait for each other inside of them, and several programs
    started ahead can take all threads that are needed to go on.

    Raises:
        MXNetError: a process is gone, now or since an earlier exchange.
    """
    if _state.broken:
        raise MXNetError(f"{what}: an earlier exchange failed: {_state.broken}")
    if not arrays:
        return []
    datas = [to_jax_array(a) for a in arrays]
    if process_count() == 1:
        return [
            a.wrap_array(array_from_buffer(d[None] if kind == "gather" else d, a.context))
            for d, a in zip(datas, arrays, strict=True)
        ]
    nbytes = sum(d.nbytes for d in datas)
    _state.counters.sent += nbytes
    _state.counters.received += nbytes
    results = run_with_timeout(lambda: launch_collective(kind, datas, root), what)
    return [a.wrap_array(array_from_buffer(r, a.context)) for r, a in zip(results, arrays, strict=True)]


__all__ = ["heartbeat_seconds", "keep_connection", "start_service"]
