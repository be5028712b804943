"""A member of the job as the scheduler knows it, and its journal records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .heartbeat import WorkerStatus
from .protocol import MemberRecord, MemberState

PRESENT = (MemberState.ALIVE, MemberState.LOST)
NAMED = 8  # members that one text names at most


def few(names: Sequence[str], between: str = ", ") -> str:
    """The names of the first members, and how many more there are.

    Example:
        >>> few(["0", "1"]), few([str(rank) for rank in range(1000)])
        ('0, 1', '0, 1, 2, 3, 4, 5, 6, 7 and 992 more')
    """
    more = len(names) - NAMED
    return between.join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")


def with_remedy(text: str, role: str, policy: str) -> str:
    """Return a process's death as text, with the remedy if nobody replaces it."""
    if policy != "fail" or "DUALMX_ON_" in text:
        return text
    kind = "server" if role == "scheduler" else role
    return (
        f"{text}; its own last lines may tell why; for another process in its place start the job with "
        f"dualmx-launch --on-{kind}-death wait (DUALMX_ON_{kind.upper()}_DEATH)"
    )


class Member:
    """A worker or server.

    Attributes:
        link, request: its connection, and the request by which it registered.
        requested_rank: the rank that it asked for.
        incarnation: tells it from others that have or had its rank.
        state: whether it is there.
        since: when it was lost or died, and `grace_seconds`: seconds that it may be lost.
        end_reason: why it is gone. crash: what it said itself.
        status: what it tells with its signs of life.
        requests: numbers of further requests by which it registered, by this connection.
        back: it took the place of one that died.
        past: position, see `KVWorker.position`, up to which it comes to no barrier, as it was back later; -1 for none.
        parted: it knows that its leave was taken note of.
        early: it comes to no barrier at which others wait that have pushed nothing.
        skipped: barriers without a name before which nothing is pushed, which it left out; -1 while that is not known.
    """

    def __init__(self, link: int, request: int, role: str, wanted_rank: int, life: int, address: dict[str, Any]):
        self.link, self.request, self.role, self.requested_rank, self.address = (
            link,
            request,
            role,
            wanted_rank,
            address,
        )
        self.incarnation = life
        self.requests: list[int] = []
        self.back = self.early = self.parted = False
        self.past = self.skipped = -1
        self.rank = -1
        self.state = MemberState.ALIVE
        self.since = self.grace_seconds = 0.0
        self.end_reason = ""
        self.crash = ""
        self.status = WorkerStatus()

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.role} {self.rank}"

    @property
    def present(self) -> bool:
        """Whether it takes part: it is alive, or may be back at any moment."""
        return self.state in PRESENT

    def status_dict(self, now: float) -> dict[str, Any]:
        """Return its status for `dualmx status`."""
        return {
            "role": self.role, "rank": self.rank, "state": self.state, "address": self.address, "end": self.end_reason,
            "since": round(now - self.since, 1) if self.since else 0.0, "pulse": self.status.as_dict(now),
        }  # fmt: skip

    def record(self) -> MemberRecord:
        """What another scheduler must know of it."""
        return MemberRecord(
            self.role, self.rank, self.incarnation, self.address, self.state, self.end_reason, self.back, self.past,
            self.early, self.skipped,
        )  # fmt: skip

    @staticmethod
    def from_record(record: MemberRecord, link: int) -> Member:
        """Return the member of a record; `link` is a placeholder until it connects."""
        made = Member(link, 0, record.role, record.rank, record.life, record.address)
        made.rank, made.state, made.end_reason, made.back = record.rank, record.state, record.end, record.back
        made.past, made.early, made.skipped = record.past, record.early, record.skipped
        return made


__all__ = ["PRESENT", "Member", "few", "with_remedy"]
