"""Processes that compute together: joining them, and exchanges of arrays between them as XLA collectives."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax

from ..compile.collective import exchange, process_count, process_index
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError
from ..core.knobs import DIST_TIMEOUT, HEARTBEAT_TIMEOUT, START_TIMEOUT
from ..ndarray import NDArray
from ..ndarray.flush import concrete

# Functions that say which processes are known to be gone, "" for none; asked while an exchange is under way.
watchdogs: list[Callable[[], str]] = []


class _State:
    broken = ""
    joined = False


_state = _State()


def init(coordinator: str | None = None, num_processes: int | None = None, process_id: int | None = None) -> None:
    """Join the processes of a job by `jax.distributed`; a second call does nothing.

    Call it (or `kvstore.create("collective")`) before any array is made: XLA learns of the other processes when it
    starts.

    Args:
        coordinator: `host:port` where process 0 listens, the same in all processes.
        num_processes: how many there are.
        process_id: number of this one, from 0. What is not given is found in `JAX_COORDINATOR_ADDRESS`,
            `JAX_NUM_PROCESSES` and `JAX_PROCESS_ID`, or told by Slurm, Open MPI or a TPU pod.

    Raises:
        MXNetError: XLA is running already, nothing tells about a job, or not all processes came.
    """
    if jax.distributed.is_initialized():
        return
    if coordinator is None and os.environ.get("JAX_COORDINATOR_ADDRESS"):
        num_processes = _told("JAX_NUM_PROCESSES") if num_processes is None else num_processes
        process_id = _told("JAX_PROCESS_ID") if process_id is None else process_id
    # Without it, XLA ends this process when another one dies.
    jax.config.update("jax_enable_recoverability", True)
    try:
        jax.distributed.initialize(
            coordinator,
            num_processes,
            process_id,
            initialization_timeout=START_TIMEOUT.integer(1),
            heartbeat_timeout_seconds=max(10, 2 * HEARTBEAT_TIMEOUT.integer()),
        )
    except (RuntimeError, ValueError) as e:
        if "must be called before" in str(e):
            raise MXNetError(
                "parallel.init: XLA has started already; call it, or kvstore.create('collective'), at the beginning of "
                "the script, before any array is made"
            ) from e
        raise MXNetError(f"parallel.init: the processes did not come together: {str(e).splitlines()[0]}") from e
    _state.joined = True
    atexit.register(_leave)


def _told(name: str) -> int | None:
    """Return the number in an environment variable, None without one."""
    text = os.environ.get(name, "")
    if text and not text.isdecimal():
        raise ArgumentError(f"parallel.init: {name}={text!r}: expected a number")
    return int(text) if text else None


def _leave() -> None:
    """End together: who leaves first would take the service away that the others still need."""
    if _state.broken or not jax.distributed.is_initialized():
        return
    try:
        barrier()
    except MXNetError:
        return
    if process_index() == 0:
        time.sleep(0.5)


def rank() -> int:
    """Return the number of this process, 0 if it is alone."""
    return process_index()


def size() -> int:
    """Return how many processes compute together."""
    return process_count()


def _in_time(work: Callable[[], Any], what: str) -> Any:
    """Run an exchange in a thread of its own, and wait for it: XLA cannot be interrupted while others do not come.

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

    threading.Thread(target=run, name="dualmx-exchange", daemon=True).start()
    limit = DIST_TIMEOUT.integer() or float("inf")
    began = time.monotonic()
    while not done.wait(0.2):
        gone = next((text for text in (w() for w in watchdogs) if text), "")
        if not gone and time.monotonic() - began > limit:
            gone = f"the others did not take part within {limit:.0f} s (DUALMX_DIST_TIMEOUT)"
        # The exchange may just have ended, with the others gone after it.
        if gone and not done.wait(0.2):
            raise _broken(what, gone)
    results, error = outcome[0]
    if error is not None:
        raise _broken(what, (str(error).strip().splitlines() or [type(error).__name__])[0]) from error
    return results


def _broken(what: str, reason: str) -> MXNetError:
    _state.broken = reason
    return MXNetError(f"{what}: process {rank()} of {size()} lost another one: {reason}")


def exchanged(kind: str, what: str, arrays: Sequence[NDArray], root: int = 0) -> list[NDArray]:
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
    datas = [a._data if a._data is not None else a._force(None) for a in arrays]
    if process_count() == 1:
        return [concrete(d[None] if kind == "gather" else d, a.context) for d, a in zip(datas, arrays, strict=True)]
    results = _in_time(lambda: exchange(kind, datas, root), what)
    return [concrete(r, a.context) for r, a in zip(results, arrays, strict=True)]


def _listed(what: str, data: Any) -> tuple[list[NDArray], bool]:
    several = isinstance(data, (list, tuple))
    arrays = list(data) if several else [data]
    for a in arrays:
        if not isinstance(a, NDArray):
            raise ArgumentTypeError(f"parallel.{what}: a {type(a).__name__}; expected NDArrays")
    return arrays, several


def all_reduce(data: Any, average: bool = False) -> Any:
    """Return the sum of an array (or of each of a list) over all processes; the same bits in each.

    Args:
        data: an NDArray or a list of them, of the same shapes and dtypes in all processes; those of one dtype travel
            together.
        average: divide by the number of processes.

    Raises:
        MXNetError: a process is gone.

    Example:
        >>> import dualmx as mx
        >>> mx.parallel.all_reduce(mx.nd.ones((2,))).asnumpy().tolist()
        [1.0, 1.0]
    """
    arrays, several = _listed("all_reduce", data)
    sums = exchanged("sum", "parallel.all_reduce", arrays)
    if average and size() > 1:
        sums = [s / size() for s in sums]
    return sums if several else sums[0]


def broadcast(data: Any, root: int = 0) -> Any:
    """Return the array (or list of arrays) of process `root`; the others pass arrays of the same shapes and dtypes.

    Raises:
        ArgumentError: there is no such process. MXNetError: a process is gone.
    """
    if not 0 <= root < size():
        raise ArgumentError(f"parallel.broadcast: root={root}: expected a number below {size()}")
    arrays, several = _listed("broadcast", data)
    found = exchanged("broadcast", "parallel.broadcast", arrays, root)
    return found if several else found[0]


def all_gather(data: Any) -> Any:
    """Return the arrays of all processes, stacked along a new first axis in the order of the processes.

    Raises:
        MXNetError: a process is gone.
    """
    arrays, several = _listed("all_gather", data)
    found = exchanged("gather", "parallel.all_gather", arrays)
    return found if several else found[0]


def barrier() -> None:
    """Wait until all processes are here.

    Raises:
        MXNetError: a process is gone.
    """
    from ..ndarray import ones

    exchanged("sum", "parallel.barrier", [ones((1,))])
