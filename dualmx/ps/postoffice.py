"""The postoffice: the scheduler knows all members, gives them ranks, holds barriers, and tells who died."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from ..core.errors import FormatError, MXNetError
from .drops import dropping
from .frame import ERROR, NOTE, REPLY, REQUEST, Message
from .job import Job
from .talking import talk
from .van import GRACE, SILENCE, Van

_log = logging.getLogger("dualmx.dist")
CROSSED = 2.0  # seconds that all workers may wait at different barriers


class _Member:
    def __init__(self, link: int, request: int, role: str, wish: int, life: int, address: dict[str, Any]):
        self.link, self.request, self.role, self.wish, self.address = link, request, role, wish, address
        self.life = life
        self.rank = -1
        self.state = "alive"  # alive, lost (its connection broke), left, dead
        self.since = 0.0  # when it was lost or died
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
        policy: what becomes of the job when a member of a role dies: `fail`, `wait`, `continue`.
        comeback: seconds that the job waits, where the policy is to wait.
        coordinator: starts what XLA's processes, as many as it is told, meet by, and returns its address.
    """

    def __init__(
        self,
        van: Van,
        workers: int,
        servers: int,
        policy: Mapping[str, str] | None = None,
        comeback: float = 120.0,
        coordinator: Callable[[int], str] | None = None,
    ):
        self._van = van
        self._policy = policy or {"worker": "fail", "server": "fail"}
        self._comeback = comeback
        self._wanted = {"worker": workers, "server": servers}
        self._members: dict[int, _Member] = {}
        self._complete = False
        self._coordinator, self._coordinates = coordinator, ""
        self._met: dict[int, tuple[int, int, dict[str, Any]]] = {}  # rank -> (link, request, address)
        self._barriers: dict[str, dict[int, tuple[int, int]]] = {}  # name -> rank -> (link, request)
        self._crossed = 0.0  # since when all workers wait at different ones
        self._passed: set[str] = set()
        self._count = 0  # barriers without a name that were passed
        self._lock = threading.RLock()
        self.over = threading.Event()
        self.failed = ""

    # -- messages, on the van's thread

    def on_message(self, link: int, message: Message) -> None:
        """Serve one message of a member."""
        try:
            with self._lock:
                self._serve(link, message)
        except MXNetError as e:
            self._van.send(link, Message(ERROR, message.request, {"text": str(e), "final": True}))

    def _serve(self, link: int, message: Message) -> None:
        op = message.take("op", str)
        if message.kind == REQUEST and op == "register":
            self._register(link, message)
        elif message.kind == REQUEST and op == "rejoin":
            self._rejoin(link, message)
        elif message.kind == REQUEST and op == "barrier":
            self._barrier(link, message)
        elif message.kind == REQUEST and op == "meet":
            self._meet(link, message)
        elif message.kind == REQUEST and op == "coordinator":
            self._van.send(link, Message(REPLY, message.request, {"address": self._coordinated()}))
        elif message.kind == REQUEST and op == "status":
            self._van.send(link, Message(REPLY, message.request, self.status()))
        elif message.kind == NOTE and op == "bye":
            self._leave(link)
        elif message.kind == NOTE and op == "crash" and link in self._members:
            self._members[link].crash = message.take("text", str)[:500]

    def status(self) -> dict[str, Any]:
        """Return what is known of the members, for `dualmx status`."""
        now = time.monotonic()
        members = [
            {
                "role": m.role, "rank": m.rank, "state": m.state, "address": m.address, "end": m.end,
                "since": round(now - m.since, 1) if m.since else 0.0,
            }
            for m in sorted(self._members.values(), key=lambda m: (m.role, m.rank))
        ]  # fmt: skip
        waiting = [{"barrier": name, "ranks": sorted(seat)} for name, seat in self._barriers.items()]
        return {"wanted": self._wanted, "complete": self._complete, "members": members, "barriers": waiting}

    def on_down(self, link: int, reason: str) -> None:
        """A link broke: its member is lost, unless it had taken its leave; dead, if it does not come again at once."""
        with self._lock:
            member = self._members.get(link)
            if member is None or member.state != "alive":
                return
            if not self._complete:
                del self._members[link]
                return
            member.state, member.since, member.end = "lost", time.monotonic(), member.crash or reason
            if member.crash or reason.startswith(SILENCE):
                self._bury(member)
            else:
                self._note(member, "lost", member.end)

    def _bury(self, member: _Member) -> None:
        member.state, member.since = "dead", time.monotonic()
        _log.warning("scheduler: %s died: %s", member.name, member.end)
        self._tell(member, f"{member.name} died: {member.end}", dead=True)

    def _awaited(self, member: _Member) -> bool:
        """Dead, and the job waits for its return."""
        waits = self._policy[member.role] == "wait" and time.monotonic() - member.since < self._comeback
        return member.state == "dead" and waits

    def _register(self, link: int, message: Message) -> None:
        role, wish, life = message.take("role", str), message.take("wish", int), message.take("life", int)
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
        member = _Member(link, message.request, role, wish, life, address)
        if self._complete:
            self._replace(member)
            return
        if sum(m.role == role for m in self._members.values()) >= self._wanted[role]:
            raise MXNetError(f"the job has its {self._wanted[role]} {role}s already")
        self._members[link] = member
        if len(self._members) == sum(self._wanted.values()):
            self._begin()

    def _replace(self, member: _Member) -> None:
        """Let a new process take the place of one that died."""
        role = member.role
        for old in self._members.values():
            if old.role == role and old.state == "lost" and old.rank == member.wish:
                self._bury(old)
        places = [m for m in self._members.values() if m.role == role and self._awaited(m)]
        chosen = next((m for m in places if m.rank == member.wish), places[0] if places else None)
        if chosen is None:
            raise MXNetError(f"the job has its {self._wanted[role]} {role}s already, and waits for none to come back")
        del self._members[chosen.link]
        member.rank = chosen.rank
        self._members[member.link] = member
        _log.warning("scheduler: %s is back", member.name)
        self._welcome(member, back=True)
        self._note(member, "back", f"{member.name} is back")

    def _rejoin(self, link: int, message: Message) -> None:
        """A member whose connection broke has made another one."""
        role, rank, life = message.take("role", str), message.take("rank", int), message.take("life", int)
        member = next((m for m in self._members.values() if (m.role, m.rank, m.life) == (role, rank, life)), None)
        if member is None or not (member.state in ("alive", "lost") or self._awaited(member)):
            raise MXNetError(f"the job goes on without {role} {rank}: {member.end if member else 'not a member'}")
        if member.link != link:
            del self._members[member.link]
            self._van.drop(member.link)
            member.link = link
            self._members[link] = member
        if member.state != "alive":
            member.state, member.crash = "alive", ""
            self._note(member, "back", f"{member.name} is back")
        self._van.send(link, Message(REPLY, message.request))

    def _welcome(self, member: _Member, back: bool) -> None:
        ordered = sorted(self._members.values(), key=lambda m: m.rank)
        servers = [m.address for m in ordered if m.role == "server"]
        meta = {"rank": member.rank, "servers": servers, "back": back, "barriers": self._count}
        self._van.send(member.link, Message(REPLY, member.request, meta))

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
        _log.info("scheduler: all are here:\n%s", self.table())
        for m in self._members.values():
            self._welcome(m, back=False)

    def table(self) -> str:
        """The members, one a line: role, rank, host, and the port of a server."""
        ordered = sorted(self._members.values(), key=lambda m: (m.role, m.rank))
        rows = [("role", "rank", "host", "port")]
        rows += [(m.role, str(m.rank), str(m.address.get("host", "")), str(m.address.get("port", ""))) for m in ordered]
        wide = max(len(row[2]) for row in rows)
        return "\n".join(f"  {a:9} {b:>4}  {c:{wide}}  {d}".rstrip() for a, b, c, d in rows)

    def _barrier(self, link: int, message: Message) -> None:
        member = self._members.get(link)
        if member is None or member.role != "worker":
            raise MXNetError("only the workers of the job meet at a barrier")
        name, number = message.take("name", str), message.take("number", int)
        if name in self._passed or (not name and number <= self._count):
            self._van.send(link, Message(REPLY, message.request))
            return
        label = name or f"#{number}"
        self._barriers.setdefault(label, {})[member.rank] = (link, message.request)
        self._settle(label)

    def _meet(self, link: int, message: Message) -> None:
        """Tell all workers where the others listen, when all have said so."""
        member = self._members.get(link)
        if member is None or member.role != "worker":
            raise MXNetError("only the workers of the job meet")
        self._met[member.rank] = (link, message.request, message.take("address", dict))
        self._introduce()

    def _introduce(self) -> None:
        gone = [m for m in self._members.values() if m.role == "worker" and m.state in ("dead", "left")]
        if len(self._met) == self._wanted["worker"]:
            addresses = [self._met[rank][2] for rank in sorted(self._met)]
            for link, request, _ in self._met.values():
                self._van.send(link, Message(REPLY, request, {"addresses": addresses}))
        elif gone:
            for link, request, _ in self._met.values():
                self._van.send(link, Message(ERROR, request, {"text": gone[0].end}))
        else:
            return
        self._met = {}

    def _coordinated(self) -> str:
        if self._coordinator is None:
            raise MXNetError("the scheduler of this job starts no coordinator")
        self._coordinates = self._coordinates or self._coordinator(self._wanted["worker"])
        return self._coordinates

    def _settle(self, label: str) -> None:
        seat = self._barriers[label]
        workers = [m for m in self._members.values() if m.role == "worker"]
        if self._policy["worker"] == "continue":
            workers = [m for m in workers if m.state != "dead"]
        if all(m.rank in seat for m in workers):
            if label.startswith("#"):
                self._count = max(self._count, int(label[1:]))
            else:
                self._passed.add(label)
            for link, request in self._barriers.pop(label).values():
                self._van.send(link, Message(REPLY, request))
            return
        gone = [m for m in workers if m.state in ("dead", "left") and not self._awaited(m) and m.rank not in seat]
        if gone:
            for link, request in self._barriers.pop(label).values():
                self._van.send(link, Message(ERROR, request, {"text": gone[0].end}))

    def _leave(self, link: int) -> None:
        member = self._members.get(link)
        if member is not None and member.state == "alive":
            member.state = "left"
            self._tell(member, f"{member.name} has left the job", dead=False)

    def _note(self, about: _Member, op: str, text: str, **more: Any) -> None:
        note = {"op": op, "role": about.role, "rank": about.rank, "text": text, "address": about.address, **more}
        for m in self._members.values():
            if m.state == "alive" and m is not about:
                self._van.send(m.link, Message(NOTE, 0, note))

    def _tell(self, about: _Member, text: str, dead: bool) -> None:
        about.end = text
        self._note(about, "gone", text, dead=dead)
        for label in list(self._barriers):
            self._settle(label)
        if self._met:
            self._introduce()
        self._maybe_over()

    def _maybe_over(self) -> None:
        if not any(m.state in ("alive", "lost") or self._awaited(m) for m in self._members.values()):
            self.over.set()

    # -- the scheduler's own thread

    def run(self, start: float) -> None:
        """Serve until the job is over.

        Raises:
            MXNetError: after `start` seconds members were still missing.
        """
        until = time.monotonic() + start
        while not self.over.wait(0.1):
            with self._lock:
                if not self._complete:
                    # Without servers, a script that never joins is none of the scheduler's concern.
                    if time.monotonic() > until and (self._members or self._wanted["server"]):
                        self._refuse(start)
                    continue
                self._watch()
                workers = [m for m in self._members.values() if m.role == "worker"]
                ended = not any(m.state in ("alive", "lost") or self._awaited(m) for m in workers)
                if ended:
                    for lost in [m for m in self._members.values() if m.state == "lost"]:
                        self._bury(lost)
            if ended:
                self.over.wait(5.0)  # servers end by themselves
                return

    def _watch(self) -> None:
        """Those who were lost and did not come again are dead; those who were awaited in vain end what waits."""
        now = time.monotonic()
        for member in list(self._members.values()):
            if member.state == "lost" and now - member.since > GRACE:
                self._bury(member)
        for label in list(self._barriers):
            self._settle(label)
        self._uncross(now)
        self._maybe_over()

    def _uncross(self, now: float) -> None:
        """End barriers that all workers wait at for good, because they do not wait at the same one."""
        workers = [m for m in self._members.values() if m.role == "worker" and m.state != "left"]
        at = {rank: label for label, seat in self._barriers.items() for rank in seat}
        if len(self._barriers) < 2 or not all(m.state == "alive" and m.rank in at for m in workers):
            self._crossed = 0.0
        elif not self._crossed:
            self._crossed = now
        elif now - self._crossed > CROSSED:
            self._crossed = 0.0
            told = "; ".join(f"worker {rank} at the barrier {label}" for rank, label in sorted(at.items()))
            text = f"the workers wait for each other at different places: {told}; all must make the same calls in order"
            for label in list(self._barriers):
                for link, request in self._barriers.pop(label).values():
                    self._van.send(link, Message(ERROR, request, {"text": text}))

    def _refuse(self, start: float) -> None:
        here = {role: sum(m.role == role for m in self._members.values()) for role in self._wanted}
        text = (
            f"the job did not come together within {start:g} s (DUALMX_START_TIMEOUT): "
            + ", ".join(f"{here[role]} of {count} {role}s" for role, count in self._wanted.items())
        )  # fmt: skip
        for m in list(self._members.values()):
            self._van.send(m.link, Message(ERROR, m.request, {"text": text}))
        raise MXNetError(text)


def start_scheduler(job: Job, coordinator: Callable[[int], str] | None = None) -> Callable[[], None]:
    """Begin to be the scheduler of a job; returns what serves until the job is over.

    Args:
        job: the job.
        coordinator: see `Scheduler`.

    Raises:
        MXNetError: the port is taken.
    """
    talk()
    van = job.van()
    scheduler = Scheduler(van, job.workers, job.servers, job.policy, job.comeback, coordinator)
    van.on_message, van.on_down = dropping(scheduler.on_message, job.drop, "scheduler"), scheduler.on_down
    van.start()
    try:
        van.listen(job.bind_host(job.uri), job.port)
    except BaseException:
        van.close()
        raise

    def serve() -> None:
        try:
            scheduler.run(job.start)
        finally:
            van.close()

    return serve


def run_scheduler(job: Job, coordinator: Callable[[int], str] | None = None) -> None:
    """Be the scheduler of a job until it is over.

    Raises:
        MXNetError: the port is taken, or the job does not come together in time.
    """
    start_scheduler(job, coordinator)()


__all__ = ["Scheduler", "run_scheduler", "start_scheduler"]
