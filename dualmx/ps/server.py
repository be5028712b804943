"""`KVServer`: parses and checks requests, hands them to the stores, replies."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from operator import is_not
from typing import Any, Protocol

import numpy as np

from ..core.dtypes import NAMES, as_dtype
from ..core.errors import ArgumentTypeError, FormatError, MXNetError
from .codecs import Codec
from .elastic_store import ElasticStore, contribution_records, restore_contributions
from .journal import Journal, JournalError
from .row_requests import parse_row_pull, parse_row_push, row_reply
from .store import (
    CompletedRound,
    Key,
    PendingRequest,
    Record,
    Shard,
    Store,
    UpdateFn,
    bytes_of,
    require,
    restore_rounds,
    restore_shard,
    rounds_record,
    shard_record,
)
from .van.frame import ERROR, NOTICE, REPLY, REQUEST, HeaderTemplate, Message, SharedPayload
from .van.van import Van

MAX_PARTS = 1 << 20
MAX_TERMS = 4096  # terms of one worker in a sum
MODES = ("init", "fresh", "reset")


def parse_parts(message: Message, *kinds: Any) -> list[Any]:
    """Return the parts of a request as tuples, whose values are of `kinds`.

    Raises:
        FormatError: other parts, or too many.
    """
    parts = message.field("parts", list)
    if len(parts) > MAX_PARTS:
        raise FormatError(f"{len(parts)} parts in a message")
    found = []
    for part in parts:
        good = isinstance(part, list) and len(part) == len(kinds) and all(map(isinstance, part, kinds))
        if not good or [value for value in part if value is True or value is False]:
            raise FormatError(f"message {message.meta.get('op')!r}: part {part!r}: not as expected")
        found.append(tuple(part))
    return found


def serve_put(store: Store, message: Message, take: Callable[[int], np.ndarray]) -> None:
    """Store the slices of a `put`, in memory of their own, which `take` returns.

    Raises:
        FormatError: no arrays, or other numbers than announced; nothing is stored then.
    """
    data = message.pieces()
    made: list[tuple[Key, int, np.ndarray, tuple[int, ...]]] = []
    for key, number, name, size, shape in parse_parts(message, (str, int), int, str, int, list):
        if name not in NAMES or not all(type(n) is int and n >= 0 for n in shape) or size < 0:
            raise FormatError(f"key {key!r}: {name}{shape}: no array")
        try:
            dtype = as_dtype(name)
        except ArgumentTypeError as e:
            raise FormatError(str(e)) from None
        piece = data.read(size * dtype.itemsize)
        if piece.nbytes != size * dtype.itemsize:
            raise FormatError(f"key {key!r}: the numbers are missing")
        value = take(piece.nbytes).view(dtype)
        value[:] = np.frombuffer(piece, dtype)
        made.append((key, number, value, tuple(shape)))
    if data.left:
        raise FormatError("more numbers than announced")
    mode = message.meta.get("mode", "init")
    if mode not in MODES:
        raise FormatError(f"put: mode={mode!r}: expected one of {', '.join(MODES)}")
    tables = message.meta.get("tables", [])
    if not isinstance(tables, list):
        raise FormatError(f"put: tables={tables!r}: expected keys")
    for one in made:
        store.put(*one, mode=mode, table=one[0] in tables)


def parse_pushes(store: Store, message: Message) -> list[Any]:
    """Return the slices, rounds and numbers of a push, of arrays or rows; `FormatError` as `parse_dense_pushes`."""
    if message.meta.get("op") == "push rows":
        return parse_row_push(store, message, parse_parts(message, (str, int), int, int, int))
    return parse_dense_pushes(store, message)


def parse_dense_pushes(store: Store, message: Message) -> list[tuple[Key, int, int, np.ndarray]]:
    """Return the slices, rounds and numbers of a push of arrays.

    Raises:
        FormatError: slices that are not here, or other numbers than theirs.
    """
    data = message.pieces()
    told, apart = message.meta.get("code"), message.meta.get("apart", 1)
    code = None if told is None else Codec.from_meta(told)
    if type(apart) is not int or not 1 <= apart <= MAX_TERMS or (apart > 1 and (code or not store.sync)):
        raise FormatError(f"push: apart={apart!r}: expected up to {MAX_TERMS} terms for a synchronous store")
    parts = []
    for key, number, turn in parse_parts(message, (str, int), int, int):
        value = store.shard(key, number).value
        size = value.nbytes * apart if code is None else code.size(value.size)
        piece = data.read(size)
        if piece.nbytes != size:
            raise FormatError(f"push of key {key!r}: {piece.nbytes} bytes, expected {size}")
        if code is None:
            numbers = np.frombuffer(piece, value.dtype)
            numbers = numbers.reshape(apart, -1) if apart > 1 else numbers
        else:
            numbers = code.unpack(np.frombuffer(piece, np.uint8), value.size)
        parts.append((key, number, turn, numbers))
    if data.left:
        raise FormatError(f"push: {data.left} bytes more than expected; was an array pushed as another type?")
    return parts


_log = logging.getLogger("dualmx.dist")
WAIT_NOTICE_SECONDS = 10.0  # seconds between two notes to a worker whose request waits for others
NOTES = 500  # of them at a time
REST = 3  # times as long as the last notes took, until the next ones

DEDUP_WINDOW = 64  # answers kept for each worker, in case they were lost on the way
_NONE: tuple[list[Any], SharedPayload, int] = ([], SharedPayload([]), 0)


class RequestHandler(Protocol):
    """What a server does with requests that concern the optimizer."""

    def __call__(self, op: str, store: Store, number: int, message: Message) -> Record:
        """Serve one request; returns the answer."""
        ...

    def records(self, number: int) -> Iterator[Record]:
        """Requests that would lead to the present state of a store's optimizer."""
        ...


