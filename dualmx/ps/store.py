"""Server-side store: shards, rounds of contributions, waiting requests, journal records.

A round of a shard is complete when every worker has pushed it. Pushes are identified by (key, slice, worker, round), so
a duplicate counts once, and they are summed by rank, so the sum does not depend on arrival order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..core.dtypes import as_dtype, is_float
from ..core.errors import FormatError, MXNetError
from .member import few
from .protocol import Key, PutMode, ShardRecord, SumRecord, header
from .sparse_rows import INDEX, IndexedSlices, MutableTable, RowRequest, Value, dense, select_rows, sum_pushes
from .van.frame import Message, PayloadReader

Gradient = np.ndarray | IndexedSlices
UpdateFn = Callable[[list[tuple["Shard", Any]]], list[Any]]  # slices and sums -> values
# (slice, round, worker or -1 for all, sum or the list of its terms): a round that is over
CompletedRound = tuple["Shard", int, int, Any]


class PendingRequest:
    """A request that is answered when all its parts are ready; a context manager while it is served.

    Attributes:
        link, request: where the answer goes.
        values: values to answer with, by position, for a pull.
        rows: rows that are asked for, by position; None for a pull of everything.
        unready_parts: parts that are not ready.
        description: the request in words.
        priority: of the answer.
        since: when it came, and `noted`: when its worker was last told what it waits for, at first the same.
        store, slices, turns: what it waits for: a round of each slice.
    """

    store: Store

    def __init__(self, link: int, request: int, parts: int, what: str):
        self.link, self.request, self.unready_parts, self.description = link, request, parts, what
        self.values: list[Any] = [None] * parts
        self.rows: list[RowRequest] | None = None
        self.since = self.noted = 0.0
        self.slices: Sequence[Shard] = ()
        self.turns: Sequence[int] = ()
        self.priority = 0
        self.finished = False

    def __enter__(self) -> PendingRequest:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """The request is over if serving it raises, which is its answer."""
        self.finished = self.finished or kind is not None


class Shard:
    """A slice.

    Attributes:
        key, number: which slice of which key.
        value: its numbers (n,); an array is replaced, never changed in place.
        shape: shape of the whole array, and `width`: elements of a row of it.
        is_row_sparse: the array was stored as row_sparse.
        completed_round: rounds done.
        previous_value: the numbers before the last round, for a worker that comes back and has not seen that round.
        last_push_of: last round that each worker has pushed, where pushes are rounds of their own.
    """

    value: Value

    def __init__(self, key: Key, number: int, value: Value, shape: tuple[int, ...]):
        self.key, self.number, self.value, self.shape = key, number, value, shape
        self.width = math.prod(shape[1:])
        self.is_row_sparse = False
        self.completed_round = 0
        self.previous_value: Value | None = None
        self.last_push_of: dict[int, int] = {}
        self.contributions: dict[int, dict[int, Gradient]] = {}
        self.waiters: list[tuple[int, int, PendingRequest]] = []  # (round, position or -1 for a push, who)

    def last_round_of(self, rank: int) -> int:
        """Last round that a worker has pushed."""
        waiting = (turn for turn, contributed in self.contributions.items() if rank in contributed)
        return max(self.completed_round, self.last_push_of.get(rank, 0), *waiting)


class Store:
    """The slices of one key-value store on one server.

    Args:
        workers: ranks that take part.
        sync: close rounds when all workers have pushed; otherwise each push is a round of its own.
        slack: without `sync`, how many pushes a worker may be ahead of the slowest; None for any number.
        done: called with a request whose parts are all ready.
        failed: called with a request and the reason that it cannot be fulfilled.

    Attributes:
        apply: makes new values of sums; without it the sums are the new values.
        updater_sums: `apply` takes lists of terms too, and adds them up itself.
        log_rounds: called with rounds that were closed, before anybody is told.
        keep_previous: keep the values before the last round.
        unsliced: keys are kept in one piece.
        alloc: returns memory of a number of bytes for sums and values.
        has_shm_readers: whether workers see that memory where it lies; if none does, values may lie anywhere.
        setup_steps: how many one-time preparations each worker has made.
        acks_on_arrival: a push is answered when it has arrived.
    """

    acks_on_arrival = False

    def __init__(
        self,
        workers: Iterable[int],
        sync: bool,
        done: Callable[[PendingRequest], None],
        failed: Callable[[PendingRequest, str], None],
        slack: int | None = None,
    ):
        self.workers = sorted(workers)
        self.sync, self.slack = sync, slack
        self.shards: dict[tuple[Key, int], Shard] = {}
        self.lost_workers: dict[int, str] = {}
        self.apply: UpdateFn | None = None
        self.updater_sums = False
        self.log_rounds: Callable[[list[CompletedRound]], None] | None = None
        self.keep_previous = False
        self.unsliced = False
        self.setup_steps: dict[int, int] = {}
        self.alloc: Callable[[int], np.ndarray] = _take
        self.has_shm_readers: Callable[[], bool] = _never_shared
        self.failure: str | None = None
        self._done, self._failed = done, failed

    # -- arrays

    def put(
        self, key: Key, number: int, value: np.ndarray, shape: tuple[int, ...], mode: PutMode = PutMode.INIT,
        table: bool = False,
    ) -> None:  # fmt: skip
        """Store a slice: if it is missing (`init`), in any case (`fresh`), or with a new value (`reset`).

        One of the same array that has another size is a part of what is kept in one piece now.
        """
        old = self.shards.get((key, number))
        if old is not None and mode == PutMode.RESET:
            old.value, old.previous_value = value, None
        elif old is None or mode == PutMode.FRESH or (old.shape == shape and old.value.size != value.size):
            self.shards[key, number] = made = Shard(key, number, value, shape)
            made.is_row_sparse = table

    def shard(self, key: Key, number: int) -> Shard:
        """Return a slice; `FormatError` if it is not here."""
        try:
            return self.shards[key, number]
        except (KeyError, TypeError):
            raise FormatError(f"slice {number} of key {key!r} is not on this server") from None

    # -- pushes

    def push(
        self, rank: int, parts: list[tuple[Key, int, int, Any]], request: PendingRequest, pulls: bool = False
    ) -> None:
        """Apply a worker's pushes `(key, slice, round, numbers or Rows)`; `who` is answered when all are applied.

        Numbers (k, n) are k terms, which are added up apart. With `pulls`, the answer has the values then.

        Raises:
            FormatError: numbers of another size or dtype; nothing is changed then. MXNetError: an update failed before.
        """
        if self.failure is not None:
            raise MXNetError(self.failure)
        slices = []
        for key, number, _, data in parts:
            shard = self.shards.get((key, number)) or self.shard(key, number)
            if data.shape[-1:] != shard.value.shape or data.dtype != shard.value.dtype:
                raise FormatError(
                    f"push of key {key!r}: {data.dtype.name}[{data.size}], expected "
                    f"{shard.value.dtype.name}[{shard.value.size}]"
                )
            slices.append(shard)
        ready: list[CompletedRound] = []
        answered: list[int] = []
        request.store, request.slices, request.turns = self, slices, answered
        for position, (shard, (_, _, turn, data)) in enumerate(zip(slices, parts, strict=True)):
            answered.append(0 if self.acks_on_arrival else turn if self.sync else self._round_to_await(turn))
            shard.waiters.append((answered[position], position if pulls else -1, request))
            if self.sync:
                self._add_contribution(shard, turn, rank, data)
                self._complete_rounds(shard, ready)
            elif turn > shard.last_push_of.get(rank, 0):
                shard.last_push_of[rank] = turn
                ready.append((shard, turn, rank, data))
        if ready:
            self.apply_rounds(ready)
        if self.failure is not None:
            raise MXNetError(self.failure)
        if request.unready_parts == 0:
            self._finish(request)
        for shard, turn in zip(slices, answered, strict=True):
            if not self.sync or self.lost_workers or turn <= shard.completed_round:  # else nobody was waiting for it
                self._answer_waiters(shard)

    def _round_to_await(self, turn: int) -> int:
        """The round that must be over before a worker that has pushed `turn` rounds is answered."""
        return turn if self.sync else 0 if self.slack is None else turn - self.slack

    def _slowest_round(self, shard: Shard) -> int:
        """How often the slowest worker has pushed a slice."""
        return min((shard.last_push_of.get(rank, 0) for rank in self.workers), default=0)

    def _add_contribution(self, shard: Shard, turn: int, rank: int, data: Gradient) -> None:
        """Note a push, unless it is there or its round is over."""
        if turn > shard.completed_round:
            shard.contributions.setdefault(turn, {}).setdefault(rank, data)

    def _complete_rounds(self, shard: Shard, ready: list[CompletedRound]) -> None:
        """Complete the rounds of a slice that nobody is missing from."""
        while (contributed := shard.contributions.get(shard.completed_round + 1)) and len(contributed) >= len(
            self.workers
        ):
            if not contributed.keys() >= set(self.workers):
                return
            shard.completed_round += 1
            ready.append(
                (shard, shard.completed_round, -1, self._round_sum(shard.contributions.pop(shard.completed_round)))
            )

    def _round_sum(self, contributed: dict[int, Gradient]) -> Gradient | list[Gradient]:
        """The sum of a round; its terms where the update adds them up, which saves a walk through memory."""
        if self.updater_sums and self.log_rounds is None:
            terms = list(map(contributed.__getitem__, sorted(contributed)))
            for term in terms:
                if isinstance(term, IndexedSlices) or term.ndim > 1:
                    break
            else:
                return terms
        return _sum(contributed, self.alloc)

    def apply_rounds(self, ready: list[CompletedRound]) -> None:
        """Store sums, or update by them, in the order of their rounds."""
        while ready:
            batch, later = (ready, []) if len(ready) == 1 else _split_repeats(ready)
            values: list[Any]
            if self.apply is None:
                own = [rank >= 0 and not isinstance(total, IndexedSlices) for _, _, rank, total in batch]
                values = [np.array(total) if o else total for o, (*_, total) in zip(own, batch, strict=True)]
            else:
                try:
                    values = self.apply([(shard, total) for shard, _, _, total in batch])
                except Exception as e:
                    self._give_up(f"the update failed on the server: {type(e).__name__}: {e}")
                    return
            for (shard, turn, rank, _), value in zip(batch, values, strict=True):
                same = value is shard.value and isinstance(value, MutableTable)
                shard.previous_value = (value.previous() if same else shard.value) if self.keep_previous else None
                shard.value = value
                if rank < 0:
                    shard.completed_round = turn
                else:
                    shard.last_push_of[rank] = turn
                    if self.slack is not None:
                        shard.completed_round = self._slowest_round(shard)
            if self.log_rounds is not None:
                self.log_rounds(batch)
            ready = later

    def _give_up(self, reason: str) -> None:
        self.failure = reason
        for shard in list(self.shards.values()):
            for _, _, who in shard.waiters:
                if not who.finished:
                    who.finished = True
                    self._failed(who, reason)
            shard.waiters = []

    # -- pulls

    def pull(self, parts: list[tuple[Key, int, int]], who: PendingRequest) -> None:
        """Answer `who` with the values `(key, slice, round)` once these rounds are complete."""
        require(self.failure is None, str(self.failure))
        slices = [self.shard(key, number) for key, number, _ in parts]
        turns = [self._round_to_await(turn) for _, _, turn in parts]
        who.store, who.slices, who.turns = self, slices, turns
        for position, (shard, turn) in enumerate(zip(slices, turns, strict=True)):
            shard.waiters.append((turn, position, who))
        for shard in slices:
            self._answer_waiters(shard)

    def _answer_waiters(self, shard: Shard) -> None:
        """Answer waiters of complete rounds, and fail those whose rounds can never be completed."""
        still = []
        for turn, position, who in shard.waiters:
            if who.finished:
                continue
            if turn <= shard.completed_round:
                if position >= 0:
                    behind = self.sync and turn == shard.completed_round - 1 and shard.previous_value is not None
                    value = shard.previous_value if behind and shard.previous_value is not None else shard.value
                    if who.rows is not None:
                        who.values[position] = select_rows(value, who.rows[position], shard.width)
                    else:
                        who.values[position] = value if type(value) is np.ndarray else dense(value)
                who.unready_parts -= 1
                if who.unready_parts == 0:
                    who.finished = True
                    self._done(who)
            elif (lost := self._blocking_loss(shard)) is not None:
                who.finished = True
                self._failed(who, f"round {shard.completed_round + 1} of key {shard.key!r} cannot be completed: {lost}")
            else:
                still.append((turn, position, who))
        shard.waiters = still

    def _finish(self, who: PendingRequest) -> None:
        if not who.finished:
            who.finished = True
            self._done(who)

    def _blocking_loss(self, shard: Shard) -> str | None:
        """Why the next round of a slice will never be closed."""
        if not self.lost_workers:
            return None
        if self.slack is not None:
            behind = (
                r
                for r in sorted(self.lost_workers)
                if r in self.workers and shard.last_push_of.get(r, 0) <= shard.completed_round
            )
            return next((self.lost_workers[r] for r in behind), None)
        contributed = shard.contributions.get(shard.completed_round + 1, {})
        return next((reason for rank, reason in sorted(self.lost_workers.items()) if rank not in contributed), None)

    def fail_worker(self, rank: int, reason: str) -> None:
        """Worker `rank` will push no more: fail what waits for it. Without rounds (async) nothing does."""
        self.lost_workers.setdefault(rank, reason)
        if self.sync or self.slack is not None:
            for shard in list(self.shards.values()):
                self._answer_waiters(shard)

    def remove_worker(self, rank: int) -> None:
        """Continue without worker `rank`; its pushes count."""
        if rank not in self.workers:
            return
        self.workers.remove(rank)
        if self.slack is not None and self.workers:
            for shard in list(self.shards.values()):
                shard.completed_round = self._slowest_round(shard)
                self._answer_waiters(shard)
        if self.sync and self.workers:
            ready: list[CompletedRound] = []
            for shard in self.shards.values():
                self._complete_rounds(shard, ready)
            self.apply_rounds(ready)
            for shard in list(self.shards.values()):
                self._answer_waiters(shard)

    def awaited(self, who: PendingRequest) -> Shard | None:
        """A slice whose round a request waits for, if there is one."""
        return next((h for h, turn in zip(who.slices, who.turns, strict=True) if turn > h.completed_round), None)

    def lacks(self, shard: Shard) -> str:
        """Whose pushes the next round of a slice lacks, in words."""
        contributed = shard.contributions.get(shard.completed_round + 1, {})
        if self.slack is not None:
            contributed = {r: None for r in self.workers if shard.last_push_of.get(r, 0) > shard.completed_round}
        ranks = few([str(r) for r in self.workers if r not in contributed])
        return f"round {shard.completed_round + 1} of key {shard.key!r} still lacks the push of worker {ranks}"

    def describe_wait(self, who: PendingRequest) -> str | None:
        """What a waiting request waits for, in words."""
        shard = self.awaited(who)
        return None if shard is None else self.lacks(shard)


def _split_repeats(ready: list[CompletedRound]) -> tuple[list[CompletedRound], list[CompletedRound]]:
    """Split pushes into the first round of each slice and later ones."""
    batch, later, seen = [], [], set()
    for one in ready:
        (later if id(one[0]) in seen else batch).append(one)
        seen.add(id(one[0]))
    return batch, later


def _terms(parts: Iterable[Gradient]) -> Iterator[np.ndarray]:
    """The terms (n,) of pushes, of which some are sent apart."""
    for part in parts:
        if isinstance(part, np.ndarray) and part.ndim == 2:
            yield from part
        else:
            yield dense(part)


def _never_shared() -> bool:
    return False


def _take(nbytes: int) -> np.ndarray:
    return np.empty(nbytes, np.uint8)


def _sum(contributed: dict[int, Gradient], take: Callable[[int], np.ndarray] = _take) -> Gradient:
    """Add the pushes of a round in the order of ranks; 16-bit floats in float32."""
    parts = [contributed[rank] for rank in sorted(contributed)]
    rows = [p for p in parts if isinstance(p, IndexedSlices)]
    if len(rows) == len(parts):
        return sum_pushes(rows)
    pushed = list(_terms(parts))
    dtype = pushed[0].dtype
    if is_float(dtype) and dtype.itemsize == 2:
        wide = pushed[0].astype(np.float32)
        for one in pushed[1:]:
            wide += one.astype(np.float32)
        return wide.astype(dtype)
    total = take(pushed[0].nbytes).view(dtype)
    if len(pushed) == 1:
        total[:] = pushed[0]
    else:
        np.add(pushed[0], pushed[1], out=total)
    for one in pushed[2:]:
        total += one
    return total


def require(condition: bool, text: str) -> None:
    """Raise `MXNetError` with `text` unless the condition holds."""
    if not condition:
        raise MXNetError(text)


Record = tuple[dict[str, Any], list[Any]]


def bytes_of(value: np.ndarray) -> Any:
    """Return the bytes of an array, without a copy."""
    return value.view(np.uint8).data


def rounds_record(number: int, closed: list[CompletedRound]) -> Record:
    """Rounds of store `number` that are over, with their sums."""
    parts: list[list[Any]] = []
    payload: list[Any] = []
    for shard, turn, rank, total in closed:
        pieces = [total.ids, total.values] if isinstance(total, IndexedSlices) else [total]
        count = [len(total.ids)] if isinstance(total, IndexedSlices) else []
        parts.append([shard.key, shard.number, turn, rank, total.dtype.name, *count])
        payload += [bytes_of(p) for p in pieces if p.size]
    return header(SumRecord(number, parts)), payload


def shard_record(number: int, shard: Shard) -> Record:
    """A slice of store `number`."""
    values = [dense(v) for v in (shard.value, shard.previous_value) if v is not None]
    record = ShardRecord(
        number, shard.key, shard.number, shard.value.dtype.name, list(shard.shape), len(values) == 2,
        shard.completed_round, list(shard.last_push_of.items()), shard.is_row_sparse,
    )  # fmt: skip
    return header(record), [v.view(np.uint8) for v in values if v.size]


def restore_shard(store: Store, record: ShardRecord, message: Message) -> None:
    """Restore a shard from its `shard_record`."""
    dtype = as_dtype(record.dtype)
    values = np.frombuffer(message.data(), dtype).copy() if message.payload else np.empty(0, dtype)
    half = values.size // 2 if record.two else values.size
    shard = Shard(record.key, record.number, values[:half], tuple(record.shape))
    shard.previous_value = values[half:] if record.two else None
    shard.completed_round, shard.is_row_sparse = record.closed, record.table
    shard.last_push_of = dict(record.seen)
    store.shards[record.key, record.number] = shard


def restore_rounds(store: Store, parts: list[list[Any]], data: PayloadReader) -> None:
    """Restore completed rounds from a `rounds_record`."""
    closed: list[CompletedRound] = []
    for key, number, turn, rank, name, *count in parts:
        shard, dtype = store.shard(key, number), as_dtype(name)
        ids = np.frombuffer(data.read(count[0] * INDEX.itemsize), INDEX) if count else None
        size = shard.value.size if ids is None else len(ids) * shard.width
        total = np.frombuffer(data.read(size * dtype.itemsize), dtype)
        if ids is not None:
            total = IndexedSlices(ids, total.reshape(-1, shard.width), shard.value.size)
        closed.append((shard, turn, rank, total))
    store.apply_rounds(closed)


__all__ = [
    "PendingRequest",
    "Record",
    "Shard",
    "Store",
    "bytes_of",
    "require",
    "restore_rounds",
    "restore_shard",
    "rounds_record",
    "shard_record",
]
