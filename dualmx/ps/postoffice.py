"""The postoffice: the scheduler knows all members, gives them ranks, holds barriers, and tells who died."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

from ..core.errors import FormatError, MXNetError
from .frame import ERROR, NOTE, REPLY, REQUEST, Message
from .van import Van

_log = logging.getLogger("dualmx.dist")


class _Member:
    def __init__(self, link: int, request: int, role: str, wish: int, address: dict[str, Any]):
        self.link, self.request, self.role, self.wish, self.address = link, request, role, wish, address
        self.rank = -1
        self.state = "alive"  # alive, left, dead
        self.end = ""
        self.crash = ""

    @property
    def name(self) -> str:
        return f"{self.role} {self.rank}"


class Scheduler:
    """Membership of a job of `workers` workers and `servers` servers.

    Args:
        van: moves the messages.
        workers, servers: members that the job has.
    """

    def __init__(self, van: Van, workers: int, servers: int):
        self._van = van
        self._wanted = {"worker": workers, "server": servers}
        self._members: dict[int, _Member] = {}
        self._complete = False
        self._barriers: dict[int, dict[int, tuple[int, int]]] = {}  # number -> rank -> (link, request)
        self._passed = 0
        self.over = threading.Event()
        self.failed = ""

    # -- messages, on the van's thread

    def on_message(self, link: int, message: Message) -> None:
        """Serve one message of a member."""
        try:
            op = message.take("op", str)
            if message.kind == REQUEST and op == "register":
                self._register(link, message)
            elif message.kind == REQUEST and op == "barrier":
                self._barrier(link, message)
            elif message.kind == NOTE and op == "bye":
                self._leave(link)
            elif message.kind == NOTE and op == "crash" and link in self._members:
                self._members[link].crash = message.take("text", str)[:500]
        except MXNetError as e:
            self._van.send(link, Message(ERROR, message.request, {"text": str(e)}))

    def on_down(self, link: int, reason: str) -> None:
        """A link broke: its member is dead, unless it had taken its leave."""
        member = self._members.get(link)
        if member is None or member.state != "alive":
            return
        if not self._complete:
            del self._members[link]
            return
        member.state = "dead"
        reason = member.crash or reason
        _log.warning("scheduler: %s died: %s", member.name, reason)
        self._tell(member, f"{member.name} died: {reason}", dead=True)

    def _register(self, link: int, message: Message) -> None:
        role, wish = message.take("role", str), message.take("wish", int)
        address = message.take("address", dict)
        counts = {"worker": message.take("workers", int), "server": message.take("servers", int)}
        if role not in self._wanted:
            raise FormatError(f"role {role!r}: expected worker or server")
        if counts != self._wanted:
            raise MXNetError(
                f"the scheduler's job has {self._wanted['worker']} workers and {self._wanted['server']} servers, "
                f"this {role}'s has {counts['worker']} and {counts['server']} (DMLC_NUM_WORKER, DMLC_NUM_SERVER)"
            )
        if link in self._members:
            return
        if self._complete or sum(m.role == role for m in self._members.values()) >= self._wanted[role]:
            raise MXNetError(f"the job has its {self._wanted[role]} {role}s already")
        self._members[link] = _Member(link, message.request, role, wish, address)
        if len(self._members) == sum(self._wanted.values()):
            self._begin()

    def _begin(self) -> None:
        self._complete = True
        for role, count in self._wanted.items():
            members = [m for m in self._members.values() if m.role == role]
            free = set(range(count))
            for m in members:
                if m.wish in free:
                    m.rank = m.wish
                    free.discard(m.wish)
            for m in members:
                if m.rank < 0:
                    m.rank = min(free)
                    free.discard(m.rank)
        servers = [m.address for m in sorted(self._members.values(), key=lambda m: m.rank) if m.role == "server"]
        for m in self._members.values():
            _log.info("scheduler: %s is at %s:%s", m.name, m.address.get("host"), m.address.get("port"))
            self._van.send(m.link, Message(REPLY, m.request, {"rank": m.rank, "servers": servers}))

    def _barrier(self, link: int, message: Message) -> None:
        member = self._members.get(link)
        if member is None or member.role != "worker":
            raise MXNetError("only the workers of the job meet at a barrier")
        number = message.take("number", int)
        if number <= self._passed:
            self._van.send(link, Message(REPLY, message.request))
            return
        seat = self._barriers.setdefault(number, {})
        seat[member.rank] = (link, message.request)
        self._settle(number)

    def _settle(self, number: int) -> None:
        seat = self._barriers[number]
        if len(seat) == self._wanted["worker"]:
            self._passed = max(self._passed, number)
            for link, request in self._barriers.pop(number).values():
                self._van.send(link, Message(REPLY, request))
            return
        gone = [m for m in self._members.values() if m.state != "alive" and m.role == "worker" and m.rank not in seat]
        if gone:
            for link, request in self._barriers.pop(number).values():
                self._van.send(link, Message(ERROR, request, {"text": gone[0].end}))

    def _leave(self, link: int) -> None:
        member = self._members.get(link)
        if member is not None and member.state == "alive":
            member.state = "left"
            self._tell(member, f"{member.name} has left the job", dead=False)

    def _tell(self, about: _Member, text: str, dead: bool) -> None:
        about.end = text
        note = {"op": "gone", "role": about.role, "rank": about.rank, "text": text, "dead": dead}
        for m in self._members.values():
            if m.state == "alive":
                self._van.send(m.link, Message(NOTE, 0, note))
        for number in list(self._barriers):
            self._settle(number)
        if not any(m.state == "alive" for m in self._members.values()):
            self.over.set()

    # -- the scheduler's own thread

    def run(self, start: float) -> None:
        """Serve until the job is over.

        Raises:
            MXNetError: after `start` seconds members were still missing.
        """
        until = time.monotonic() + start
        while not self.over.wait(0.1):
            if not self._complete and time.monotonic() > until:
                self._refuse(start)
            if self._complete and not any(m.state == "alive" and m.role == "worker" for m in self._members.values()):
                self.over.wait(5.0)  # servers end by themselves
                return

    def _refuse(self, start: float) -> None:
        here = {role: sum(m.role == role for m in self._members.values()) for role in self._wanted}
        text = (
            f"the job did not come together within {start:g} s (DUALMX_START_TIMEOUT): "
            + ", ".join(f"{here[role]} of {count} {role}s" for role, count in self._wanted.items())
        )  # fmt: skip
        for m in list(self._members.values()):
            self._van.send(m.link, Message(ERROR, m.request, {"text": text}))
        raise MXNetError(text)


__all__ = ["Scheduler"]
