"""Processes started on this host, and the job members that they run or represent."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

GUARD = Path(__file__).with_name("guard.py")
MAX_KEPT_LINES = 15
_COLOURS = {"worker": (32, 36, 33, 35, 34, 92, 96, 93), "server": (90,), "scheduler": (90,)}
_printing = threading.Lock()
# The python of this host if the other one has it, else the one that is found there.
_BOOT = 'p="$0"; command -v "$p" >/dev/null 2>&1 || p=python3; exec "$p" -S -E -c "$@"'


def script_command(script: Path, *arguments: str) -> list[str]:
    """Command that runs a script of this host on one where nothing is installed but Python."""
    return ["sh", "-c", _BOOT, sys.executable, script.read_text(encoding="utf-8"), *arguments]


def script_free(command: Sequence[str]) -> list[str]:
    """A command to be read by people: without the text of the agent that it sends along."""
    sent = shlex.join(agent_command("")[:-2])
    return [word.replace(sent, "AGENT") for word in shlex.split(shlex.join(command).replace(sent, "AGENT"))]


def agent_command(source: str) -> list[str]:
    """Command that runs the guard's agent on another host."""
    return script_command(GUARD, "agent", source)


def describe_exit(code: int) -> str:
    """An exit status in words."""
    if code >= 0:
        return f"exited with status {code}"
    try:
        return f"was killed by signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"was killed by signal {-code}"


class ProcessKeeper:
    """A process that ends the job's process groups if the launcher is killed."""

    def __init__(self) -> None:
        command = [sys.executable, "-S", "-E", str(GUARD), "keep"]
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
        """Let it end what it still knows, and end."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except OSError:
            pass
        self._process.wait()


class JobMember:
    """A member of the job: role `role`, number `rank`.

    Attributes:
        code: exit status, negative for a signal; None while it runs.
        ended: seconds after its start at which it ended.
        stopped: whether the launcher ended it.
        lines: the last lines it wrote.
        where: its process id, and its host if that is another one.
        begun: the time of its start, by `time.monotonic`.
    """

    def __init__(self, role: str, rank: int):
        self.role, self.rank = role, rank
        self.name = role if role == "scheduler" else f"{role} {rank}"
        self.lines: deque[str] = deque(maxlen=MAX_KEPT_LINES)
        self.code: int | None = None
        self.ended: float | None = None
        self.stopped = False
        self.where = ""
        self.begun = time.monotonic()

    def end(self, code: int) -> None:
        """Note its end; only the first one counts."""
        if self.code is None:
            self.ended = time.monotonic() - self.begun
            self.code = code

    def print(self, text: str, target: IO[str]) -> None:
        """Write one of its lines with a prefix."""
        self.lines.append(text)
        _print(self.name, _COLOURS[self.role][self.rank % len(_COLOURS[self.role])], text, target)


def _print(name: str, colour: int, text: str, target: IO[str]) -> None:
    prefix = f"\x1b[{colour}m[{name}]\x1b[0m " if target.isatty() else f"[{name}] "
    with _printing:
        try:
            target.write(f"{prefix}{text}\n")
            target.flush()
        except (OSError, ValueError):
            pass  # the launcher's own output is closed; the job goes on


@dataclass
class ProcessSpec:
    """How to start one process on this host.

    Attributes:
        members: the members of the job that it is, or starts elsewhere.
        command: program and arguments.
        env: its whole environment.
        text: written to its stdin, which then stays open until the process is to end.
        framed: whether what it writes are the frames of agents.
        name: the program that is started, in messages, where it is not the member itself.
        timeout: seconds between asking it to end and killing it.
        login_slot: of those with the same one, only a few are started at a time, until they have said something.
    """

    members: Sequence[JobMember]
    command: Sequence[str]
    env: Mapping[str, str]
    text: str | None = None
    framed: bool = False
    name: str = ""
    timeout: float = 2.0
    login_slot: str = ""


class Process:
    """A running process.

    Attributes:
        start: how it was started.
        lines: last lines of its own, apart from those of its members.
    """

    def __init__(self, start: ProcessSpec, keeper: ProcessKeeper):
        self.start = start
        self.members, self.name, self.timeout = list(start.members), start.name, start.timeout
        self.lines: deque[str] = deque(maxlen=MAX_KEPT_LINES)
        self.code: int | None = None
        self._framed = start.framed
        self._named = {m.name: m for m in self.members}
        self._keeper = keeper
        death = signal.SIGTERM if start.framed else signal.SIGKILL
        self._popen = subprocess.Popen(
            [sys.executable, "-S", "-E", str(GUARD), "run", str(int(death)), str(os.getpid()), *start.command],
            env=dict(start.env),
            stdin=subprocess.DEVNULL if start.text is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            text=True,
            errors="replace",
            bufsize=1,
        )
        self.pid = self._popen.pid
        keeper.tell("+", self.pid)
        if not start.framed:
            self.members[0].where = f"process {self.pid}"
        if self._popen.stdin is not None and start.text is not None:
            try:
                self._popen.stdin.write(start.text + "\n")
                self._popen.stdin.flush()
            except OSError:
                pass  # it has ended already, and will say why
        pairs = ((self._popen.stdout, sys.stdout), (self._popen.stderr, sys.stderr))
        self._readers = [threading.Thread(target=self._copy, args=pair, daemon=True) for pair in pairs]
        for reader in self._readers:
            reader.start()

    def _copy(self, source: IO[str], target: IO[str]) -> None:
        try:
            for line in source:
                text = line.rstrip("\n")
                if self._framed and "\x1e" in text:
                    before, *frames = text.split("\x1e")
                    if before:
                        self._print_line(before, target)
                    for frame in frames:
                        self._frame(frame)
                else:
                    self._print_line(text, target)
        except (OSError, ValueError):
            pass

    def _print_line(self, text: str, target: IO[str]) -> None:
        if len(self.members) == 1:
            self.members[0].print(text, target)
        else:
            self.lines.append(text)
            _print(self.name, 90, text, target)

    def _frame(self, frame: str) -> None:
        name, _, rest = frame.partition("\x1f")
        kind, _, text = rest.partition("\x1f")
        member = self._named.get(name)
        if member is None:
            return
        if kind in ("o", "e"):
            member.print(text, sys.stdout if kind == "o" else sys.stderr)
        elif kind == "s":
            host, _, pid = text.rpartition(" ")
            member.where = f"process {pid} on {host}"
        elif kind == "x" and text.lstrip("-").isdigit():
            member.end(int(text))

    def poll(self) -> int | None:
        """Exit status, negative for a signal; None while it runs. Members that said nothing else end with it."""
        code = self._popen.poll()
        if code is not None and self.code is None:
            self.code = code
            self.signal(signal.SIGKILL)  # what it left behind in its group
            self._keeper.tell("-", self.pid)
            if self._popen.stdin is not None:
                try:
                    self._popen.stdin.close()
                except OSError:
                    pass
            if self._framed:
                self.finish_output()
            for m in self.members:
                m.end(code or int(self._framed))  # an agent that ends as it should has told the status before
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


__all__ = ["JobMember", "Process", "ProcessKeeper", "ProcessSpec", "agent_command", "describe_exit", "script_command"]
