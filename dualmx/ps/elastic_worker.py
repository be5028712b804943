"""Worker side of elastic rounds: current round, members, history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..core.errors import FormatError
from .elastic_rounds import NEWCOMER, follow
from .protocol import BatchReply, Change, HistoryPage, parse
from .van.frame import Message

MOST_BATCHES = 1 << 24  # of the epochs under way, each of which a worker that joins remembers


class RoundRecord(NamedTuple):
    """A batch that is over.

    Attributes:
        number: from 1.
        members: ranks that took part, ascending.
        counted: ranks whose pushes count.
    """

    number: int
    members: list[int]
    counted: list[int]


class ElasticWorker:
    """Takes part in batches; see `ElasticRounds`, which decides.

    Args:
        rank: of this worker.
        workers: of the job when it began.
        back: whether this worker joins others.
        ask: tells the scheduler which batch this worker has ended, and new marks, and waits for the next.
        history: asks the scheduler for a page of what was before this worker came, see `ElasticRounds.page`.
        end: tells the servers of a batch that is over, of whose pushes count, and of the stores concerned.

    Attributes:
        number: of the batch under way; 0 before this worker takes part.
        members: ranks that take part in it.
        history: batches that are over, as far as the epochs under way need them.
        marks: by the name of an order of samples, the epoch under way and its first batch.
        stores: numbers of the stores whose rounds are batches.
        contributes_zero: what this worker pushes does not count, since it repeats a sample.
    """

    def __init__(
        self,
        rank: int,
        workers: int,
        back: bool,
        ask: Callable[[int, list[Any]], Message],
        history: Callable[[int], Message],
        end: Callable[[int, list[int], list[int]], None],
    ):
        self.rank, self._back = rank, back
        self._ask, self._history, self._end = ask, history, end
        self.number = 0
        self.members = list(range(workers))
        self.history: list[RoundRecord] = []
        self.marks: dict[str, tuple[int, int]] = {}
        self._news: dict[str, tuple[int, int]] = {}  # marks that the scheduler does not know
        self.stores: list[int] = []
        self.contributes_zero = False
        self._pushed = False

    @property
    def position(self) -> int:
        """Of this worker among the members; its number in the job before it takes part."""
        return self.members.index(self.rank) if self.number else self.rank

    def round_of_push(self) -> int:
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
        reply = parse(BatchReply, self._ask(NEWCOMER if self._back else 0, []).meta)
        if self._back:
            self._load_history(reply.batch)
        self._start_round(reply)
        if self.number > 1:
            self._end(self.number - 1, reply.used, self.stores)

    def sync_before_pull(self) -> None:
        """What is pulled next is the outcome of all that was pushed, and the same for all; a newcomer takes part."""
        if self._back:
            self.begin()
        if self._pushed:
            self.finish_round()

    def finish_round(self) -> None:
        """End the current round: its pushes count, and the next round starts.

        Raises:
            MXNetError: a server or the scheduler is gone.
        """
        self.begin()
        news, self._news = self._news, {}
        reply = parse(BatchReply, self._ask(self.number, [(name, *mark) for name, mark in news.items()]).meta)
        used = self.members if reply.used == self.members else reply.used
        self.history.append(RoundRecord(self.number, self.members, used))
        self._pushed = self.contributes_zero = False
        self._forget()
        self._start_round(reply)
        self._end(self.history[-1].number, self.history[-1].counted, self.stores)

    def _start_round(self, reply: BatchReply) -> None:
        self.number = reply.batch
        if reply.members != self.members:  # else one list does for many batches
            self.members = reply.members
        if self.rank not in self.members or (self.history and self.number != self.history[-1].number + 1):
            raise FormatError(f"batch {self.number} of the workers {self.members}: not expected by worker {self.rank}")

    def _load_history(self, batch: int) -> None:
        """Load the rounds before `batch`, in which this worker joined."""
        start, since, members = 0, 1, []
        changes: dict[int, Change] = {}
        while True:
            page = parse(HistoryPage, self._history(start).meta)
            if page.since is not None:  # else it goes on where the last one ended
                since, members, changes = page.since, page.before or [], {}
                self.marks = page.first_batches()
            changes |= {change[0]: change for change in page.changes}
            if not page.next:
                break
            if page.next <= start:
                raise FormatError(f"next={page.next}: expected a batch after {start}")
            start = page.next
        if not 1 <= since <= batch <= since + MOST_BATCHES:
            raise FormatError(f"batch {batch}: expected {since} to {since + MOST_BATCHES}")
        for number in range(since, batch):
            change = changes.get(number, (number, [], [], []))
            members = follow(members, change)
            used = [rank for rank in members if rank not in change[3]] if change[3] else members
            self.history.append(RoundRecord(number, members, used))

    def mark(self, name: str, epoch: int, first: int) -> None:
        """An epoch of an order of samples begins with batch `first`, of which newcomers must know."""
        self.marks[name] = self._news[name] = epoch, first

    def after(self, number: int) -> list[RoundRecord]:
        """Batches that are over, after batch `number`."""
        return self.history[max(number + 1 - self.history[0].number, 0) :] if self.history else []

    def _forget(self) -> None:
        """Forget rounds before the current epochs; the last one is kept."""
        first = min([self.history[-1].number, *(first for _, first in self.marks.values())])
        del self.history[: first - self.history[0].number]


__all__ = ["ElasticWorker", "RoundRecord"]
