"""The worker node of this process, created on first use and shared by all stores and collectives."""

from __future__ import annotations

import atexit
import multiprocessing.util
import os
import sys
import threading

from ..core.errors import MXNetError
from .job import Job
from .worker_node import FORK_ERROR, WorkerNode

_lock = threading.Lock()
_current: list[tuple[int, WorkerNode]] = []  # (process, its place)


def current_worker(caller: str, job: Job | None = None) -> WorkerNode:
    """Return this process's place in the job that the environment describes, or in `job`; joins at the first call.

    Args:
        what: who asks, for error texts.
        job: the job, if it is not described by the environment.

    Raises:
        MXNetError: no job is described, it cannot be joined, or the place is that of a parent process.
    """
    with _lock:
        if _current:
            owner, worker = _current[0]
            if owner != os.getpid():
                raise MXNetError(f"{caller}: {FORK_ERROR}")
            return worker
        if job is None and not Job.in_environment():
            raise MXNetError(
                f"{caller}: this process is in no distributed job (DMLC_PS_ROOT_URI is not set). "
                "Start the script by the launcher: dualmx-launch -n 2 -s 2 --launcher local python script.py"
            )
        worker = WorkerNode(job or Job.from_env())
        _current.append((os.getpid(), worker))
        atexit.register(leave_job)
        if multiprocessing.parent_process() is not None:
            multiprocessing.util.Finalize(None, leave_job, exitpriority=0)  # forked ones end without atexit
        return worker


def leave_job() -> None:
    """Take leave of the job, if this process has a place in one; a crash if it ends by an exception."""
    if _current and _current[0][0] == os.getpid():
        error = getattr(sys, "last_value", None)
        if error is None:
            _current.pop()[1].close()
        else:  # the connections close with the process, which tells the others at the same time as the launcher
            _current[0][1].crash(f"{type(error).__name__}: {error}")


def _after_fork() -> None:
    for _, worker in _current:
        worker.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

__all__ = ["current_worker", "leave_job"]
