"""This process's place in its distributed job, which all of its stores share."""

from __future__ import annotations

import atexit
import os
import sys
import threading

from ..core.errors import MXNetError
from ..ps import Job, Worker

_lock = threading.Lock()
_joined: list[tuple[int, Worker]] = []  # (process, its place in the job): one for all stores of a process


def place_in_job(name: str) -> Worker:
    """This process's place in the job; joins at the first call.

    Raises:
        MXNetError: no job is described, or this process is a fork of one that has joined.
    """
    with _lock:
        if _joined:
            owner, worker = _joined[0]
            if owner != os.getpid():
                raise MXNetError(f"kvstore {name!r}: a forked process cannot use its parent's place in the job")
            return worker
        if not Job.described():
            raise MXNetError(
                f"kvstore.create: name={name!r}: this process is in no distributed job (DMLC_PS_ROOT_URI is not set). "
                "Start the script by the launcher: dualmx-launch -n 2 -s 2 --launcher local python script.py"
            )
        worker = Worker(Job.from_env())
        _joined.append((os.getpid(), worker))
        atexit.register(_leave)
        return worker


def _leave() -> None:
    if _joined and _joined[0][0] == os.getpid():
        error = getattr(sys, "last_value", None)
        if error is None:
            _joined.pop()[1].close()
        else:  # the connections close with the process, which tells the others at the same time as the launcher
            _joined[0][1].crash(f"{type(error).__name__}: {error}")


__all__ = ["place_in_job"]
