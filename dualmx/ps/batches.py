"""An elastic job as one of its workers sees it: which batch is under way, who takes part, who did before."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..core.errors import FormatError
from .attendance import NEW
from .frame import Message

MOST_BATCHES = 1 << 24  # of a job, each of which a worker that joins remembers


class Attended(NamedTuple):
    """A batch that is over.

    Attributes:
        number: from 1.
        members: ranks that took part, ascending.
        used: ranks whose pushes count.
    """

    number: int
    members: list[int]
    used: list[int]


class Batches:
    """Takes part in batches; see `Attendance`, which decides.

    Args:
        rank: of this worker.
        workers: of the job when it began.
        back: whether this worker joins others.
        ask: tells the scheduler which batch this worker has ended, and waits for the next.
        end: tells the servers of a batch that is over, of whose pushes count, and of the stores concerned.

    Attributes:
        number: of the batch under way; 0 before this worker takes part.
        members: ranks that take part in it.
        over: batches that are over, from the first one of the job on.
        stores: numbers of the stores whose rounds are batches.
        idle: what this worker pushes does not count, since it repeats a sample.
    """

    def __init__(
        self,
        rank: int,
        workers: int,
        back: bool,
        ask: Callable[[int], Message],
        end: Callable[[int, list[int], list[int]], None],
    ):
        self.rank, self._back = rank, back
        self._ask, self._end = ask, end
        self.number = 0
        self.members = list(range(workers))
        self.over: list[Attended] = []
        self.stores: list[int] = []
        self.idle = False
        self._pushed = False

    @property
    def position(self) -> int:
        """Of this worker among the members; its number in the job before it takes part."""
        return self.members.index(self.rank) if self.number else self.rank

    def pushes(self) -> int:
        """The batch that a push belongs to."""
        self.begin()
        self._pushed = True
        return self.number

    def begin(self) -> None:
        """Take part from the next batch on, unless this worker does already.

        Raises:
            MXNetError: the scheduler is gone.
        """
        if self.number:
            return
        told = self._ask(NEW if self._back else 0)
        if self._back:
            self._remember(told)
        self._follow(told)
        if self.over:
            self._end(self.over[-1].number, self.over[-1].used, self.stores)

    def catch_up(self) -> None:
        """What is pulled next is the outcome of all that was pushed, and the same for all; a newcomer takes part."""
        if self._back:
            self.begin()
        if self._pushed:
            self.end()

    def end(self) -> None:
        """End the batch under way: what this worker has pushed for it counts, and the next one begins.

        Raises:
            MXNetError: a server or the scheduler is gone.
        """
        self.begin()
        told = self._ask(self.number)
        used = told.take("used", list)
        self.over.append(Attended(self.number, self.members, self.members if used == self.members else used))
        self._pushed = self.idle = False
        self._follow(told)
        self._end(self.over[-1].number, self.over[-1].used, self.stores)

    def _follow(self, told: Message) -> None:
        self.number, members = told.take("batch", int), told.take("members", list)
        if members != self.members:  # else one list does for many batches
            self.members = members
        if self.rank not in self.members or self.number != len(self.over) + 1:
            raise FormatError(f"batch {self.number} of the workers {self.members}: not expected by worker {self.rank}")

    def _remember(self, told: Message) -> None:
        """Learn of the batches before this worker came."""
        runs, short = _numbered(told, "runs"), _numbered(told, "short")
        members: list[int] = []
        if not 1 <= (batch := told.take("batch", int)) <= MOST_BATCHES:
            raise FormatError(f"batch {batch}: expected 1 to {MOST_BATCHES}")
        for number in range(1, batch):
            members = runs.get(number, members)
            self.over.append(Attended(number, members, short.get(number, members)))


def _numbered(told: Message, name: str) -> dict[int, list[int]]:
    """Lists of ranks by the number of a batch."""
    found = {}
    for pair in told.take(name, list):
        if not (isinstance(pair, list) and len(pair) == 2 and type(pair[0]) is int and isinstance(pair[1], list)):
            raise FormatError(f"{name}: {pair!r:.80}: expected a batch and ranks")
        found[pair[0]] = pair[1]
    return found


__all__ = ["Attended", "Batches"]
