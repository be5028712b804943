"""Groups of workers of an elastic job that exchange arrays with each other: formed anew when some are gone or come.

A group is formed when all workers of the one before it that are still there have asked for the next. Others who have
asked by then take part as well, after those: the first one of a group knows what the group before it did, as long as
anybody of that is left.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, NamedTuple

Request = tuple[int, int]  # (link, number)
TOLD = 10.0  # seconds after which those who wait are told for whom


class _Asked(NamedTuple):
    request: Request
    address: dict[str, Any]
    since: float
    patience: float  # 0 for no limit


class Assembly:
    """Forms groups, one after the other.

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

    def __init__(self) -> None:
        self.number = 0
        self.members: list[int] = []
        self._waiting: dict[int, _Asked] = {}
        self._answers: list[tuple[Request, dict[str, Any]]] = []
        self._told = 0.0

    def ask(self, rank: int, number: int, address: dict[str, Any], request: Request, patience: float = 0.0) -> bool:
        """Worker `rank`, which listens at `address`, leaves group `number` for the next; whether it is a newcomer."""
        self.number = max(self.number, number)  # another scheduler may have formed it
        self._waiting[rank] = _Asked(request, address, time.monotonic(), patience)
        return rank not in self.members

    def settle(self, present: Iterable[int], left: Iterable[int] = ()) -> None:
        """Form the next group if nobody is missing, of the workers `present`; `left`: those who took their leave."""
        here = set(present)
        self._waiting = {rank: asked for rank, asked in self._waiting.items() if rank in here}
        if not self._waiting or self.waits_for(here):
            return
        if self.members and not here.intersection(self.members) and set(left).intersection(self.members):
            # The last group has ended its work; those who come now would begin it anew.
            self._answers += [(asked.request, {"over": True}) for asked in self._waiting.values()]
        else:
            self.number += 1
            before = [rank for rank in self.members if rank in self._waiting]
            self.members = before + sorted(self._waiting.keys() - set(before))
            addresses = [self._waiting[rank].address for rank in self.members]
            told = {"group": self.number, "workers": self.members, "addresses": addresses}
            self._answers += [(self._waiting[rank].request, told) for rank in self.members]
        self._waiting = {}

    def waits_for(self, present: Iterable[int]) -> list[int]:
        """Workers without which the next group is not formed."""
        here = set(present)
        return sorted((here.intersection(self.members) if self.members else here) - self._waiting.keys())

    def answers(self) -> list[tuple[Request, dict[str, Any]]]:
        """The answers to those who asked, once."""
        answers, self._answers = self._answers, []
        return answers

    def overdue(self, now: float) -> list[tuple[Request, float]]:
        """Requests that have waited too long, and for how many seconds; they are forgotten."""
        late = {r: a for r, a in self._waiting.items() if a.patience and now - a.since > a.patience}
        for rank in late:
            del self._waiting[rank]
        return [(a.request, a.patience) for a in late.values()]

    def to_tell(self, now: float) -> list[int]:
        """Links of those who have waited long, from time to time."""
        late = [a.request[0] for a in self._waiting.values() if now - a.since > TOLD]
        if not late or now - self._told < TOLD:
            return []
        self._told = now
        return late


__all__ = ["Assembly"]
