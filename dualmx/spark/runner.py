"""`run`: call a function in processes on Spark's executors."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import re
import secrets
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

from ..core.argcheck import integer
from ..core.errors import ArgumentError, MXNetError
from ..core.knobs import SECRET, START_TIMEOUT
from ..core.net import free_port
from ..launch.guard import die_with_parent
from ..parallel import shutdown
from ..ps import PeerLost

FAILURE_SECONDS = (
    3.0  # seconds that those who lost another process leave to its failure, as Spark tells of the first alone
)
_FAILED = "spark.run: process "


def run(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    num_proc: int | None = None,
    env: Mapping[str, str] | None = None,
    start_timeout: int | None = None,
) -> list[Any]:
    """Call a function in `num_proc` processes on Spark's executors, which find each other; return what each returned.

    The processes run at the same time, as the tasks of a barrier stage, and are made for this call. Each joins the
    others by `mx.parallel.init()` or `hvd.init()`, called by `fn`. What `fn` refers to travels as in all of Spark.

    Args:
        fn: called as `fn(*args, **kwargs)`.
        args, kwargs: its arguments.
        num_proc: how many processes; as many as Spark runs tasks at once by default.
        env: environment variables of the processes.
        start_timeout: most seconds until all have joined.

    Returns:
        The results, by rank.

    Raises:
        ArgumentError: no function, or less than one process. MXNetError: pyspark is not installed, or a process failed
            or died: its number, host and traceback.

    Example:
        >>> from dualmx import spark
        >>> def train(rate):
        ...     mx.parallel.init()
        ...     return mx.parallel.rank() * rate
        >>> spark.run(train, (0.1,), num_proc=2)  # doctest: +SKIP
        [0.0, 0.1]
    """
    if not callable(fn):
        raise ArgumentError(f"spark.run: fn={fn!r}: expected a function")
    context = _pyspark().SparkContext.getOrCreate()
    count = context.defaultParallelism if num_proc is None else integer("spark.run", "num_proc", num_proc)
    if count < 1:
        raise ArgumentError(f"spark.run: num_proc={num_proc}: expected 1 or more")
    given = {SECRET.name: secrets.token_hex(32), **(env or {})}
    if start_timeout is not None:
        given[START_TIMEOUT.name] = str(integer("spark.run", "start_timeout", start_timeout))
    # Packed here, for Spark's own processes shall not unpack what may hold arrays.
    packed = _serializer().dumps((fn, tuple(args), dict(kwargs or {})))

    def task(_: Iterator[int]) -> Iterator[tuple[int, Any]]:
        yield _in_task(packed, given)

    try:
        found = context.parallelize(range(count), count).barrier().mapPartitions(task).collect()
    except Exception as e:  # of Java
        text = str(e)
        if _FAILED not in text:
            raise MXNetError(f"spark.run: {text}") from e
        raise MXNetError(re.split(r"\n\tat |\n SQLSTATE", text[text.index(_FAILED) :])[0].strip()) from None
    return [result for _, result in sorted(found, key=lambda pair: pair[0])]


def _pyspark() -> Any:
    try:
        return importlib.import_module("pyspark")
    except ImportError as e:
        raise MXNetError(f"spark.run needs the package pyspark: pip install 'dualmx[spark]' ({e})") from None


def _serializer() -> Any:
    """What Spark itself packs functions by."""
    return importlib.import_module("pyspark.serializers").CloudPickleSerializer()


def _in_task(packed: bytes, env: dict[str, str]) -> tuple[int, Any]:
    """On an executor: call the function in a new process, because Spark reuses its own."""
    task = _pyspark().BarrierTaskContext.get()
    rank, hosts = task.partitionId(), [info.address.rpartition(":")[0] for info in task.getTaskInfos()]
    port = task.allGather(str(free_port(hosts[0])) if rank == 0 else "")[0]
    place = {
        "MASTER_ADDR": hosts[0], "MASTER_PORT": port, "WORLD_SIZE": str(len(hosts)), "RANK": str(rank),
        "LOCAL_RANK": str(hosts[:rank].count(hosts[rank])), "LOCAL_WORLD_SIZE": str(hosts.count(hosts[rank])), **env,
    }  # fmt: skip
    spawn = multiprocessing.get_context("spawn")  # those of Spark may have computed, as models do in `transform`
    receiver, sender = spawn.Pipe(False)
    process = spawn.Process(target=_child, args=(sender, place, packed))
    process.start()
    sender.close()
    who = f"{_FAILED}{rank} of {len(hosts)} on {hosts[rank]}"
    try:
        good, result = receiver.recv()
    except EOFError:
        process.join()
        code = process.exitcode or 0
        end = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended early with exit status {code}"
        raise MXNetError(f"{who} {end}") from None
    process.join()
    if not good:
        raise MXNetError(f"{who} failed:\n{result}")
    return rank, result


def _child(sender: Connection, place: dict[str, str], packed: bytes) -> None:
    die_with_parent(signal.SIGKILL)  # Spark kills its own process when the job is over for it
    os.environ.update(place)
    try:
        fn, args, kwargs = _serializer().loads(packed)
        result = fn(*args, **kwargs)
        shutdown()
        sender.send((True, result))
    except Exception as e:  # the others are told by the connections that end
        if isinstance(e, PeerLost):
            time.sleep(FAILURE_SECONDS)
        sender.send((False, traceback.format_exc()))
        os._exit(1)


__all__ = ["run"]
