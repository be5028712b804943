"""One process of a job: its output line by line with a prefix, its last lines, its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

GUARD = str(Path(__file__).with_name("guard.py"))
KEPT_LINES = 15
_COLOURS = {"worker": (32, 36, 33, 35, 34, 92, 96, 93), "server": (90,), "scheduler": (90,)}
_printing = threading.Lock()


def describe_exit(code: int) -> str:
    """An exit status in words."""
    if code >= 0:
        return f"exited with status {code}"
    try:
        return f"was killed by signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"was killed by signal {-code}"


class Keeper:
    """A process that kills the job's process groups if the launcher is killed."""

    def __init__(self) -> None:
        command = [sys.executable, "-S", "-E", GUARD, "keep"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, text=True)

    def tell(self, sign: str, group: int) -> None:
        """Note (`+`) or forget (`-`) a group."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{sign}{group}\n")
            self._process.stdin.flush()
        except OSError:
            pass

    def close(self) -> None:
        """Let it kill what it still knows, and end."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except OSError:
            pass
        self._process.wait()


class Process:
    """A running process of role `role` and number `rank`.

    Attributes:
        ended: seconds after its start at which it ended, None while it runs.
        lines: the last lines it wrote.
    """

    def __init__(self, role: str, rank: int, command: Sequence[str], env: Mapping[str, str], keeper: Keeper):
        self.role, self.rank = role, rank
        self.name = role if role == "scheduler" else f"{role} {rank}"
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)
        self.ended: float | None = None
        self.stopped = False
        self._keeper = keeper
        self._begun = time.monotonic()
        self._popen = subprocess.Popen(
            [sys.executable, "-S", "-E", GUARD, "run", str(os.getpid()), *command],
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            text=True,
            errors="replace",
            bufsize=1,
        )
        self.pid = self._popen.pid
        keeper.tell("+", self.pid)
        pairs = ((self._popen.stdout, sys.stdout), (self._popen.stderr, sys.stderr))
        self._readers = [threading.Thread(target=self._copy, args=pair, daemon=True) for pair in pairs]
        for reader in self._readers:
            reader.start()

    def _copy(self, source: IO[str], target: IO[str]) -> None:
        prefix = f"[{self.name}] "
        if target.isatty():
            colours = _COLOURS[self.role]
            prefix = f"\x1b[{colours[self.rank % len(colours)]}m{prefix}\x1b[0m"
        try:
            for line in source:
                text = line.rstrip("\n")
                self.lines.append(text)
                with _printing:
                    target.write(f"{prefix}{text}\n")
                    target.flush()
        except (OSError, ValueError):
            pass  # the launcher's own output is closed; the process goes on

    def poll(self) -> int | None:
        """Exit status, negative for a signal; None while it runs."""
        code = self._popen.poll()
        if code is not None and self.ended is None:
            self.ended = time.monotonic() - self._begun
            self.signal(signal.SIGKILL)  # what it left behind in its group
            self._keeper.tell("-", self.pid)
        return code

    def signal(self, number: int) -> None:
        """Send a signal to the process and its children."""
        try:
            os.killpg(self.pid, number)
        except OSError:
            pass

    def finish_output(self) -> None:
        """Wait briefly until its last lines are printed."""
        for reader in self._readers:
            reader.join(1.0)


__all__ = ["Keeper", "Process", "describe_exit"]
