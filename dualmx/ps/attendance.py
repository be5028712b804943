"""Which workers take part in each batch of an elastic job: decided by the scheduler, one batch after the other.

A batch of a worker counts as a whole or not at all. A worker that has ended it has handed all its pushes to the
servers; when all that take part have ended it, died or left, it is settled whose pushes count, and who takes part in
the next one: those who are there, and those who came meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .frame import Message

Request = tuple[int, int]  # (link, number)
NEW = -1  # the last batch of a worker that has ended none


class Attendance:
    """Settles batches.

    Attributes:
        number: of the batch under way; 0 before the first.
        members: ranks that take part in it.
        used: ranks whose pushes counted in the batch before.
        runs: `[first batch, members]`, and `short`: `[batch, ranks that counted]` where members were missing.

    Example:
        >>> a = Attendance()
        >>> a.ask(0, 0, (10, 1)), a.ask(1, 0, (11, 1))
        (None, None)
        >>> a.settle({0, 1}) and a.answers()
        [((10, 1), {'batch': 1, 'members': [0, 1], 'used': []}), ((11, 1), {'batch': 1, 'members': [0, 1], 'used': []})]
    """

    def __init__(self) -> None:
        self.number = 0
        self.members: list[int] = []
        self.used: list[int] = []
        self.runs: list[list[Any]] = []
        self.short: list[list[Any]] = []
        self._waiting: dict[int, tuple[int, Request]] = {}  # rank -> (last batch, request)
        self._answers: list[tuple[Request, dict[str, Any]]] = []

    def ask(self, rank: int, ended: int, request: Request) -> dict[str, Any] | None:
        """Worker `rank` has ended batch `ended` (`NEW` for none) and asks for the next; the answer, if there is one."""
        if rank in self.members and ended < self.number:
            return self._told(ended)
        self._waiting[rank] = (ended, request)
        return None

    def settle(self, present: Iterable[int]) -> bool:
        """Whether the batch under way is over, now that the workers `present` are there; then they begin the next."""
        here = set(present)
        expected = here.intersection(self.members) if self.number else here
        members = sorted(here.intersection(self._waiting))
        if not members or not expected <= self._waiting.keys():
            return False
        ended = {rank for rank, (last, _) in self._waiting.items() if last == self.number and self.number}
        waiting, self._waiting = self._waiting, {}
        self.begin(members, sorted(ended.intersection(self.members)))
        self._answers = [(request, self._told(waiting[r][0])) for r in members for request in [waiting[r][1]]]
        return True

    def begin(self, members: list[int], used: list[int]) -> None:
        """Begin the next batch, after one in which the pushes of `used` count."""
        if self.number and used != self.members:
            self.short.append([self.number, used])
        self.number += 1
        self.used = used
        if members != self.members:
            self.runs.append([self.number, members])
        self.members = members

    def state(self) -> dict[str, Any]:
        """What `restore` reads."""
        return {
            "number": self.number, "members": self.members, "used": self.used, "runs": self.runs, "short": self.short,
        }  # fmt: skip

    def restore(self, record: Message) -> None:
        """Be where the attendance was that told its `state`."""
        self.number, self.members = record.take("number", int), record.take("members", list)
        self.used, self.runs = record.take("used", list), record.take("runs", list)
        self.short = record.take("short", list)

    def answers(self) -> list[tuple[Request, dict[str, Any]]]:
        """The answers to those who begin the batch, once."""
        answers, self._answers = self._answers, []
        return answers

    def _told(self, ended: int) -> dict[str, Any]:
        told = {"batch": self.number, "members": self.members, "used": self.used}
        return told if ended >= 0 else {**told, "runs": self.runs, "short": self.short}

    def waits_for(self) -> list[int]:
        """Members that have not ended the batch under way."""
        return [r for r in self.members if r not in self._waiting]


__all__ = ["NEW", "Attendance"]
