"""This process's place in a distributed job: one for all stores and exchanges of a process."""

from __future__ import annotations

import atexit
import multiprocessing.util
import os
import sys
import threading

from ..core.errors import MXNetError
from .job import Job
from .worker_node import FORKED, Worker

_lock = threading.Lock()
_taken: list[tuple[int, Worker]] = []  # (process, its place)


def seat(what: str, job: Job | None = None) -> Worker:
    """Return this process's place in the job that the environment describes, or in `job`; joins at the first call.

    Args:
        what: who asks, for error texts.
        job: the job, if it is not described by the environment.

    Raises:
        MXNetError: no job is described, it cannot be joined, or the place is that of a parent process.
    """
    with _lock:
        if _taken:
            owner, worker = _taken[0]
            if owner != os.getpid():
                raise MXNetError(f"{what}: {FORKED}")
            return worker
        if job is None and not Job.described():
            raise MXNetError(
                f"{what}: this process is in no distributed job (DMLC_PS_ROOT_URI is not set). "
                "Start the script by the launcher: dualmx-launch -n 2 -s 2 --launcher local python script.py"
            )
        worker = Worker(job or Job.from_env())
        _taken.append((os.getpid(), worker))
        atexit.register(leave)
        if multiprocessing.parent_process() is not None:
            multiprocessing.util.Finalize(None, leave, exitpriority=0)  # forked ones end without atexit
        return worker


def leave() -> None:
    """Take leave of the job, if this process has a place in one; a crash if it ends by an exception."""
    if _taken and _taken[0][0] == os.getpid():
        error = getattr(sys, "last_value", None)
        if error is None:
            _taken.pop()[1].close()
        else:  # the connections close with the process, which tells the others at the same time as the launcher
            _taken[0][1].crash(f"{type(error).__name__}: {error}")


def _after_fork() -> None:
    for _, worker in _taken:
        worker.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

__all__ = ["leave", "seat"]
