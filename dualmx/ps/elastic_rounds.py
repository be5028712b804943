"""Scheduler side of elastic jobs: rounds, and the formation of worker groups.

An elastic round of a worker counts completely or not at all. A worker that has ended it has handed all its pushes to
the servers. When every member has ended it, died or left, the scheduler decides whose pushes count and who takes part
next: those who are there, and those who joined meanwhile. A new group for collectives is formed when all live members
of the former one have asked for it. Newcomers rank after them, so rank 0 knows the former state while anyone of it is
left.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import takewhile
from operator import itemgetter
from typing import Any, NamedTuple

from ..core.errors import FormatError
from .member import few
from .protocol import BatchReply, Change, GroupReply, HistoryPage, Mark, RoundsRecord, header, parse
from .van.frame import Message

Request = tuple[int, int]  # (link, number)
NEWCOMER = -1  # the last batch of a worker that has ended none
PAGE = 20_000  # ranks that one message of the history names, about
MOST_MARKS = 256
_batch = itemgetter(0)


def follow(members: list[int], change: Change) -> list[int]:
    """The members of a batch, after those of the batch before."""
    _, joined, went, _ = change
    return sorted({*members, *joined}.difference(went)) if joined or went else members


class ElasticRounds:
    """Settles batches.

    What a newcomer must know of former batches begins with the first one of an epoch, of which workers tell by marks;
    what was before is forgotten. It is told in pages, since each change would make a single message longer.

    Attributes:
        number: of the batch under way; 0 before the first.
        members: ranks that take part in it.
        counted: ranks whose pushes counted in the batch before.
        since: first batch that the history tells of, and `before`: the members of the one before that.
        history: changes from then on.
        marks: by the name of an order of samples, the epoch under way and its first batch.

    Example:
        >>> a = ElasticRounds()
        >>> a.request_round(0, 0, (10, 1)), a.request_round(1, 0, (11, 1))
        (None, None)
        >>> a.try_complete({0, 1}) and a.pop_replies()
        [((10, 1), {'batch': 1, 'members': [0, 1], 'used': []}), ((11, 1), {'batch': 1, 'members': [0, 1], 'used': []})]
    """

    def __init__(self) -> None:
        self.number = 0
        self.members: list[int] = []
        self.counted: list[int] = []
        self.since = 1
        self.before: list[int] = []
        self.history: list[Change] = []
        self.marks: dict[str, tuple[int, int]] = {}
        self._waiting: dict[int, tuple[int, Request]] = {}  # rank -> (last batch, request)
        self._answers: list[tuple[Request, dict[str, Any]]] = []

    def request_round(self, rank: int, ended: int, request: Request) -> dict[str, Any] | None:
        """Record that worker `rank` ended round `ended` (`NEW` for none) and requests the next; return any reply."""
        if rank in self.members and ended < self.number:
            return self._answer()
        self._waiting[rank] = (ended, request)
        return None

    def try_complete(self, present: Iterable[int]) -> bool:
        """Complete the round if no member is missing, given the workers `present`; then the next one starts."""
        here = set(present)
        expected = here.intersection(self.members) if self.number else here
        members = sorted(here.intersection(self._waiting))
        if not members or not expected <= self._waiting.keys():
            return False
        ended = {rank for rank, (last, _) in self._waiting.items() if last == self.number and self.number}
        waiting, self._waiting = self._waiting, {}
        self.start_round(members, sorted(ended.intersection(self.members)))
        self._answers = [(waiting[rank][1], self._answer()) for rank in members]
        return True

    def start_round(self, members: list[int], used: list[int]) -> None:
        """Begin the next batch, after one in which the pushes of `counted` count."""
        missing = sorted({*self.members}.difference(used)) if self.number else []
        if missing:
            last = self.history.pop() if self.history and self.history[-1][0] == self.number else None
            self.history.append((*last[:3], missing) if last else (self.number, [], [], missing))
        self.number += 1
        self.counted = used
        if members != self.members:
            here, there = set(members), set(self.members)
            self.history.append((self.number, sorted(here - there), sorted(there - here), []))
        self.members = members
        self._forget()

    def mark(self, marks: Iterable[Mark]) -> None:
        """Workers have begun epochs of orders of samples.

        Raises:
            FormatError: too many names.
        """
        for name, epoch, first in marks:
            if len(self.marks) >= MOST_MARKS and name not in self.marks:
                raise FormatError(f"the workers of this job use more than {MOST_MARKS} orders of samples")
            self.marks[name] = max(self.marks.get(name, (0, 0)), (epoch, first))

    def _forget(self) -> None:
        """Forget what no newcomer must know."""
        first = min([self.number, *(first for _, first in self.marks.values())])
        past = list(takewhile(lambda change: change[0] < first, self.history))
        for change in past:
            self.before = follow(self.before, change)
        del self.history[: len(past)]
        self.since = max(self.since, first)

    def page(self, start: int) -> dict[str, Any]:
        """Changes from batch `start` on, as far as one message goes; `next`: where the following one begins, or 0.

        If some were forgotten since then, the history begins again: with `since`, the members `before` and the `marks`.
        """
        facts: tuple[Any, ...] = ()
        if start < self.since:
            facts = self.since, self.before, [[name, *mark] for name, mark in self.marks.items()]
        first = end = bisect_left(self.history, start, key=_batch)
        size = 0
        while end < len(self.history) and size < PAGE:
            size += 1 + sum(map(len, self.history[end][1:]))  # type: ignore[arg-type]
            end += 1
        following = self.history[end][0] if end < len(self.history) else 0
        return header(HistoryPage(self.history[first:end], following, *facts))

    def records(self) -> Iterator[dict[str, Any]]:
        """What `restore` reads, in its order."""
        here = header(RoundsRecord(self.number, self.members, self.counted))
        start = 0
        while True:
            page = self.page(start)
            yield {**here, **page}
            start = page["next"]
            if not start:
                return

    def restore(self, here: RoundsRecord, message: Message) -> None:
        """Restore the state that one of `records` describes."""
        self.number, self.members, self.counted = here
        page = parse(HistoryPage, message.meta)
        if page.since is not None:
            self.since, self.before, self.history = page.since, page.before or [], []
            self.marks = page.first_batches()
        self.history += page.changes

    def pop_replies(self) -> list[tuple[Request, dict[str, Any]]]:
        """Return the replies to those who start the round, once."""
        answers, self._answers = self._answers, []
        return answers

    def _answer(self) -> dict[str, Any]:
        return header(BatchReply(self.number, self.members, self.counted))

    def missing(self) -> list[int]:
        """Members that have not ended the current round."""
        return [r for r in self.members if r not in self._waiting]


WAIT_LOG_SECONDS = 10.0  # seconds after which those who wait are told for whom


class _GroupRequest(NamedTuple):
    request: Request
    address: dict[str, Any]
    since: float
    timeout: float  # 0 for no limit


class GroupFormation:
    """Forms groups, one after the other.

    Args:
        least: workers that a group has at least; until they are there, all wait.
        most: workers that it has at most, 0 for any number; others wait until one of it is gone.

    Attributes:
        number: of the group that was formed last; 0 before the first.
        members: numbers of its workers, in the order of their ranks.

    Example:
        >>> a = GroupFormation()
        >>> a.request_group(0, 0, {"port": 1}, (10, 1)), a.request_group(1, 0, {"port": 2}, (11, 1))
        (True, True)
        >>> a.try_form({0, 1})
        >>> a.pop_replies()[1]
        ((11, 1), {'group': 1, 'workers': [0, 1], 'addresses': [{'port': 1}, {'port': 2}]})
    """

    def __init__(self, least: int = 1, most: int = 0) -> None:
        self._least, self._most = least, most
        self.number = 0
        self.members: list[int] = []
        self._waiting: dict[int, _GroupRequest] = {}
        self._answers: list[tuple[Request, dict[str, Any]]] = []
        self._logged_at = 0.0

    def request_group(
        self, rank: int, number: int, address: dict[str, Any], request: Request, timeout: float = 0.0
    ) -> bool:
        """Record that worker `rank` at `address` leaves group `number`; return whether a newcomer has a place."""
        self.number = max(self.number, number)  # another scheduler may have formed it
        self._waiting[rank] = _GroupRequest(request, address, time.monotonic(), timeout)
        return rank not in self.members and not 0 < self._most <= len(self.members)

    def try_form(self, present: Iterable[int], left: Iterable[int] = ()) -> None:
        """Form the next group if nobody is missing among the workers `present`; `left`: those that said goodbye."""
        here = set(present)
        self._waiting = {rank: asked for rank, asked in self._waiting.items() if rank in here}
        if not self._waiting or self.missing(here):
            return
        if self.members and not here.intersection(self.members) and set(left).intersection(self.members):
            # The last group has ended its work; those who come now would begin it anew.
            self._answers += [(asked.request, {"over": True}) for asked in self._waiting.values()]
            self._waiting = {}
        elif len(self._waiting) >= self._least:
            self.number += 1
            before = [rank for rank in self.members if rank in self._waiting]
            self.members = (before + sorted(self._waiting.keys() - set(before)))[: self._most or None]
            addresses = [self._waiting[rank].address for rank in self.members]
            reply = header(GroupReply(self.number, self.members, addresses))
            self._answers += [(self._waiting.pop(rank).request, reply) for rank in self.members]

    def missing(self, present: Iterable[int]) -> list[int]:
        """Workers without which the next group is not formed."""
        here = set(present)
        return sorted((here.intersection(self.members) if self.members else here) - self._waiting.keys())

    def pop_replies(self) -> list[tuple[Request, dict[str, Any]]]:
        """Return the replies to the requests, once."""
        answers, self._answers = self._answers, []
        return answers

    def pop_expired(self, now: float, present: Iterable[int]) -> list[tuple[Request, str]]:
        """Requests that have waited too long, and an error text for each; they are forgotten."""
        lacks, hasty = self._lacks(present), self._hasty(present)
        expired = {r: a for r, a in hasty.items() if a.timeout and now - a.since > a.timeout}
        for rank in expired:
            del self._waiting[rank]
        text = "{} did not come to the next group within {:g} s (DUALMX_DIST_TIMEOUT)"
        return [(a.request, text.format(lacks, a.timeout)) for a in expired.values()]

    def wait_notices(self, now: float, present: Iterable[int]) -> list[tuple[int, str]]:
        """Return links of workers that have waited long, at intervals, and whom they wait for."""
        waiting = [a.request[0] for a in self._hasty(present).values() if now - a.since > WAIT_LOG_SECONDS]
        if not waiting or now - self._logged_at < WAIT_LOG_SECONDS:
            return []
        self._logged_at = now
        return [(link, self._lacks(present)) for link in waiting]

    def _hasty(self, present: Iterable[int]) -> dict[int, _GroupRequest]:
        """Workers that do not wait for a place in a full group."""
        full = 0 < self._most <= len(set(present).intersection(self.members))
        return {r: a for r, a in self._waiting.items() if not full or r in self.members}

    def _lacks(self, present: Iterable[int]) -> str:
        short = self._least - len(self._waiting)
        missing = few([f"worker {rank}" for rank in self.missing(present)])
        return missing or f"{short} more of the {self._least} that a group needs"


__all__ = ["ElasticRounds", "GroupFormation", "NEWCOMER", "follow"]