class _Client:
    """A worker as the server knows it: its connection, its life (a restarted worker has another), what was answered."""

    def __init__(self) -> None:
        self.link = -1
        self.incarnation = 0
        self.completed_ids: OrderedDict[int, None] = OrderedDict()

    def note(self, life: int, number: int) -> None:
        if life != self.incarnation:
            self.incarnation = life
            self.completed_ids.clear()
        self.completed_ids[number] = None
        while len(self.completed_ids) > DEDUP_WINDOW:
            self.completed_ids.popitem(last=False)


class KVServer:
    """Answers `open`, `put`, `push`, `pull` and, through `control`, what concerns the optimizer.

    A request that comes again, because the connection broke before its answer arrived, is answered again and not done
    again: pushes and pulls carry their round, the others are remembered by their number.

    Args:
        van: sends the answers.
        workers: number of workers of the job.
        control: serves all other requests.
        journal: where changes are written down, to be read by `restore`.
        returns: whether workers that died may come back.
        elastic: whether more may come.

    Attributes:
        workers: ranks that the job has or had.
        stores: by number.
        ranks: worker of each link.
        lost_workers: why workers are given up, by rank.
    """

    def __init__(
        self,
        van: Van,
        workers: int,
        control: RequestHandler | None = None,
        journal: Journal | None = None,
        returns: bool = False,
        elastic: bool = False,
    ):
        self._van, self._control, self._elastic = van, control, elastic
        self.workers = set(range(workers))
        self._journal, self._returns = journal, returns
        self.stores: dict[int, Store] = {}
        self.ranks: dict[int, int] = {}
        self.clients: dict[int, _Client] = {}
        self.lost_workers: dict[int, str] = {}
        self.removed_workers: dict[int, str] = {}
        self.left_workers: set[int] = set()
        self._pending: dict[int, PendingRequest] = {}
        self._rests = 0.0  # until when no notes are sent
        self._last_reply = _NONE  # the last one
        self._snapshot_due = False
        self._replaying = False
        self.received = self.sent = 0  # bytes of arrays

    def on_message(self, link: int, message: Message) -> None:
        """Serve one message of a worker."""
        if message.kind != REQUEST:
            return
        self.received += message.size
        form = message.form
        try:
            if (
                form is None
                or form.cached_target is None
                or not self._serve_cached(link, message, form, *form.cached_target)
            ):
                self._serve(link, message)
        except JournalError:
            raise  # what this server says would not outlive it
        except MXNetError as e:
            self._van.answer(link, Message(ERROR, message.request, {"text": str(e)}))
        if self._snapshot_due and self._journal is not None:
            self._snapshot_due = False
            self._journal.snapshot(self._records())

    def _serve(self, link: int, message: Message) -> None:
        op = message.field("op", str)
        if op == "hello":
            self._hello(link, message)
            return
        if op == "status":
            self._reply(link, message.request, self.status())
            return
        rank = self.ranks.get(link)
        if rank is None:
            raise MXNetError("introduce yourself first")
        number = message.field("store", int)
        if op in ("push", "push rows", "pushpull"):
            self._last_reply = _NONE  # so that updates may write where values lie that nobody looks at
        if op in ("push", "push rows"):
            store = self._store(number)
            parts = parse_pushes(store, message)
            self._log_elastic_push(store, rank, message)
            who = self._pend(link, message, len(parts), "push")
            self._cache_target(message, store)
            who.finishing_on_error(store.push, rank, parts, who)
        elif op == "pushpull":
            store = self._store(number)
            parts = parse_dense_pushes(store, message)
            who = self._pend(link, message, len(parts), "push and pull")
            self._cache_target(message, store)
            who.finishing_on_error(store.push, rank, parts, who, pulls=True)
        elif op == "pull":
            store = self._store(number)
            wanted = parse_parts(message, (str, int), int, int)
            who = self._pend(link, message, len(wanted), "pull")
            who.finishing_on_error(store.pull, wanted, who)
        elif op == "pull rows":
            store = self._store(number)
            parts = parse_parts(message, (str, int), int, int, int)
            wanted, rows = parse_row_pull(store, message, parts)
            who = self._pend(link, message, len(wanted), "pull of rows")
            who.rows = rows
            who.finishing_on_error(store.pull, wanted, who)
        elif message.request in self.clients[rank].completed_ids:
            self._reply(link, message.request, self._resume_info(rank, number, message) if op == "open" else {})
        else:
            meta, payload = self._apply_change(rank, op, number, message)
            client = self.clients[rank]
            if op != "states":  # which can be told again
                client.note(client.incarnation, message.request)
            if op not in ("states", "command"):
                self._write({**message.meta, "by": [rank, client.incarnation, message.request]}, message.payload)
            self._reply(link, message.request, meta, payload)

    def _cache_target(self, message: Message, store: Store) -> None:
        """Note which slice a message is about, for those that come after it."""
        if message.form is not None and type(store) is Store:
            message.form.cached_target = store, store.shard(message.form.key, message.form.number)

    def _serve_cached(self, link: int, message: Message, form: HeaderTemplate, store: Store, held: Shard) -> bool:
        """Serve the next push of a slice; False if it is not as it was."""
        rank, pulls = self.ranks.get(link), form.meta["op"] == "pushpull"
        good = len(message.payload) == 1 and message.payload[0].nbytes == held.value.nbytes
        if rank is None or not good or store.shards.get((form.key, form.number)) is not held:
            return False
        self._last_reply = _NONE
        who = PendingRequest(link, message.request, 1, "push and pull" if pulls else "push")
        who.since = who.noted = time.monotonic()
        self._pending[id(who)] = who
        numbers = np.frombuffer(message.payload[0], held.value.dtype)
        part = (form.key, form.number, message.meta["parts"][0][2], numbers)
        try:
            store.push(rank, [part], who, pulls)
        except BaseException:
            who.finished = True
            raise
        return True

    def _log_elastic_push(self, store: Store, rank: int, message: Message) -> None:
        """Write down a push that is answered before its batch is over."""
        if isinstance(store, ElasticStore):
            self._write(
                {**message.meta, "by": [rank, self.clients[rank].incarnation, message.request]}, message.payload
            )

    def _hello(self, link: int, message: Message) -> None:
        rank, life = message.field("rank", int), message.field("life", int)
        require(rank in self.workers or (self._elastic and rank > max(self.workers)), f"worker {rank}: no such rank")
        self.workers.add(rank)
        if rank in self.lost_workers or rank in self.removed_workers:
            text = f"the job goes on without this worker: {self.lost_workers.get(rank) or self.removed_workers[rank]}"
            self._van.answer(link, Message(ERROR, message.request, {"text": text, "final": True}))
            return
        client = self.clients.setdefault(rank, _Client())
        if client.link != link and client.link in self.ranks:
            del self.ranks[client.link]
            self._van.drop(client.link)
        if client.incarnation != life:
            client.incarnation = life
            client.completed_ids.clear()
        client.link = link
        self.ranks[link] = rank
        self._reply(link, message.request)

    def _store(self, number: int) -> Store:
        store = self.stores.get(number)
        if store is None:
            raise MXNetError(f"there is no store {number} on this server")
        return store

    def _apply_change(self, rank: int, op: str, number: int, message: Message) -> Record:
        """Do what changes the server's state by other things than rounds."""
        if op == "open":
            self._open(number, message.field("sync", bool), _parse_staleness(message))
            return self._resume_info(rank, number, message), []
        store = self._store(number)
        step = message.meta.get("step")
        if step is not None:  # a preparation that a restarted worker repeats
            if message.field("step", int) <= store.setup_steps.get(rank, 0):
                return {}, []
        done: Record = ({}, [])
        if op == "put":
            serve_put(store, message, self._van.alloc)
        elif op == "end":
            require(isinstance(store, ElasticStore), "the store is not that of an elastic job")
            assert isinstance(store, ElasticStore)
            store.commit_round(message.field("batch", int), message.field("used", list))
        elif op == "drop":
            for key, slice_ in parse_parts(message, (str, int), int):
                store.shards.pop((key, slice_), None)
            store.unsliced = True
        else:
            require(self._control is not None, f"unknown request {op!r}")
            assert self._control is not None
            done = self._control(op, store, number, message)
        if step is not None:
            store.setup_steps[rank] = step
        return done

    def _open(self, number: int, sync: bool, slack: int | None) -> None:
        store = self.stores.get(number)
        if store is None:
            require(len(self.stores) < 4096, "too many stores")
            kind = ElasticStore if self._elastic and sync else Store
            self.stores[number] = store = kind(self.workers, sync, self._send_values, self._send_error, slack)
            store.keep_previous = self._returns and sync
            store.alloc, store.has_shm_readers = self._van.alloc, self._van.has_shm_readers
            if self._journal is not None and kind is Store:
                store.log_rounds = lambda closed: self._write_closed(number, closed)
            for rank, reason in self.lost_workers.items():
                if slack is not None and rank in self.left_workers:
                    store.remove_worker(rank)
                store.fail_worker(rank, reason)
            for rank in self.removed_workers:
                store.remove_worker(rank)
        same = "all workers must create the same stores in the same order"
        kind = "synchronous" if store.sync else "asynchronous"
        require(store.sync == sync, f"store {number} of another worker is {kind}; {same}")
        ahead = f"lets workers be {store.slack} pushes ahead, not {slack}"
        require(store.slack == slack, f"store {number} of another worker {ahead}; {same}")

    def _resume_info(self, rank: int, number: int, message: Message) -> dict[str, Any]:
        """What a worker that came back must know of a store: how keys are placed, and which rounds it has completed.

        A push of a round that is not over is no more than the server remembers, which may die as well.
        """
        if message.meta.get("back") is not True:
            return {}
        store = self.stores[number]
        rounds: dict[Key, int] = {}
        for held in store.shards.values():
            turn = held.completed_round if store.sync else held.last_push_of.get(rank, 0)
            rounds[held.key] = min(rounds.get(held.key, 1 << 62), turn)
        return {"whole": store.unsliced, "rounds": [[k, t] for k, t in rounds.items()]}

    # -- what outlives the server

    def _write(self, meta: dict[str, Any], payload: Any) -> None:
        if self._journal is not None and not self._replaying:
            self._snapshot_due = self._journal.append(meta, payload) or self._snapshot_due

    def _write_closed(self, number: int, closed: list[CompletedRound]) -> None:
        if not self._replaying:
            self._write(*rounds_record(number, closed))

    def _records(self) -> Iterator[Record]:
        for number, store in self.stores.items():
            yield {"op": "open", "store": number, "sync": store.sync, "slack": store.slack}, []
            steps = [[r, n] for r, n in store.setup_steps.items()]
            batch = store.batch if isinstance(store, ElasticStore) else 0
            yield {"op": "prepared", "store": number, "whole": store.unsliced, "steps": steps, "batch": batch}, []
            for held in store.shards.values():
                yield shard_record(number, held)
            if isinstance(store, ElasticStore):
                yield from contribution_records(number, store)
            if self._control is not None:
                yield from self._control.records(number)
        for rank, client in self.clients.items():
            yield (
                {"op": "answered", "rank": rank, "life": client.incarnation, "numbers": list(client.completed_ids)},
                [],
            )
        for rank, reason in self.removed_workers.items():
            yield {"op": "exclude", "rank": rank, "text": reason}, []

    def restore(self) -> int:
        """Read the journal, and be where the server that wrote it was; returns how many records there were."""
        if self._journal is None:
            return 0
        count = 0
        self._replaying = True
        try:
            for record in self._journal.replay():
                with self._journal.content.parsing():
                    self._replay(record)
                count += 1
        finally:
            self._replaying = False
        return count

    def _replay(self, record: Message) -> None:
        op = record.field("op", str)
        if op == "answered":
            client = self.clients.setdefault(record.field("rank", int), _Client())
            for number in record.field("numbers", list):
                client.note(record.field("life", int), number)
        elif op == "exclude":
            self.exclude(record.field("rank", int), record.field("text", str))
        elif op == "prepared":
            store = self._store(record.field("store", int))
            store.unsliced = record.field("whole", bool)
            store.setup_steps = dict(record.field("steps", list))
            if isinstance(store, ElasticStore):
                store.batch = record.field("batch", int)
        elif op == "slice":
            restore_shard(self._store(record.field("store", int)), record)
        elif op == "seated":
            restore_contributions(self._store(record.field("store", int)), record)
        elif op in ("push", "push rows"):
            self._replay_push(record)
        elif op == "closed":
            restore_rounds(self._store(record.field("store", int)), record)
        else:
            by = record.meta.get("by")
            self._apply_change(by[0] if by else -1, op, record.field("store", int), record)
            if by:
                self.clients.setdefault(by[0], _Client()).note(by[1], by[2])

    def _replay_push(self, record: Message) -> None:
        store = self._store(record.field("store", int))
        parts = parse_pushes(store, record)
        try:
            store.push(record.field("by", list)[0], parts, PendingRequest(-1, 0, len(parts), "push"))
        except MXNetError:
            pass  # it was refused before as well

    # -- answers

    def _pend(self, link: int, message: Message, parts: int, what: str) -> PendingRequest:
        who = PendingRequest(link, message.request, parts, what)
        who.since = who.noted = time.monotonic()
        priority = message.meta.get("priority")
        who.priority = priority if type(priority) is int else 0
        self._pending[id(who)] = who
        return who

    def _reply(self, link: int, request: int, meta: dict[str, Any] | None = None, payload: Any = ()) -> None:
        self._van.answer(link, Message(REPLY, request, meta or {}, payload))

    def _send_values(self, who: PendingRequest) -> None:
        self._pending.pop(id(who), None)
        meta, found = ({}, who.values) if who.rows is None else row_reply(who)
        last, payload, size = self._last_reply
        # The payload of the worker that was answered before, if it got the same, has its checksum already.
        if len(last) != len(found) or any(map(is_not, last, found)):
            values = [v for v in found if v is not None and v.size]
            payload = SharedPayload(map(bytes_of, values))
            size = values[0].nbytes if len(values) == 1 else sum([v.nbytes for v in values])
            self._last_reply = found, payload, size
        self.sent += size
        self._van.answer(who.link, Message(REPLY, who.request, meta, payload, who.priority))

    def _send_error(self, who: PendingRequest, reason: str) -> None:
        self._pending.pop(id(who), None)
        self._van.answer(who.link, Message(ERROR, who.request, {"text": reason}))

    # -- members

    def fail_worker(self, rank: int, reason: str, left: bool = False) -> None:
        """Worker `rank` has left (`left_workers`) or is given up: rounds that lack it end in an error.

        Stores with slack do not wait for one that has left.
        """
        if rank not in self.lost_workers:
            self.lost_workers[rank] = reason
            if left:
                self.left_workers.add(rank)
            for store in self.stores.values():
                if left and store.slack is not None:
                    store.remove_worker(rank)
                if rank not in self.removed_workers:
                    store.fail_worker(rank, reason)

    def add_worker(self, rank: int) -> None:
        """One more worker takes part."""
        self.workers.add(rank)

    def exclude(self, rank: int, reason: str) -> None:
        """Go on without worker `rank`."""
        if rank not in self.removed_workers and rank not in self.lost_workers:
            self.removed_workers[rank] = reason
            self._write({"op": "exclude", "rank": rank, "text": reason}, [])
            for store in self.stores.values():
                store.remove_worker(rank)

    def status(self) -> dict[str, Any]:
        """Return rounds, bytes moved, and who lets others wait, for `dualmx status`.

        `late` has the seconds that the longest request has waited for each worker.
        """
        now, late = time.monotonic(), {}
        held = [(store, h) for store in self.stores.values() for h in store.shards.values()]
        for store, h in held:
            seat = h.contributions.get(h.completed_round + 1, {})
            for _, _, who in h.waiters if store.sync else ():
                for rank in (r for r in store.workers if r not in seat):
                    late[rank] = max(late.get(rank, 0.0), now - who.since)
        pushed = {str(r): max((h.last_round_of(r) for _, h in held), default=0) for r in sorted(self.workers)}
        return {
            "stores": len(self.stores), "keys": len({(id(store), h.key) for store, h in held}),
            "rounds": max((h.completed_round for _, h in held), default=0), "received": self.received,
            "sent": self.sent,
            "memory": sum(h.value.nbytes for _, h in held), "pushed": pushed,
            "late": {str(rank): round(seconds, 3) for rank, seconds in late.items()},
        }  # fmt: skip

    def send_wait_notices(self) -> None:
        """Tell workers whose requests wait for long what they wait for, for a part of the time at most."""
        began = time.monotonic()
        if began < self._rests:
            return
        before = began - WAIT_NOTICE_SECONDS
        due: list[PendingRequest] = []
        for who in self._pending.values():  # those that were told, or came, the longest ago are the first
            if not who.finished and (who.noted > before or len(due) == NOTES):
                break
            due.append(who)
        texts: dict[int, str] = {}  # by slice
        for who in due:
            del self._pending[id(who)]
            held = None if who.finished else who.store.awaited(who)
            if held is not None:
                text = texts.get(id(held)) or texts.setdefault(id(held), who.store.lacks(held))
                self._van.answer(who.link, Message(NOTICE, 0, {"op": "waiting", "text": text, "request": who.request}))
        now = time.monotonic()
        self._rests = now + REST * (now - began)
        for who in due:
            if not who.finished:
                who.noted = now
                self._pending[id(who)] = who


def _parse_staleness(message: Message) -> int | None:
    slack = message.meta.get("slack")
    if slack is not None and not (type(slack) is int and slack >= 0):
        raise FormatError(f"open: slack={slack!r}: expected a number of pushes")
    return slack


__all__ = [
    "KVServer",
    "Record",
    "RequestHandler",
    "UpdateFn",
    "parse_dense_pushes",
    "parse_parts",
    "parse_pushes",
    "serve_put",
]
