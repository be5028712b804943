"""Groups of workers of an elastic job that exchange arrays with each other: formed anew when some are gone or come.

A group is formed when all workers of the one before it that are still there have asked for the next. Others who have
asked by then take part as well, after those: the first one of a group knows what the group before it did, as long as
anybody of that is left.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from .member import few

Request = tuple[int, int]  # (link, number)
WAIT_LOG_SECONDS = 10.0  # seconds after which those who wait are told for whom


class _GroupRequest(NamedTuple):
    request: Request
    address: dict[str, Any]
    since: float
    patience: float  # 0 for no limit


class GroupFormation:
    """Forms groups, one after the other.

    Args:
        least: workers that a group has at least; until they are there, all wait.
        most: workers that it has at most, 0 for any number; others wait until one of it is gone.

    Attributes:
        number: of the group that was formed last; 0 before the first.
        members: numbers of its workers, in the order of their ranks.

    Example:
        >>> a = Assembly()
        >>> a.ask(0, 0, {"port": 1}, (10, 1)), a.ask(1, 0, {"port": 2}, (11, 1))
        (True, True)
        >>> a.settle({0, 1})
        >>> a.answers()[1]
        ((11, 1), {'group': 1, 'workers': [0, 1], 'addresses': [{'port': 1}, {'port': 2}]})
    """

    def __init__(self, least: int = 1, most: int = 0) -> None:
        self._least, self._most = least, most
        self.number = 0
        self.members: list[int] = []
        self._waiting: dict[int, _GroupRequest] = {}
        self._answers: list[tuple[Request, dict[str, Any]]] = []
        self._told = 0.0

    def request_group(
        self, rank: int, number: int, address: dict[str, Any], request: Request, patience: float = 0.0
    ) -> bool:
        """Worker `rank`, which is at `address`, leaves group `number`; whether it is a newcomer who finds room."""
        self.number = max(self.number, number)  # another scheduler may have formed it
        self._waiting[rank] = _GroupRequest(request, address, time.monotonic(), patience)
        return rank not in self.members and not 0 < self._most <= len(self.members)

    def try_form(self, present: Iterable[int], left: Iterable[int] = ()) -> None:
        """Form the next group if nobody is missing, of the workers `present`; `left`: those who took their leave."""
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
            told = {"group": self.number, "workers": self.members, "addresses": addresses}
            self._answers += [(self._waiting.pop(rank).request, told) for rank in self.members]

    def missing(self, present: Iterable[int]) -> list[int]:
        """Workers without which the next group is not formed."""
        here = set(present)
        return sorted((here.intersection(self.members) if self.members else here) - self._waiting.keys())

    def pop_replies(self) -> list[tuple[Request, dict[str, Any]]]:
        """The answers to those who asked, once."""
        answers, self._answers = self._answers, []
        return answers

    def pop_expired(self, now: float, present: Iterable[int]) -> list[tuple[Request, str]]:
        """Requests that have waited too long, and an error text for each; they are forgotten."""
        lacks, hasty = self._lacks(present), self._hasty(present)
        late = {r: a for r, a in hasty.items() if a.patience and now - a.since > a.patience}
        for rank in late:
            del self._waiting[rank]
        text = "{} did not come to the next group within {:g} s (DUALMX_DIST_TIMEOUT)"
        return [(a.request, text.format(lacks, a.patience)) for a in late.values()]

    def wait_notices(self, now: float, present: Iterable[int]) -> list[tuple[int, str]]:
        """Links of those who have waited long, from time to time, and for whom they wait."""
        late = [a.request[0] for a in self._hasty(present).values() if now - a.since > WAIT_LOG_SECONDS]
        if not late or now - self._told < WAIT_LOG_SECONDS:
            return []
        self._told = now
        return [(link, self._lacks(present)) for link in late]

    def _hasty(self, present: Iterable[int]) -> dict[int, _GroupRequest]:
        """Those who do not wait for a place in a group that is full."""
        full = 0 < self._most <= len(set(present).intersection(self.members))
        return {r: a for r, a in self._waiting.items() if not full or r in self.members}

    def _lacks(self, present: Iterable[int]) -> str:
        short = self._least - len(self._waiting)
        missing = few([f"worker {rank}" for rank in self.missing(present)])
        return missing or f"{short} more of the {self._least} that a group needs"


__all__ = ["GroupFormation"]
