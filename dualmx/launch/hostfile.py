"""Host files, and the assignment of processes to hosts."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..core.errors import ArgumentError

_LINE = re.compile(r"(?P<host>\[[0-9a-fA-F:.%]+\]|[^\s:=\[\]]+)(?::(?P<port>\w+))?(?:\s+slots\s*=\s*(?P<slots>\S+))?")


@dataclass(frozen=True)
class Host:
    """A line of a host file.

    Attributes:
        name: host name or address, as ssh takes it (`user@` may precede it).
        port: of the ssh daemon; 0 for what ssh chooses.
        slots: workers that it takes before the next host is filled.
    """

    name: str
    port: int = 0
    slots: int = 1

    @property
    def address(self) -> str:
        """The name without a user."""
        return self.name.rpartition("@")[2]

    def __str__(self) -> str:
        return f"{self.name}:{self.port}" if self.port else self.name


def _number(text: str | None, default: int, most: int, where: str, what: str) -> int:
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 9 or not 1 <= int(text) <= most:
        raise ArgumentError(f"{where}: {what}={text!r}: expected 1 to {most}")
    return int(text)


def read_hosts(path: str | os.PathLike[str]) -> list[Host]:
    """Return the hosts in a file: one line each, `host`, `host:port` or `host slots=n`; `#` begins a comment.

    Raises:
        ArgumentError: the file cannot be read, is empty, or a line is none of these forms.
    """
    try:
        with open(path, encoding="utf-8") as f:
            lines = f.read().splitlines()
    except (OSError, UnicodeDecodeError) as e:
        reason = e.strerror if isinstance(e, OSError) else "not text"
        raise ArgumentError(f"host file {os.fspath(path)!r}: cannot be read: {reason}") from None
    hosts = []
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        where = f"host file {os.fspath(path)!r}, line {number}"
        found = _LINE.fullmatch(text)
        if found is None or found["host"].startswith("-"):  # a program would take it for an option
            raise ArgumentError(f"{where}: {text!r}: expected 'host', 'host:port' or 'host slots=n'")
        port = _number(found["port"], 0, 65535, where, "port")
        slots = _number(found["slots"], 1, 1 << 20, where, "slots")
        hosts.append(Host(found["host"].strip("[]"), port, slots))
    if not hosts:
        raise ArgumentError(f"host file {os.fspath(path)!r}: names no host")
    return hosts


def place(hosts: Sequence[Host], servers: int, workers: int) -> dict[tuple[str, int], Host]:
    """Return the host of each (role, rank).

    Workers fill the slots of one host after the other, servers take one host after the other; both begin again at the
    first host when all are used.

    Example:
        >>> a, b = Host("a", slots=2), Host("b")
        >>> [h.name for h in place([a, b], 2, 4).values()]
        ['a', 'b', 'a', 'a', 'b', 'a']
    """
    slots = [h for h in hosts for _ in range(h.slots)]
    out: dict[tuple[str, int], Host] = {}
    for role, count, ring in (("server", servers, list(hosts)), ("worker", workers, slots)):
        for rank in range(count):
            out[role, rank] = ring[rank % len(ring)]
    return out


def by_host(places: dict[tuple[str, int], Host]) -> list[tuple[Host, list[tuple[str, int]]]]:
    """Return each host with the processes placed on it, hosts in the order of their first process."""
    groups: dict[str, tuple[Host, list[tuple[str, int]]]] = {}
    for member, host in places.items():
        groups.setdefault(str(host), (host, []))[1].append(member)
    return list(groups.values())


__all__ = ["Host", "by_host", "place", "read_hosts"]
