"""Durable scheduler state: members, passed barriers and elastic rounds, logged before they are announced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..core.errors import MXNetError
from . import protocol
from .elastic_rounds import ElasticRounds
from .journal import Journal
from .member import Member
from .protocol import MemberState, header, parse
from .van.frame import Message

Place = tuple[int, int]  # of a barrier without a name: where in their scripts workers are, and the how manieth there


class SchedulerState:
    """Members, passed barriers and rounds of a job; each change is logged before it is announced.

    Args:
        workers, servers: members that the job has.
        elastic: whether the job settles batches.
        journal: where changes are written down; nowhere without one.

    Attributes:
        expected_members: members that the job has, by role.
        members: by link; a number below 0 stands for the connection of one that has not connected to this scheduler.
        all_joined: whether all members have been there.
        passed: names of the barriers that were passed, and `last`: position and number of the last one without a name.
        elastic_rounds: settles the batches of an elastic job.

    Example:
        >>> ledger = SchedulerState(2, 1)
        >>> ledger.pass_barrier("", (0, 1))
        >>> ledger.has_passed("", (0, 1)), ledger.has_passed("", (0, 2)), ledger.all_joined
        (True, False, False)
    """

    def __init__(self, workers: int, servers: int, elastic: bool = False, journal: Journal | None = None):
        self._journal = journal
        self.expected_members = {"worker": workers, "server": servers}
        self.members: dict[int, Member] = {}
        self.all_joined = False
        self.passed: set[str] = set()
        self.last = (0, 0)
        self.elastic_rounds = ElasticRounds() if elastic else None

    def workers(self) -> list[Member]:
        """The members that are workers."""
        return [m for m in self.members.values() if m.role == "worker"]

    # -- changes

    def log_job(self) -> None:
        """Write down what job it is."""
        self._write(protocol.JobRecord(self.expected_members))

    def enter_all(self) -> None:
        """Write down that all members have been there: one record, so that a job has begun for all or for none."""
        self.all_joined = True
        self._write(self._begin())

    def log_member(self, member: Member) -> None:
        """Write down a member, or what has become of it."""
        self._write(member.record())

    def log_round(self) -> None:
        """Log the round that started, and the epochs, which workers do not report to the next scheduler."""
        assert self.elastic_rounds is not None
        here, marks = self.elastic_rounds, [(name, *mark) for name, mark in self.elastic_rounds.marks.items()]
        self._write(protocol.BatchRecord(here.members, here.counted, marks))

    def pass_barrier(self, name: str, place: Place) -> None:
        """A barrier is passed: that of a name, or without one that of a place."""
        if name:
            self.passed.add(name)
        else:
            self.last = max(self.last, place)
        self._write(protocol.BarrierRecord([name] if name else [], self.last))

    def has_passed(self, name: str, place: Place) -> bool:
        """Whether the barrier of a name, or the one of a place where there is no name, was passed."""
        return name in self.passed or (not name and place <= self.last)

    def _write(self, record: Any) -> None:
        if self._journal is not None and self._journal.append(header(record)):
            self._journal.snapshot((meta, []) for meta in self._snapshot())

    def _begin(self) -> protocol.BeginRecord:
        return protocol.BeginRecord([header(m.record()) for m in self.members.values()])

    def _snapshot(self) -> Iterator[dict[str, Any]]:
        """Yield the complete state for a new journal."""
        yield header(protocol.JobRecord(self.expected_members))
        if self.all_joined:
            yield header(self._begin())
        yield header(protocol.BarrierRecord(sorted(self.passed), self.last))
        if self.elastic_rounds is not None and self.elastic_rounds.number:
            yield from self.elastic_rounds.records()

    # -- and back

    def replay(self) -> None:
        """Be where the scheduler was that wrote the journal.

        Raises:
            MXNetError: the journal is that of another job.
        """
        if self._journal is None:
            return
        for record in self._journal.replay():
            with self._journal.content.parsing():
                self._replay(record)

    def _replay(self, message: Message) -> None:
        match protocol.SCHEDULER_RECORDS.read(message):
            case protocol.JobRecord(wanted) if wanted != self.expected_members:
                raise MXNetError(
                    f"DUALMX_JOURNAL: the folder holds a job of {wanted['worker']} workers and {wanted['server']} "
                    f"servers, this one has {self.expected_members['worker']} and {self.expected_members['server']}; "
                    "give an empty folder"
                )
            case protocol.BeginRecord(members):
                self.all_joined = True
                for fields in members:
                    self._put_back(parse(protocol.MemberRecord, fields))
            case protocol.MemberRecord() as member:
                self._put_back(member)
            case protocol.BarrierRecord(passed, last):
                self.passed.update(passed)
                self.last = max(self.last, last)
            case protocol.BatchRecord(members, used, marks) if self.elastic_rounds is not None:
                self.elastic_rounds.mark(marks)
                self.elastic_rounds.start_round(members, used)
            case protocol.RoundsRecord() as here if self.elastic_rounds is not None:
                self.elastic_rounds.restore(here, message)

    def _put_back(self, record: protocol.MemberRecord) -> None:
        member = Member.from_record(record, min([-1, *self.members]) - 1)
        before = [k for k, m in self.members.items() if m.name == member.name]
        for link in before:
            del self.members[link]
        self.members[member.link] = member

    def close(self) -> None:
        """Delete the journal at the end of the job, unless a member died: then another may continue."""
        if self._journal is not None and not any(m.state == MemberState.DEAD for m in self.members.values()):
            self._journal.remove()


__all__ = ["SchedulerState"]
