"""The scheduler: registers members, assigns ranks, holds barriers, announces deaths."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from ..core.errors import FormatError, MXNetError
from . import protocol
from .elastic_rounds import GroupFormation
from .job import Job
from .journal import Journal, JournalError
from .member import Member, few, with_remedy
from .protocol import MemberEvent, MemberState, header, notice
from .scheduler_state import Place, SchedulerState
from .van.debug_van import enable_logging, with_message_drops
from .van.frame import ERROR, NOTICE, PING, REPLY, REQUEST, Message
from .van.socket_van import SocketVan
from .van.van import NO_HEARTBEAT, RECONNECT_SECONDS, AddressInUse, Van

_log = logging.getLogger("dualmx.dist")
MIN_RECONNECT_SECONDS = 5.0  # seconds that members have at least to connect to another scheduler
MISMATCH_SECONDS = 2.0  # seconds that all workers may wait at different barriers
PARTING = 2.0  # seconds in which members that have left may ask whether that was understood
WAIT_LOG_SECONDS = 10.0  # seconds after which those who wait at a barrier are told for whom


class Barrier:
    """A barrier that workers wait at.

    Attributes:
        name, place: see `SchedulerState.has_passed`.
        came: link and request of the workers that are there, by rank.
        early: none of them has pushed anything yet.
    """

    def __init__(self, name: str, place: Place):
        self.name, self.place = name, place
        self.came: dict[int, tuple[int, int]] = {}
        self.early = True

    def has(self, member: Member) -> bool:
        """Whether the barrier need not wait for a worker: it arrived, or came back after it."""
        behind = not self.name and (self.place[0] <= member.past or (member.early and self.early))
        return member.rank in self.came or behind


class Scheduler:
    """Membership of a job of `workers` workers and `servers` servers.

    Args:
        van: moves the messages.
        workers, servers: members that the job has.
        policy: what becomes of the job when a member of a role dies: `fail`, `wait`, `continue`, `elastic`.
        comeback: seconds that the job waits, where the policy is to wait.
        coordinator: starts what XLA's processes, as many as it is told, meet by, and returns its address.
        journal: where changes are written down, to be read by `restore`.
        group: least and greatest number of workers that exchange arrays in an elastic job; 0: any.
    """

    def __init__(
        self,
        van: Van,
        workers: int,
        servers: int,
        policy: Mapping[str, str] | None = None,
        comeback: float = 120.0,
        coordinator: Callable[[int], str] | None = None,
        journal: Journal | None = None,
        group: tuple[int, int] = (1, 0),
    ):
        self._van = van
        self._policy = policy or {"worker": "fail", "server": "fail"}
        self._restart_timeout = comeback
        self._ledger = SchedulerState(workers, servers, self._policy["worker"] == "elastic", journal)
        self._expected_members, self._members = self._ledger.expected_members, self._ledger.members
        self._attendance = self._ledger.elastic_rounds
        self._assembly = GroupFormation(*group) if self._attendance is not None else None
        self._coordinator, self._coordinates = coordinator, ""
        self._worker_addresses: dict[int, tuple[int, int, dict[str, Any]]] = {}  # rank -> (link, request, address)
        self._barriers: dict[str, Barrier] = {}  # by their names, or what stands for the place of one without a name
        # At barriers whose numbers are not known yet, by rank: link, request, what was asked.
        self._skipping: dict[int, tuple[int, int, protocol.BarrierRequest]] = {}
        self._since: dict[str, float] = {}  # of barriers, when somebody came or all were told
        self._mismatched_since = 0.0  # since when all workers wait at different ones
        self._last_gone: Member | None = None  # the worker that died or left last, and when it did so
        self._last_end = 0.0
        self._asked = 0.0  # since when a worker waits for the next batch
        self._lock = threading.RLock()
        self.over = threading.Event()
        self.failed = ""
        self._servers: dict[type, Callable[[int, int, Any], None]] = {
            protocol.Register: self._register,
            protocol.Rejoin: self._rejoin,
            protocol.BarrierRequest: self._barrier,
            protocol.BarrierSkip: self._pass,
            protocol.BatchRequest: self._next_batch,
            protocol.HistoryRequest: self._tell_history,
            protocol.AddressRequest: self._register_address,
            protocol.GroupRequest: self._assemble,
            protocol.CoordinatorRequest: self._tell_coordinator,
            protocol.StatusRequest: lambda link, request, _: self._reply(link, request, self.status()),
            protocol.Leave: lambda link, request, leave: self._reply(link, request, self._stays_or_leaves(link, leave)),
        }

    def restore(self, timeout: float) -> bool:
        """Read the journal, and be where the scheduler that wrote it was; whether there was one.

        Args:
            timeout: seconds that its members have to connect to this one.

        Raises:
            MXNetError: the journal is that of another job.
        """
        self._ledger.replay()
        now = time.monotonic()
        for member in self._members.values():
            if member.present or self._policy[member.role] == "wait" and member.state == MemberState.DEAD:
                member.state, member.since, member.grace_seconds = MemberState.LOST, now, timeout
                member.end_reason = member.end_reason or "it did not connect to the scheduler after its restart"
        if not self._ledger.all_joined:
            self._ledger.log_job()
        return self._ledger.all_joined

    # -- messages, on the van's thread

    def on_message(self, link: int, message: Message) -> None:
        """Serve one message of a member."""
        try:
            with self._lock:
                self._serve(link, message)
        except JournalError as e:
            self.failed = str(e)
            self.over.set()
        except MXNetError as e:
            self._fail(link, message.request, str(e), final=True)

    def _serve(self, link: int, message: Message) -> None:
        """Dispatch a record by its type; without a request, only members may send one."""
        if message.kind == REQUEST:
            record = protocol.SCHEDULER_REQUESTS.read(message)
            self._servers[type(record)](link, message.request, record)
        elif (member := self._members.get(link)) is not None and message.kind == PING:
            member.status.update(message)
        elif member is not None and message.kind == NOTICE:
            match protocol.SCHEDULER_NOTICES.read(message):
                case protocol.Leave() as record:
                    self._stays_or_leaves(link, record)
                case protocol.LeaveAck():
                    member.parted = True
                case protocol.Crash(text):
                    member.crash = text[:500]

    def _reply(self, link: int, request: int, meta: dict[str, Any] | None = None) -> None:
        self._van.answer(link, Message(REPLY, request, meta or {}))

    def _fail(self, link: int, request: int, text: str, **more: bool) -> None:
        self._van.answer(link, Message(ERROR, request, {"text": text, **more}))

    def status(self) -> dict[str, Any]:
        """Return what is known of the members, for `dualmx status`."""
        now = time.monotonic()
        members = [m.status_dict(now) for m in sorted(self._members.values(), key=lambda m: (m.role, m.rank))]
        waiting = [{"barrier": label, "ranks": sorted(b.came)} for label, b in self._barriers.items()]
        state = {
            "wanted": self._expected_members,
            "complete": self._ledger.all_joined,
            "members": members,
            "barriers": waiting,
        }
        if self._attendance is not None:
            state["batch"] = {"number": self._attendance.number, "members": self._attendance.members}
            waited = round(now - self._asked, 3) if self._asked else 0.0
            state["late"] = {str(rank): waited for rank in self._attendance.missing() if waited}
        return state

    def on_down(self, link: int, reason: str) -> None:
        """A link broke: its member is lost unless it said goodbye, and dead unless it reconnects soon."""
        with self._lock:
            member = self._members.get(link)
            if member is None or member.state != MemberState.ALIVE:
                return
            if not self._ledger.all_joined:
                del self._members[link]
                return
            member.state, member.since, member.end_reason = MemberState.LOST, time.monotonic(), member.crash or reason
            member.grace_seconds = RECONNECT_SECONDS
            if member.crash or reason.startswith(NO_HEARTBEAT):
                self._mark_dead(member)
            else:
                self._notify(member, MemberEvent.LOST, member.end_reason)

    def _mark_dead(self, member: Member) -> None:
        now = time.monotonic()
        died = member.since if member.state == MemberState.LOST else now
        member.state, member.since = MemberState.DEAD, now
        self._ledger.log_member(member)
        _log.warning("scheduler: %s died: %s", member.name, member.end_reason)
        text = f"{member.name} died: {member.end_reason}"
        self._announce_death(member, with_remedy(text, member.role, self._policy[member.role]), True, died)

    def _awaits_restart(self, member: Member) -> bool:
        """Whether the member is dead and the job waits for its return, or, without workers, for a replacement."""
        policy = self._policy[member.role]
        waits = policy == "wait" or (policy == "elastic" and member is self._last_gone)
        return waits and member.state == MemberState.DEAD and time.monotonic() - member.since < self._restart_timeout

    def _register(self, link: int, request: int, asked: protocol.Register) -> None:
        role, counts = asked.role, {"worker": asked.workers, "server": asked.servers}
        if role not in self._expected_members:
            raise FormatError(f"role {role!r}: expected worker or server")
        if counts != self._expected_members:
            raise MXNetError(
                f"the scheduler's job has {self._expected_members['worker']} workers and "
                f"{self._expected_members['server']} servers, "
                f"this {role}'s has {counts['worker']} and {counts['server']} (DMLC_NUM_WORKER, DMLC_NUM_SERVER)"
            )
        if asked.policy not in (None, self._policy):
            raise MXNetError(
                f"the scheduler's job has the policies {dict(self._policy)}, this {role}'s has {asked.policy} "
                "(DUALMX_ON_WORKER_DEATH, DUALMX_ON_SERVER_DEATH)"
            )
        known = next((m for m in self._members.values() if m.incarnation == asked.life and m.role == role), None)
        if known is not None:
            self._reregister(known, link, request)
            return
        member = Member(link, request, role, asked.wanted_rank, asked.life, asked.address)
        if self._ledger.all_joined:
            if role == "worker" and self._attendance is not None:
                self._add_worker(member)
            else:
                self._replace(member)
            return
        if sum(m.role == role for m in self._members.values()) >= self._expected_members[role]:
            raise MXNetError(f"the job has its {self._expected_members[role]} {role}s already")
        self._members[link] = member
        if len(self._members) == sum(self._expected_members.values()):
            self._begin()

    def _reregister(self, member: Member, link: int, request: int) -> None:
        """A member registers again: its connection broke before the reply, or the scheduler was restarted."""
        if member.link == link:
            member.requests.append(request)
        else:
            self._move(member, link)
            member.request, member.requests = request, []
        if self._ledger.all_joined:
            if not (member.present or self._awaits_restart(member)):
                raise MXNetError(f"the job goes on without {member.name}: {member.end_reason}")
            self._revive(member)
            self._send_registration(member)

    def _move(self, member: Member, link: int) -> None:
        """A member has another connection."""
        del self._members[member.link]
        self._van.drop(member.link)
        member.link = link
        self._members[link] = member

    def _revive(self, member: Member) -> None:
        """A lost member is back."""
        if member.state != MemberState.ALIVE:
            member.state, member.crash = MemberState.ALIVE, ""
            self._notify(member, MemberEvent.BACK, f"{member.name} is back")

    def _replace(self, member: Member) -> None:
        """Let a new process take the place of one that died; it may end if that one had finished."""
        role = member.role
        for old in self._members.values():
            if old.role == role and old.state == MemberState.LOST and old.rank == member.requested_rank:
                self._mark_dead(old)
        places = [m for m in self._members.values() if m.role == role and self._awaits_restart(m)]
        chosen = next((m for m in places if m.rank == member.requested_rank), places[0] if places else None)
        if chosen is None:
            ranks = {m.rank: m for m in self._members.values() if m.role == role and m.state == MemberState.LEFT}
            if self._policy[role] == "wait" and member.requested_rank in ranks:
                self._reply(member.link, member.request, {"over": True})
                return
            raise MXNetError(
                f"the job has its {self._expected_members[role]} {role}s already, and waits for none to come back"
            )
        del self._members[chosen.link]
        member.rank, member.back = chosen.rank, True
        self._members[member.link] = member
        self._ledger.log_member(member)
        _log.warning("scheduler: %s is back", member.name)
        self._send_registration(member)
        self._notify(member, MemberEvent.BACK, f"{member.name} is back")

    def _add_worker(self, member: Member) -> None:
        """Admit one more worker to an elastic job, under a new number.

        It may end if all others have finished: servers end then, and need not hear of it in time.
        """
        last, others = self._last_gone, self._ledger.workers()
        later = any(
            m.state == MemberState.ALIVE or (m.state == MemberState.LOST and m.since > self._last_end) for m in others
        )
        if last is not None and last.state == MemberState.LEFT and not later:
            self._reply(member.link, member.request, {"over": True})
            return
        member.rank, member.back = 1 + max(m.rank for m in self._ledger.workers()), True
        self._members[member.link] = member
        self._ledger.log_member(member)
        _log.warning("scheduler: %s joins the job", member.name)
        self._notify(member, MemberEvent.NEW, f"{member.name} joins the job")
        self._send_registration(member)

    def _next_batch(self, link: int, request: int, asked: protocol.BatchRequest) -> None:
        """A worker has ended a round and requests the next."""
        member = self._members.get(link)
        if self._attendance is None or member is None or member.role != "worker":
            raise MXNetError("only the workers of an elastic job ask for batches")
        self._attendance.mark(asked.marks)
        reply = self._attendance.request_round(member.rank, asked.ended, (link, request))
        if reply is not None:
            self._reply(link, request, reply)
        else:
            self._asked = self._asked or time.monotonic()
            self._settle_batch()

    def _tell_history(self, link: int, request: int, asked: protocol.HistoryRequest) -> None:
        """Send a newcomer the history of rounds."""
        self._worker(link, "ask for batches")
        if self._attendance is None:
            raise MXNetError("only elastic jobs have batches")
        self._reply(link, request, self._attendance.page(asked.start))

    def _settle_batch(self) -> None:
        attendance = self._attendance
        if attendance is None or not self._ledger.all_joined:
            return
        if attendance.try_complete(m.rank for m in self._ledger.workers() if m.present):
            self._asked = 0.0
            self._ledger.log_round()
            for (link, request), reply in attendance.pop_replies():
                self._reply(link, request, reply)

    def _rejoin(self, link: int, request: int, asked: protocol.Rejoin) -> None:
        """A member reconnected."""
        if not self._ledger.all_joined:  # nobody is a member yet: its registration comes again behind this
            self._reply(link, request)
            return
        member = next((m for m in self._members.values() if (m.role, m.rank, m.incarnation) == asked), None)
        if member is None or not (member.present or self._awaits_restart(member)):
            if member is not None:
                member.parted = True
            reason = member.end_reason if member else "not a member"
            text = f"the job goes on without {asked.role} {asked.rank}: {reason}"
            self._fail(link, request, text, final=True, excluded=True)
            return
        if member.link != link:
            self._move(member, link)
        self._revive(member)
        self._reply(link, request, header(self._view()))

    def _view(self) -> protocol.MemberList:
        """Return the current state of all members, whatever notices a member missed."""
        ordered = sorted(self._members.values(), key=lambda m: m.rank)
        gone = [(m.role, m.rank, m.end_reason, m.state == MemberState.DEAD) for m in ordered if not m.present]
        workers = [m.rank for m in ordered if m.role == "worker" and (m.present or self._awaits_restart(m))]
        return protocol.MemberList([m.address for m in ordered if m.role == "server"], gone, workers)

    def _send_registration(self, member: Member) -> None:
        at, number = self._ledger.last
        meta = {**header(self._view()), "rank": member.rank, "back": member.back}
        if self._attendance is not None:
            meta["gone"] = []  # they may be many by now, and are none of a newcomer's concern
        meta["barriers"] = number if at == 0 else 0
        for request in (member.request, *member.requests):
            self._reply(member.link, request, meta)

    def _begin(self) -> None:
        for role, count in self._expected_members.items():
            members = [m for m in self._members.values() if m.role == role]
            free = set(range(count))
            for m in members:
                if m.requested_rank in free:
                    m.rank = m.requested_rank
                    free.discard(m.requested_rank)
            for m in members:
                if m.rank < 0:
                    m.rank = min(free)
                    free.discard(m.rank)
        _log.info("scheduler: all are here:\n%s", self.table())
        self._ledger.enter_all()
        for m in self._members.values():
            self._send_registration(m)

    def table(self) -> str:
        """The members, one a line: role, rank, host, and the port of a server."""
        ordered = sorted(self._members.values(), key=lambda m: (m.role, m.rank))
        rows = [("role", "rank", "host", "port")]
        rows += [(m.role, str(m.rank), str(m.address.get("host", "")), str(m.address.get("port", ""))) for m in ordered]
        wide = max(len(row[2]) for row in rows)
        return "\n".join(f"  {a:9} {b:>4}  {c:{wide}}  {d}".rstrip() for a, b, c, d in rows)

    def _barrier(self, link: int, request: int, asked: protocol.BarrierRequest) -> None:
        member, name = self._worker(link, "meet at a barrier"), asked.name
        if asked.skips and not self._knows_skipped(member):
            self._skipping[member.rank] = link, request, asked
            return
        place = asked.at, asked.number + (member.skipped if asked.skips else 0)
        if self._ledger.has_passed(name, place):
            self._reply(link, request)
            return
        label = name or f"#{place[1]}" + (f" after {place[0]} pushes" if place[0] else "")
        barrier = self._barriers.setdefault(label, Barrier(name, place))
        barrier.came[member.rank] = link, request
        barrier.early &= asked.idle
        self._settle(label)
        self._serve_skipping()

    def _knows_skipped(self, member: Member) -> bool:
        """Whether it is known how many barriers a worker skipped that came back before it pushed anything.

        They have been passed when somebody waits who has pushed, and those behind them have not, as they lack this
        worker. Nobody comes to them any more when all others have left them out, or are gone for good.
        """
        if member.skipped < 0:
            behind = any(not b.name and not b.early for b in self._barriers.values())
            others = (m for m in self._ledger.workers() if not m.early)
            if not behind and any(m.present or self._awaits_restart(m) for m in others):
                return False
            member.skipped = self._ledger.last[1]
            self._ledger.log_member(member)
        return True

    def _serve_skipping(self) -> None:
        """Let workers wait at the barriers whose numbers have become known."""
        for rank, (link, request, asked) in list(self._skipping.items()):
            member = self._members.get(link)
            if member is None or self._knows_skipped(member):
                del self._skipping[rank]
            if member is not None and rank not in self._skipping:
                self._barrier(link, request, asked)

    def _pass(self, link: int, request: int, skip: protocol.BarrierSkip) -> None:
        """Let a worker that came back skip some barriers: they no longer wait for it."""
        member = self._worker(link, "tell where they are")
        member.past, member.early = skip
        self._ledger.log_member(member)
        self._reply(link, request)
        for label in list(self._barriers):
            self._settle(label)
        self._serve_skipping()

    def _worker(self, link: int, what: str) -> Member:
        member = self._members.get(link)
        if member is None or member.role != "worker":
            raise MXNetError(f"only the workers of the job {what}")
        return member

    def _register_address(self, link: int, request: int, asked: protocol.AddressRequest) -> None:
        """Send all workers the addresses of the others, when all have registered theirs."""
        self._worker_addresses[self._worker(link, "meet").rank] = link, request, asked.address
        self._send_addresses()

    def _send_addresses(self) -> None:
        gone = [m for m in self._ledger.workers() if m.state in (MemberState.DEAD, MemberState.LEFT)]
        if len(self._worker_addresses) == self._expected_members["worker"]:
            addresses = [self._worker_addresses[rank][2] for rank in sorted(self._worker_addresses)]
            for link, request, _ in self._worker_addresses.values():
                self._reply(link, request, {"addresses": addresses})
        elif gone:
            for link, request, _ in self._worker_addresses.values():
                self._fail(link, request, gone[0].end_reason)
        else:
            return
        self._worker_addresses = {}

    def _assemble(self, link: int, request: int, asked: protocol.GroupRequest) -> None:
        """A worker of an elastic job requests the next group for collectives."""
        member = self._worker(link, "form groups")
        if self._assembly is None:
            raise MXNetError("only the workers of an elastic job form groups anew")
        if self._assembly.request_group(member.rank, asked.group, asked.address, (link, request), asked.timeout):
            self._notify(member, MemberEvent.ASKS, f"{member.name} wants to take part")
        self._settle_assembly()

    def _settle_assembly(self) -> None:
        if self._assembly is None or not self._ledger.all_joined:
            return
        workers = self._ledger.workers()
        here = [m.rank for m in workers if m.present]
        self._assembly.try_form(here, [m.rank for m in workers if m.state == MemberState.LEFT])
        for (link, request), reply in self._assembly.pop_replies():
            self._reply(link, request, reply)
        now = time.monotonic()
        for link, text in self._assembly.wait_notices(now, here):
            self._van.answer(link, notice(protocol.MemberNotice(MemberEvent.WAITS, "worker", 0, text)))
        for (link, request), text in self._assembly.pop_expired(now, here):
            self._fail(link, request, text)

    def _tell_coordinator(self, link: int, request: int, _: protocol.CoordinatorRequest) -> None:
        if self._coordinator is None:
            raise MXNetError("the scheduler of this job starts no coordinator")
        self._coordinates = self._coordinates or self._coordinator(self._expected_members["worker"])
        self._reply(link, request, {"address": self._coordinates})

    def _settle(self, label: str) -> None:
        barrier = self._barriers[label]
        missing = [m for m in self._expected() if not barrier.has(m)]
        if not missing:
            self._ledger.pass_barrier(barrier.name, barrier.place)
            for link, request in self._barriers.pop(label).came.values():
                self._reply(link, request)
            return
        gone = [m for m in missing if m.state in (MemberState.DEAD, MemberState.LEFT) and not self._awaits_restart(m)]
        if gone:
            for link, request in self._barriers.pop(label).came.values():
                self._fail(link, request, gone[0].end_reason)

    def _expected(self) -> list[Member]:
        """The workers for whom barriers wait."""
        workers = self._ledger.workers()
        if self._policy["worker"] == "wait" and any(m.back for m in workers):
            # One that came back may have skipped a barrier, so that it or the others end with one less.
            return [m for m in workers if m.state != MemberState.LEFT]
        if self._policy["worker"] == "continue":
            return [m for m in workers if m.state != MemberState.DEAD]
        if self._attendance is not None:
            return [m for m in workers if m.present and self._takes_part(m)]
        return workers

    def _tell_who_is_missing(self, now: float) -> None:
        """Notify workers that wait long at a barrier who is missing."""
        self._since = {label: self._since.get(label, now) for label in self._barriers}
        for label in [b for b, since in self._since.items() if now - since >= WAIT_LOG_SECONDS]:
            barrier, self._since[label] = self._barriers[label], now
            lacking = few([m.name for m in self._expected() if not barrier.has(m)])
            text = f"the barrier {label} still lacks {lacking}"
            for link, request in barrier.came.values():
                self._van.answer(link, notice(protocol.WaitNotice(text, request)))

    def _takes_part(self, member: Member) -> bool:
        """Whether a worker of an elastic job is no newcomer, which waits for nobody and for which nobody waits."""
        assert self._attendance is not None
        number = self._attendance.number
        return member.rank in self._attendance.members if number else member.rank < self._expected_members["worker"]

    def _leave(self, link: int) -> None:
        member = self._members.get(link)
        if member is not None and member.state == MemberState.ALIVE:
            member.state = MemberState.LEFT
            self._ledger.log_member(member)
            self._announce_death(member, f"{member.name} has left the job", False, time.monotonic())

    def _stays_or_leaves(self, link: int, leave: protocol.Leave) -> dict[str, Any]:
        """Reply to a server of an elastic job that must not leave yet: workers that it has not heard of."""
        member, workers = self._members.get(link), self._ledger.workers()
        serves = self._attendance is not None and member is not None and member.role == "server"
        if not serves or not any(m.present or self._awaits_restart(m) for m in workers):
            self._leave(link)
            return {}
        newest = -1 if leave.newest is None else leave.newest
        return {"workers": [m.rank for m in workers if m.state == MemberState.ALIVE and m.rank > newest]}

    def _notify(self, about: Member, event: MemberEvent, text: str, dead: bool | None = None) -> None:
        note = header(protocol.MemberNotice(event, about.role, about.rank, text, about.address, dead))
        for m in self._members.values():
            if m.state == MemberState.ALIVE and m is not about:
                self._van.answer(m.link, Message(NOTICE, 0, note))

    def _announce_death(self, about: Member, text: str, dead: bool, at: float) -> None:
        """Announce a death, possibly an earlier one that is certain only now, or a leave."""
        about.end_reason = text
        if about.role == "worker" and at >= self._last_end:
            self._last_gone, self._last_end = about, at
        self._notify(about, MemberEvent.GONE, text, dead)
        for label in list(self._barriers):
            self._settle(label)
        self._serve_skipping()
        if self._worker_addresses:
            self._send_addresses()
        self._settle_batch()
        self._settle_assembly()
        self._maybe_over()

    def _maybe_over(self) -> None:
        if not any(m.present or self._awaits_restart(m) for m in self._members.values()):
            self.over.set()

    # -- the scheduler's own thread

    def run(self, start: float) -> None:
        """Serve until the job is over.

        Raises:
            MXNetError: after `start` seconds members were still missing, or the journal cannot be written.
        """
        until = time.monotonic() + start
        while not self.over.wait(0.1):
            with self._lock:
                if not self._ledger.all_joined:
                    # Without servers, a script that never joins is none of the scheduler's concern.
                    if time.monotonic() > until and (self._members or self._expected_members["server"]):
                        self._refuse(start)
                    continue
                self._watch()
                ended = not any(m.present or self._awaits_restart(m) for m in self._ledger.workers())
                # Servers leave when no worker will come any more.
                ended = ended or any(m.role == "server" and m.state == MemberState.LEFT for m in self._members.values())
                if ended:
                    for lost in [m for m in self._members.values() if m.state == MemberState.LOST]:
                        self._mark_dead(lost)
            if ended:
                self.over.wait(5.0 + len(self._members) / 25)  # servers end by themselves, when they have heard of all
                break
        until = time.monotonic() + PARTING
        while self._policy["server"] == "wait" and time.monotonic() < until and not self._all_parted():
            time.sleep(0.01)
        if self.failed:
            raise MXNetError(self.failed)

    def _all_parted(self) -> bool:
        """Whether no member can repeat its goodbye because the reply was lost."""
        with self._lock:
            return all(m.parted or m.state != MemberState.LEFT or link < 0 for link, m in self._members.items())

    def close(self) -> None:
        """Drop the job, when all members know that it is over."""
        if not self.failed:
            self._ledger.close()

    def _watch(self) -> None:
        """Declare lost members dead after their time, and fail what waits for members that did not return."""
        now = time.monotonic()
        for member in list(self._members.values()):
            if member.state == MemberState.LOST and now - member.since > member.grace_seconds:
                self._mark_dead(member)
        for label in list(self._barriers):
            self._settle(label)
        self._serve_skipping()
        self._fail_mismatched_barriers(now)
        self._tell_who_is_missing(now)
        self._settle_assembly()
        self._maybe_over()

    def _fail_mismatched_barriers(self, now: float) -> None:
        """End barriers that all workers wait at for good, because they do not wait at the same one."""
        workers = [m for m in self._ledger.workers() if m.state != MemberState.LEFT]
        at = {rank: label for label, barrier in self._barriers.items() for rank in barrier.came}
        if len(self._barriers) < 2 or not all(m.state == MemberState.ALIVE and m.rank in at for m in workers):
            self._mismatched_since = 0.0
        elif not self._mismatched_since:
            self._mismatched_since = now
        elif now - self._mismatched_since > MISMATCH_SECONDS:
            self._mismatched_since = 0.0
            places = few([f"worker {rank} at the barrier {label}" for rank, label in sorted(at.items())], "; ")
            text = (
                f"the workers wait for each other at different places: {places}; all must make the same calls in order"
            )
            for label in list(self._barriers):
                for link, request in self._barriers.pop(label).came.values():
                    self._fail(link, request, text)

    def _missing(self) -> str:
        """Return the names of missing members, if all others have registered."""
        wishes = {(m.role, m.requested_rank) for m in self._members.values()}
        all_ = [(role, rank) for role, count in self._expected_members.items() for rank in range(count)]
        if not wishes <= set(all_) or len(wishes) < len(self._members):
            return ""
        missing = [f"{role} {rank}" for role, rank in all_ if (role, rank) not in wishes]
        return f"; missing: {few(missing)}: see what they wrote last"

    def _refuse(self, start: float) -> None:
        here = {role: sum(m.role == role for m in self._members.values()) for role in self._expected_members}
        text = (
            f"the job did not come together within {start:g} s (DUALMX_START_TIMEOUT): "
            + ", ".join(f"{here[role]} of {count} {role}s" for role, count in self._expected_members.items())
            + self._missing()
        )  # fmt: skip
        for m in list(self._members.values()):
            for request in (m.request, *m.requests):
                self._fail(m.link, request, text)
        raise MXNetError(text)


BUSY = 10.0  # seconds that the port of a scheduler that comes back may be in use


def start_scheduler(job: Job, coordinator: Callable[[int], str] | None = None) -> Callable[[], None]:
    """Begin to be the scheduler of a job; returns what serves until the job is over.

    Args:
        job: the job.
        coordinator: see `Scheduler`.

    Raises:
        MXNetError: the port is taken.
    """
    enable_logging()
    returns = job.journal and job.on_server_death == "wait"
    van = job.van()
    journal = (
        Journal(job.journal, 0, job.durable, "scheduler", job.restart_timeout, van.send_heartbeats) if returns else None
    )
    scheduler = Scheduler(
        van, job.workers, job.servers, job.policy, job.restart_timeout, coordinator, journal, job.group
    )
    back = scheduler.restore(max(job.heartbeat_timeout, MIN_RECONNECT_SECONDS))
    if back:
        _log.warning("scheduler: took over from the journal in %s", job.journal)
    van.on_message, van.on_down = (
        with_message_drops(scheduler.on_message, job.drop_percent, "scheduler"),
        scheduler.on_down,
    )
    van.start()
    try:
        _listen(van, job, BUSY if back else 0.0)
    except BaseException:
        van.close()
        raise

    def serve() -> None:
        try:
            scheduler.run(job.start)
        finally:
            van.close()
        scheduler.close()

    return serve


def _listen(van: SocketVan, job: Job, timeout: float) -> None:
    """Listen where all others know this process, once that is free: the system may have used the port meanwhile."""
    until = time.monotonic() + timeout
    while True:
        try:
            van.listen(job.bind_host(job.uri), job.port)
            return
        except AddressInUse:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def run_scheduler(job: Job, coordinator: Callable[[int], str] | None = None) -> None:
    """Be the scheduler of a job until it is over.

    Raises:
        MXNetError: the port is taken, or the job does not come together in time.
    """
    start_scheduler(job, coordinator)()


__all__ = ["MIN_RECONNECT_SECONDS", "Scheduler", "run_scheduler", "start_scheduler"]
