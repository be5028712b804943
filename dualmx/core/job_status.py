"""Metrics reported by this process, and the registry of this user's running jobs, both for `dualmx status`.

A running job is one file in a private folder, which says where its scheduler is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import ArgumentTypeError

MAX_METRICS = 16  # names; the one reported longest ago gives way
MAX_NAME_LENGTH = 64  # letters of a name
_latest: dict[str, float] = {}


def report_metric(name: str, value: float) -> None:
    """Let `dualmx status` show the latest value of a figure of this process, such as its loss.

    `Speedometer`, `log_train_metric`, `LogValidationMetricsCallback` and the estimator's `LoggingHandler`
    report what they write. It travels with the sign of life that a worker gives its scheduler every second; a process
    without a job keeps it to itself. Of more than 16 names the latest are kept, of a name 64 letters.

    Args:
        name: of the figure.
        value: a number, or an array of one element, which is waited for.

    Raises:
        ArgumentTypeError: no number.

    Example:
        >>> mx.callback.report("loss", 0.25)
    """
    try:
        number = float(value)
    except (TypeError, ValueError) as e:
        raise ArgumentTypeError(f"report({name!r}): {e}; expected a number, or an array of one element") from e
    _latest.pop(str(name)[:MAX_NAME_LENGTH], None)
    _latest[str(name)[:MAX_NAME_LENGTH]] = number
    while len(_latest) > MAX_METRICS:
        _latest.pop(next(iter(_latest)), None)


def latest_metrics() -> dict[str, float]:
    """Return the last value of each figure by its name."""
    return dict(_latest)


def folder() -> Path:
    """Folder of the files, `dualmx/jobs` in the user's configuration."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(base) / "dualmx" / "jobs"


@contextmanager
def registered_job(uri: str, port: int, secret: str, command: str, encrypt: str = "auto") -> Iterator[None]:
    """While the block runs, `dualmx status` finds the job; if no file can be made, it needs the address."""
    path = folder() / f"{os.getpid()}.json"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as f:
            job = {"uri": uri, "port": port, "secret": secret, "command": command[:200], "encrypt": encrypt}
            json.dump(job, f)
    except OSError:
        pass
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def running_jobs() -> list[dict[str, Any]]:
    """Return the jobs whose launchers are alive, oldest first; files of others are removed."""
    found: list[tuple[float, dict[str, Any]]] = []
    for path in folder().glob("*.json") if folder().is_dir() else ():
        try:
            os.kill(int(path.stem), 0)
            state = path.stat()
            if state.st_uid == os.getuid() and not state.st_mode & 0o077:
                job = json.loads(path.read_text("utf-8"))
                if isinstance(job, dict) and {"uri", "port", "secret", "command"} <= job.keys():
                    found.append((state.st_mtime, {**job, "pid": int(path.stem)}))
        except ProcessLookupError:
            path.unlink(missing_ok=True)
        except (OSError, ValueError, RecursionError):
            continue
    return [job for _, job in sorted(found, key=lambda f: f[0])]


__all__ = [
    "MAX_NAME_LENGTH",
    "MAX_METRICS",
    "folder",
    "latest_metrics",
    "registered_job",
    "report_metric",
    "running_jobs",
]
