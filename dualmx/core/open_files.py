"""Limit of open files and sockets of this process."""

from __future__ import annotations

import importlib
import os
from contextlib import suppress

resource = importlib.import_module("resource") if os.name == "posix" else None

MAX_FILES = 65_536  # files; more are not asked for
UNKNOWN_LIMIT = 1 << 30


def limit() -> int:
    """Return how many files may be open in this process; a very large number where there is no limit."""
    return _limits()[0]


def _limits() -> tuple[int, int]:
    """The soft limit and the hard one."""
    if resource is None:
        return UNKNOWN_LIMIT, UNKNOWN_LIMIT
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        soft if soft != resource.RLIM_INFINITY else UNKNOWN_LIMIT,
        hard if hard != resource.RLIM_INFINITY else UNKNOWN_LIMIT,
    )


def raise_limit() -> int:
    """Raise the soft limit of this process, and of those that it starts later, as far as it may; returns it.

    Shells set it low, to 1,024 on many systems, while a process may raise it itself up to the hard limit.
    """
    soft, hard = _limits()
    target = min(hard, MAX_FILES)
    if resource is not None and soft < target:
        with suppress(OSError, ValueError):  # macOS allows less than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    return limit()


def remedy() -> str:
    """Return what a user can do about the limit, as part of a sentence."""
    hard = _limits()[1]
    return (
        f"Raise the hard limit, which is {hard} (ulimit -Hn, LimitNOFILE=, or nofile in limits.conf), and start again"
    )


def opened() -> int:
    """Return about how many files are open in this process."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            return len(os.listdir(folder))
        except OSError:
            continue
    return 16


__all__ = ["limit", "opened", "raise_limit", "remedy"]
