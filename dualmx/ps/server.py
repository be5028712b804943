"""`KVServer`: parses and checks requests, hands them to the stores, replies."""

from __future__ import annotations

import contextlib
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
from .elastic_store import ElasticStore, contribution_records, restore_contribution
from .journal import Journal, JournalError
from .protocol import (
    OP,
    SERVER_RECORDS,
    SERVER_REQUESTS,
    BatchEnd,
    ClientRecord,
    ClientRequest,
    ContributionRecord,
    Drop,
    Hello,
    Open,
    OptimizerRequest,
    Pull,
    PullRows,
    Push,
    PushOp,
    PushRows,
    Put,
    RemovalRecord,
    ShardRecord,
    StatusRequest,
    StoreRecord,
    SumRecord,
    WaitNotice,
    header,
    notice,
    parse,
)  # fmt: skip
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
from .van.frame import ERROR, REPLY, REQUEST, HeaderTemplate, Message, PayloadReader, SharedPayload
from .van.van import Van


def serve_put(store: Store, put: Put, data: PayloadReader, take: Callable[[int], np.ndarray]) -> None:
    """Store the slices of a `put` in new memory, which `take` returns.

    Raises:
        FormatError: no arrays, or other numbers than announced; nothing is stored then.
    """
    made: list[tuple[Key, int, np.ndarray, tuple[int, ...]]] = []
    for key, number, name, size, shape in put.parts:
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
    for one in made:
        store.put(*one, mode=put.mode, table=one[0] in (put.tables or ()))


def parse_pushes(store: Store, push: Push | PushRows, data: PayloadReader) -> list[Any]:
    """Return the slices, rounds and numbers of a push, of arrays or rows.

    Raises:
        FormatError: slices that are not here, or other numbers than theirs.
    """
    parts = parse_row_push(store, push, data) if isinstance(push, PushRows) else _parse_dense_push(store, push, data)
    if data.left:
        raise FormatError(f"push: {data.left} bytes more than expected; was an array pushed as another type?")
    return parts


def _parse_dense_push(store: Store, push: Push, data: PayloadReader) -> list[tuple[Key, int, int, np.ndarray]]:
    code, apart = Codec.from_meta(push.code), 1 if push.apart is None else push.apart
    if not 1 <= apart <= MAX_TERMS or (apart > 1 and (code or not store.sync)):
        raise FormatError(f"push: apart={apart}: expected up to {MAX_TERMS} terms for a synchronous store")
    parts = []
    for key, number, turn in push.parts:
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
    return parts


