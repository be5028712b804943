"""Preflight: check hosts before anything is started on them."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ..core.errors import MXNetError
from .process import script_command

SCRIPT = Path(__file__).with_name("host_agent.py")
_REMEDIES = (
    ("cannot connect to", "a firewall between them? --host-ip or --network-interface choose another network"),
    ("Permission denied", "no login without a password for this user and key; ssh-copy-id makes it possible"),
    ("Host key verification failed", "its key is unknown here, or another one than before: log in once by hand"),
    ("resolve hostname", "a wrong name in the host file?"),
    ("timed out", "is it on, and is its address right?"),
    ("No route", "is it on, and is its address right?"),
    ("refused", "no ssh daemon there; another port is written NAME:PORT in the host file"),
    ("folder", "it has to be there under the same path; --sync-dst-dir FOLDER copies this one"),
    ("python3: not found", "hosts need Python 3.9 or newer"),
    ("no program", "a login without a terminal must find it: give its whole path, or --env PATH:…"),
)


class HostUnusable(MXNetError):
    """A host that cannot be used, and why."""


class HostConnection:
    """A conversation with `host_agent.py` on a host.

    Args:
        command: runs the script there, such as by ssh.
    """

    def __init__(self, command: Sequence[str]):
        self._answers: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._said: deque[str] = deque(maxlen=5)
        self._popen = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            errors="replace", start_new_session=True,
        )  # fmt: skip
        pairs = ((self._listen, self._popen.stdout), (self._note, self._popen.stderr))
        self._readers = [threading.Thread(target=how, args=(source,), daemon=True) for how, source in pairs]
        for reader in self._readers:
            reader.start()

    def _listen(self, source: IO[str]) -> None:
        for line in source:
            if line.startswith("\x1e"):
                self._answers.put(json.loads(line[1:]))
        self._answers.put(None)

    def _note(self, source: IO[str]) -> None:
        for line in source:
            if line.strip():
                self._said.append(line.strip())

    def ask(self, question: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Return the answer.

        Raises:
            Unusable: the host says what is wrong, or says nothing.
        """
        assert self._popen.stdin is not None
        try:
            self._popen.stdin.write(json.dumps(question) + "\n")
            self._popen.stdin.flush()
            answer = self._answers.get(timeout=seconds)
        except OSError:
            answer = None
        except queue.Empty:
            raise HostUnusable(f"no answer within {seconds:g} s") from None
        if answer is None:
            self._readers[1].join(1.0)
            code = self._popen.wait()
            raise HostUnusable(self._said[-1] if self._said else f"the connection ended with status {code}")
        if answer["problem"]:
            raise HostUnusable(answer["problem"])
        return answer

    def clock_skew(self) -> tuple[float, float]:
        """Return how far that host's clock is ahead of this one's, and how wrong that may be, in seconds."""
        best = (0.0, float("inf"))
        for _ in range(5):
            before, start = time.time(), time.monotonic()
            there = self.ask({"ask": "clock"}, 10)["time"]
            way = (time.monotonic() - start) / 2
            if way < best[1]:
                best = (there - before - way, way)
        return best

    def close(self) -> None:
        """End the conversation."""
        for stream in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            assert stream is not None
        try:
            self._popen.stdin.close()  # type: ignore[union-attr]
        except OSError:
            pass
        try:
            self._popen.wait(1.0)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
        for reader in self._readers:
            reader.join(1.0)
        for stream in (self._popen.stdout, self._popen.stderr):
            stream.close()  # type: ignore[union-attr]


class HostConnections:
    """Conversations with several hosts at a time.

    Attributes:
        problems: why a host cannot be used; it is not asked again.
    """

    def __init__(self, commands: Mapping[str, Sequence[str]]):
        self._probes = {name: HostConnection(command) for name, command in commands.items()}
        self.problems: dict[str, str] = {}

    def ask(self, question: Mapping[str, Any] | Mapping[str, Mapping[str, Any]], seconds: float) -> dict[str, Any]:
        """Send all usable hosts the same question, or each its own; return the answers by name."""
        out: dict[str, Any] = {}

        def one(name: str) -> None:
            own: Any = question if "ask" in question else question[name]
            try:
                out[name] = self._probes[name].ask(own, seconds)
            except HostUnusable as e:
                self.problems[name] = str(e)

        self._each(one)
        self.problems = {name: self.problems[name] for name in self._probes if name in self.problems}
        return {name: out[name] for name in self._probes if name in out}

    def clock_skews(self) -> dict[str, tuple[float, float]]:
        """Return `HostConnection.clock_skew` of each host that can be used."""
        out: dict[str, tuple[float, float]] = {}

        def one(name: str) -> None:
            try:
                out[name] = self._probes[name].clock_skew()
            except HostUnusable as e:
                self.problems[name] = str(e)

        self._each(one)
        return out

    def _each(self, one: Any) -> None:
        names = [name for name in self._probes if name not in self.problems]
        threads = [threading.Thread(target=one, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def close(self) -> None:
        """End all conversations."""
        names = list(self._probes)
        threads = [threading.Thread(target=self._probes[name].close) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


@contextmanager
def probing(commands: Mapping[str, Sequence[str]]) -> Iterator[HostConnections]:
    """Open `HostConnections`, and close them at the end."""
    probes = HostConnections(commands)
    try:
        yield probes
    finally:
        probes.close()


def probe_command() -> list[str]:
    """Command that runs the script on a host where nothing is installed but Python."""
    return script_command(SCRIPT)


def format_problems(problems: Mapping[str, str]) -> str:
    """What is wrong with hosts, and what can be done about it, one or two lines each."""
    lines = []
    for host, why in problems.items():
        lines.append(f"  {host}: {why}")
        lines += [f"      {remedy}" for sign, remedy in _REMEDIES if sign in why][:1]
    return os.linesep.join(lines)


__all__ = ["HostConnections", "HostUnusable", "format_problems", "probe_command", "probing"]