MAX_TERMS = 4096  # terms of one worker in a sum
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
        self._servers: dict[type, Callable[[int, int, Message, Any], None]] = {
            Push: self._push, PushRows: self._push, Pull: self._pull, PullRows: self._pull,
        }  # fmt: skip

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
        """Hand a record to what serves records of its type."""
        record = SERVER_REQUESTS.read(message)
        if isinstance(record, Hello):
            self._hello(link, message.request, record)
        elif isinstance(record, StatusRequest):
            self._reply(link, message.request, self.status())
        elif (rank := self.ranks.get(link)) is None:
            raise MXNetError("introduce yourself first")
        else:
            self._servers.get(type(record), self._change)(link, rank, message, record)

    def _push(self, link: int, rank: int, message: Message, push: Push | PushRows) -> None:
        self._last_reply = _NONE  # so that updates may write where values lie that nobody looks at
        store, pulls = self._store(push.store), isinstance(push, Push) and push.op is PushOp.PUSHPULL
        parts = parse_pushes(store, push, message.pieces())
        if isinstance(store, ElasticStore):  # it is answered before its batch is over
            self._write_request(rank, message)
        if message.form is not None and type(store) is Store:
            message.form.cached_target = store, store.shard(message.form.key, message.form.number), pulls
        with self._pend(link, message, push, "push and pull" if pulls else "push") as who:
            store.push(rank, parts, who, pulls)

    def _pull(self, link: int, rank: int, message: Message, pull: Pull | PullRows) -> None:
        store = self._store(pull.store)
        wanted, rows = (pull.parts, None) if isinstance(pull, Pull) else parse_row_pull(store, pull, message.pieces())
        with self._pend(link, message, pull, "pull" if rows is None else "pull of rows") as who:
            who.rows = rows
            store.pull(wanted, who)

    def _change(self, link: int, rank: int, message: Message, record: Any) -> None:
        """Do what must not be repeated when its reply was lost."""
        client, op = self.clients[rank], message.meta[OP]
        if message.request in client.completed_ids:
            resumed = self._resume_info(rank, record.store, message) if isinstance(record, Open) else {}
            self._reply(link, message.request, resumed)
            return
        meta, payload = self._apply_change(rank, record, message)
        if op != "states":  # which can be told again
            client.note(client.incarnation, message.request)
            if op != "command":
                self._write_request(rank, message)
        self._reply(link, message.request, meta, payload)

    def _serve_cached(
        self, link: int, message: Message, form: HeaderTemplate, store: Store, shard: Shard, pulls: bool
    ) -> bool:
        """Serve the next push of a slice; False if it is not as it was."""
        rank = self.ranks.get(link)
        good = len(message.payload) == 1 and message.payload[0].nbytes == shard.value.nbytes
        if rank is None or not good or store.shards.get((form.key, form.number)) is not shard:
            return False
        self._last_reply = _NONE
        who = PendingRequest(link, message.request, 1, "push and pull" if pulls else "push")
        who.since = who.noted = time.monotonic()
        self._pending[id(who)] = who
        numbers = np.frombuffer(message.payload[0], shard.value.dtype)
        part = (form.key, form.number, message.meta["parts"][0][2], numbers)
        with who:
            store.push(rank, [part], who, pulls)
        return True

    def _write_request(self, rank: int, message: Message) -> None:
        by = ClientRequest((rank, self.clients[rank].incarnation, message.request))
        self._write({**message.meta, **header(by)}, message.payload)

    def _hello(self, link: int, request: int, hello: Hello) -> None:
        rank, life = hello
        require(rank in self.workers or (self._elastic and rank > max(self.workers)), f"worker {rank}: no such rank")
        self.workers.add(rank)
        if rank in self.lost_workers or rank in self.removed_workers:
            text = f"the job goes on without this worker: {self.lost_workers.get(rank) or self.removed_workers[rank]}"
            self._van.answer(link, Message(ERROR, request, {"text": text, "final": True}))
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
        self._reply(link, request)

    def _store(self, number: int) -> Store:
        store = self.stores.get(number)
        if store is None:
            raise MXNetError(f"there is no store {number} on this server")
        return store

    def _apply_change(self, rank: int, record: Any, message: Message) -> Record:
        """Do what changes the server's state by other things than rounds."""
        number = record.store
        if isinstance(record, Open):
            self._open(number, record.sync, record.slack)
            return self._resume_info(rank, number, message), []
        store, done = self._store(number), ({}, [])
        step = getattr(record, "step", None)
        if step is not None and step <= store.setup_steps.get(rank, 0):
            return done  # a preparation that a restarted worker repeats
        match record:
            case Put():
                serve_put(store, record, message.pieces(), self._van.alloc)
            case BatchEnd(_, batch, used):
                require(isinstance(store, ElasticStore), "the store is not that of an elastic job")
                assert isinstance(store, ElasticStore)
                store.commit_round(batch, used)
            case Drop(_, parts):
                for part in parts:
                    store.shards.pop(part, None)
                store.unsliced = True
            case OptimizerRequest(op):
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
        """Return what a restarted worker must know of a store: the placement of keys, and its completed rounds.

        A push of a round that is not over is no more than the server remembers, which may die as well.
        """
        if not parse(Open, message.meta).back:
            return {}
        store = self.stores[number]
        rounds: dict[Key, int] = {}
        for shard in store.shards.values():
            turn = shard.completed_round if store.sync else shard.last_push_of.get(rank, 0)
            rounds[shard.key] = min(rounds.get(shard.key, 1 << 62), turn)
        return {"is_unsliced": store.unsliced, "rounds": [[k, t] for k, t in rounds.items()]}

    # -- what outlives the server

    def _write(self, meta: dict[str, Any], payload: Any) -> None:
        if self._journal is not None and not self._replaying:
            self._snapshot_due = self._journal.append(meta, payload) or self._snapshot_due

    def _write_closed(self, number: int, closed: list[CompletedRound]) -> None:
        if not self._replaying:
            self._write(*rounds_record(number, closed))

    def _records(self) -> Iterator[Record]:
        for number, store in self.stores.items():
            yield header(Open(number, store.sync, store.slack)), []
            batch = store.batch if isinstance(store, ElasticStore) else 0
            yield header(StoreRecord(number, store.unsliced, list(store.setup_steps.items()), batch)), []
            for shard in store.shards.values():
                yield shard_record(number, shard)
            if isinstance(store, ElasticStore):
                yield from contribution_records(number, store)
            if self._control is not None:
                yield from self._control.records(number)
        for rank, client in self.clients.items():
            yield header(ClientRecord(rank, client.incarnation, list(client.completed_ids))), []
        for rank, reason in self.removed_workers.items():
            yield header(RemovalRecord(rank, reason)), []

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

    def _replay(self, message: Message) -> None:
        record = SERVER_RECORDS.read(message)
        match record:
            case ClientRecord(rank, life, numbers):
                client = self.clients.setdefault(rank, _Client())
                for number in numbers:
                    client.note(life, number)
            case RemovalRecord(rank, text):
                self.exclude(rank, text)
            case StoreRecord(number, is_unsliced, steps, batch):
                store = self._store(number)
                store.unsliced, store.setup_steps = is_unsliced, dict(steps)
                if isinstance(store, ElasticStore):
                    store.batch = batch
            case ShardRecord():
                restore_shard(self._store(record.store), record, message)
            case ContributionRecord():
                restore_contribution(self._store(record.store), record, message.pieces())
            case SumRecord(number, parts):
                restore_rounds(self._store(number), parts, message.pieces())
            case _:
                self._replay_request(record, message)

    def _replay_request(self, record: Any, message: Message) -> None:
        """Replay a worker's request, unless it was refused then as well."""
        by = parse(ClientRequest, message.meta).by
        if isinstance(record, Push | PushRows):
            store = self._store(record.store)
            parts = parse_pushes(store, record, message.pieces())
            with contextlib.suppress(MXNetError):
                store.push(by[0] if by else -1, parts, PendingRequest(-1, 0, len(parts), "push"))
            return
        self._apply_change(by[0] if by else -1, record, message)
        if by:
            self.clients.setdefault(by[0], _Client()).note(by[1], by[2])

    # -- answers

    def _pend(self, link: int, message: Message, asked: Any, what: str) -> PendingRequest:
        who = PendingRequest(link, message.request, len(asked.parts), what)
        who.since = who.noted = time.monotonic()
        who.priority = asked.priority or 0
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
        try:
            self._van.send(who.link, Message(REPLY, who.request, meta, payload, who.priority))
        except FormatError as e:
            self._send_error(who, f"the answer cannot be sent: {e}")

    def _send_error(self, who: PendingRequest, reason: str) -> None:
        self._pending.pop(id(who), None)
        self._van.answer(who.link, Message(ERROR, who.request, {"text": reason}))

    # -- members

    def fail_worker(self, rank: int, reason: str, left: bool = False) -> None:
        """Fail the rounds that lack worker `rank`, which has left (`left_workers`) or is dead.

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
        """Continue without worker `rank`."""
        if rank not in self.removed_workers and rank not in self.lost_workers:
            self.removed_workers[rank] = reason
            self._write(header(RemovalRecord(rank, reason)), [])
            for store in self.stores.values():
                store.remove_worker(rank)

    def status(self) -> dict[str, Any]:
        """Return rounds, bytes moved and stragglers, for `dualmx status`.

        `late` has the seconds that the longest request has waited for each worker.
        """
        now, waits = time.monotonic(), {}
        all_shards = [(store, h) for store in self.stores.values() for h in store.shards.values()]
        for store, h in all_shards:
            contributed = h.contributions.get(h.completed_round + 1, {})
            for _, _, who in h.waiters if store.sync else ():
                for rank in (r for r in store.workers if r not in contributed):
                    waits[rank] = max(waits.get(rank, 0.0), now - who.since)
        pushed = {str(r): max((h.last_round_of(r) for _, h in all_shards), default=0) for r in sorted(self.workers)}
        return {
            "stores": len(self.stores), "keys": len({(id(store), h.key) for store, h in all_shards}),
            "rounds": max((h.completed_round for _, h in all_shards), default=0), "received": self.received,
            "sent": self.sent,
            "memory": sum(h.value.nbytes for _, h in all_shards), "pushed": pushed,
            "late": {str(rank): round(seconds, 3) for rank, seconds in waits.items()},
        }  # fmt: skip

    def send_wait_notices(self) -> None:
        """Notify workers whose requests wait long whom they wait for, spending a bounded part of the time."""
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
            shard = None if who.finished else who.store.awaited(who)
            if shard is not None:
                text = texts.get(id(shard)) or texts.setdefault(id(shard), who.store.lacks(shard))
                self._van.answer(who.link, notice(WaitNotice(text, who.request)))
        now = time.monotonic()
        self._rests = now + REST * (now - began)
        for who in due:
            if not who.finished:
                who.noted = now
                self._pending[id(who)] = who


__all__ = ["KVServer", "Record", "RequestHandler", "UpdateFn", "parse_pushes", "serve_put"]
