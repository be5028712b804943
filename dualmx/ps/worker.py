"""`KVWorker`: slices arrays over the servers, packs messages, and assembles the replies; its futures."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.errors import MXNetError
from .codecs import Codec
from .customer import Customer, Peer, Request
from .protocol import Drop, Hello, Key, Open, Pull, PullRows, Push, PushOp, PushRows, Put, PutMode, header
from .sharding import Slice, slice_key
from .van.frame import MAX_PAYLOAD, HeaderTemplate

if TYPE_CHECKING:
    from .elastic_worker import ElasticWorker


class KeyInfo(NamedTuple):
    """A key as a worker knows it.

    Attributes:
        shape, dtype: of the array.
        slices: where its parts are.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    slices: list[Slice]


class SingleShardFuture:
    """The future of an unsliced value; see `PullFuture`."""

    def __init__(self, worker: KVWorker, known: KeyInfo, ticket: Request):
        self._worker, self._known, self._ticket = worker, known, ticket

    def value(self, key: Key) -> np.ndarray:
        """See `PullFuture.value`."""
        known, ticket = self._known, self._ticket
        reply = ticket.reply if ticket.reply is not None else self._worker.wait([ticket])[0]
        piece = reply.payload[0] if len(reply.payload) == 1 else reply.data()
        slice_ = known.slices[0]
        if piece.nbytes != (slice_.stop - slice_.start) * known.dtype.itemsize:
            raise _short_reply(key, slice_.server)
        ticket.release_payload()
        return np.frombuffer(piece, known.dtype).reshape(known.shape)


def _short_reply(key: Key, server: int) -> MXNetError:
    return MXNetError(f"kvstore.pull of key {key!r}: server {server} sent too few numbers")


class OpenFuture:
    """A store that is being opened."""

    def __init__(self, worker: KVWorker, store: int, tickets: list[Request]):
        self._worker, self._store, self._tickets = worker, store, tickets

    def wait(self) -> tuple[int, bool]:
        """Wait; returns the rounds that this worker has completed before it died, and whether keys are in one piece.

        Keys whose rounds differ by one were in the midst of a round: it is made again, with the same weights, and what
        the servers have of it already is not counted twice.
        """
        replies = self._worker.wait(self._tickets)
        found: dict[Key, int] = {}
        for reply in replies:
            for key, turn in reply.meta.get("rounds", ()):
                found[key] = min(found.get(key, turn), turn)
        least = min(found.values(), default=0)
        together = max(found.values(), default=0) - least <= 1
        for key, turn in found.items():
            self._worker._resumed[self._store, key] = least if together else turn
        return least, any(r.meta.get("is_unsliced") is True for r in replies)


class PushFuture:
    """Pushes that are sent together.

    Attributes:
        requests: of what was sent.
    """

    def __init__(self, worker: KVWorker):
        self._worker = worker
        self.requests: list[Request] | None = None

    def requests_after_flush(self) -> list[Request]:
        """The tickets, after sending what was not sent yet."""
        if self.requests is None:
            self._worker.flush()
        return self.requests or []


class PullFuture:
    """The future of pulled values."""

    def __init__(
        self,
        worker: KVWorker,
        store: int,
        tickets: list[Request],
        parts: Sequence[Any],
        unsliced: dict[Key, np.ndarray],
    ):
        self._worker, self._store = worker, store
        self.tickets, self._assembled = tickets, unsliced
        self._asked = [[(part[0], part[1]) for part in asked] for _, asked, _, _ in parts]
        self._where: dict[Key, list[tuple[int, int]]] = {}  # tickets that have slices of a key, and which
        for i, asked in enumerate(self._asked):
            for key, number in asked:
                self._where.setdefault(key, []).append((i, number))
        self._pieces: dict[tuple[Key, int], memoryview] = {}
        self._received: set[int] = set()

    def _take(self, i: int) -> None:
        """Wait for an answer, and take it apart."""
        ticket = self.tickets[i]
        reply = ticket.reply if ticket.reply is not None else self._worker.wait([ticket])[0]
        self._received.add(i)
        if (
            ticket.receive_buffer is not None
            and len(reply.payload) == 1
            and reply.payload[0].obj is ticket.receive_buffer
        ):
            ticket.release_payload()
            return
        data = reply.pieces()
        for key, number in self._asked[i]:
            known = self._worker.keys[self._store, key]
            s = known.slices[number]
            size = (s.stop - s.start) * known.dtype.itemsize
            self._pieces[key, number] = piece = data.read(size)
            if piece.nbytes != size:
                raise _short_reply(key, s.server)
        ticket.release_payload()

    def value(self, key: Key) -> np.ndarray:
        """Wait for the array of a key, in its shape, possibly in shared memory; call it once.

        Raises:
            MXNetError: see `Customer.wait`; or an answer of the wrong size.
        """
        known = self._worker.keys[self._store, key]
        if len(known.slices) == 1:
            i, number = self._where[key][0]
            if i not in self._received:
                self._take(i)
            return np.frombuffer(self._pieces.pop((key, number)), known.dtype).reshape(known.shape)
        assembled, loose = self._assembled.pop(key, None), {}
        for i, number in self._where[key]:
            if i not in self._received:
                self._take(i)
            if (key, number) in self._pieces:  # it was not received into its place
                loose[number] = self._pieces.pop((key, number))
        if assembled is None:
            joined = self._worker.joined([loose[s.number] for s in known.slices])
            if joined is not None:
                return joined.view(known.dtype).reshape(known.shape)
            assembled = self._worker.take(math.prod(known.shape) * known.dtype.itemsize).view(known.dtype)
        for number, piece in loose.items():
            s = known.slices[number]
            assembled[s.start : s.stop] = np.frombuffer(piece, known.dtype)
        return assembled.reshape(known.shape)

    def values(self) -> dict[Key, np.ndarray]:
        """Wait for all arrays; see `value`."""
        return {key: self.value(key) for key in self._where}


COALESCE_SECONDS = 0.02  # seconds that small pushes wait for others


class KVWorker:
    """Sends arrays to the servers and gets them back. Nothing here waits but `wait`.

    Args:
        customer: tracks the requests.
        servers: the servers, by rank.
        bound: arrays of as many elements are split over all servers.
        rank: of this worker.
        life: tells this process from others that have or had the same rank.

    Attributes:
        keys: what is known of the keys of stores.
        rounds: how often each key was pushed.
        is_restarted: this worker takes the place of one that died.
        on_first_push: called before this worker pushes for the first time, with its `position` and whether it
            was `idle`.
        lockstep: whether a synchronous store is open, whose rounds all workers push alike.
        elastic: in elastic jobs, which batch pushes belong to; None in others.
    """

    def __init__(self, customer: Customer, servers: Sequence[Peer], bound: int, rank: int = 0, life: int = 0):
        self._customer, self.servers, self._bound = customer, list(servers), bound
        self.take, self.joined, self.wait = customer.alloc, customer.joined, customer.wait
        self.introduction = header(Hello(rank, life))
        self.is_restarted = self.lockstep = False
        self.on_first_push: Callable[[int, bool], None] | None = None
        self.elastic: ElasticWorker | None = None
        self._synchronous: set[int] = set()
        self.keys: dict[tuple[int, Key], KeyInfo] = {}
        self.rounds: dict[tuple[int, Key], int] = {}
        self._resumed: dict[tuple[int, Key], int] = {}
        self._lock = threading.RLock()
        self._outbox: KVWorker.MessageBatcher | None = None
        self._queued_since = 0.0
        self._waiting = threading.Event()
        self._watched = False  # the flusher looks after what is queued
        self._flusher: threading.Thread | None = None
        self._prefetched: dict[tuple[int, Key], PullFuture | SingleShardFuture] = {}  # asked for before they are pulled
        self._prefetch_keys: set[tuple[int, Key]] = set()  # pulled after each push
        self._unpulled: dict[int, dict[Key, None]] = {}  # pushed and not pulled since, in order
        self._setup_steps: dict[int, int] = {}
        self._header_templates: dict[tuple[str, int, Key], HeaderTemplate] = {}

    def shares(self, server: int) -> bool:
        """Whether a server and this process see memory of each other."""
        return self._customer.shares(self.servers[server].link)

    def forked(self) -> None:
        """In a forked child; see `Customer.forked`."""
        self._lock, self._flusher, self._watched = threading.RLock(), None, False

    def ask(
        self,
        server: int,
        what: str,
        meta: dict[str, Any],
        payload: Sequence[Any] = (),
        priority: int | None = None,
        into: np.ndarray | None = None,
    ) -> Request:
        """Send a request to one server, after the queued ones; for `priority` and `into` see `Customer.ask`."""
        with self._lock:
            if self._outbox is not None:
                self.flush()
            return self._customer.send_request(self.servers[server], what, meta, payload, priority, into)

    def ask_all(self, what: str, meta: dict[str, Any], payload: Sequence[Any] = ()) -> list[Request]:
        """Send the same request to all servers."""
        return [self.ask(s, what, meta, payload) for s in range(len(self.servers))]

    @property
    def position(self) -> int:
        """Where in its script this worker is: rounds of synchronous stores that it has pushed, the same for all."""
        return sum(turn for (store, _), turn in self.rounds.items() if store in self._synchronous)

    @property
    def idle(self) -> bool:
        """Whether neither this worker nor the one before it has pushed anything."""
        return not any(self.rounds.values())

    def next_setup_step(self, store: int) -> int:
        """Count a one-time preparation of a store; one that a restarted worker repeats has the same number."""
        self._setup_steps[store] = self._setup_steps.get(store, 0) + 1
        return self._setup_steps[store]

    def open(self, store: int, sync: bool, what: str, slack: int | None = None) -> OpenFuture:
        """Open a store on all servers; the first worker creates it. See `Store` for `sync` and `slack`."""
        if self.elastic is not None and sync:
            self.elastic.stores.append(store)
        elif sync:
            self._synchronous.add(store)
            self.lockstep = True
        asked = header(Open(store, sync, slack, self.is_restarted))
        return OpenFuture(self, store, self.ask_all(what, asked))

    # -- keys

    def register_key(
        self, store: int, key: Key, shape: tuple[int, ...], dtype: np.dtype, is_unsliced: bool = False
    ) -> KeyInfo:
        """Note a key and decide where its slices are; the same on every worker."""
        width = math.prod(shape[1:])
        slices = slice_key(key, math.prod(shape), dtype.itemsize, len(self.servers), self._bound, is_unsliced, width)
        if any((s.stop - s.start) * dtype.itemsize > MAX_PAYLOAD for s in slices):
            raise MXNetError(
                f"key {key!r}: {dtype.name}{list(shape)} is kept in one piece, as its optimizer needs, and "
                f"larger than {MAX_PAYLOAD >> 20} MiB; set update_on_kvstore=False"
            )
        known = self.keys[store, key] = KeyInfo(shape, dtype, slices)
        self.rounds[store, key] = self._resumed.get((store, key), 0)
        return known

    def put(
        self, store: int, arrays: dict[Key, np.ndarray], mode: PutMode = PutMode.INIT, tables: list[Key] | None = None,
        step: int | None = None,
    ) -> list[Request]:  # fmt: skip
        """Store the values of known keys; see `Store.put`."""
        sent = self.MessageBatcher(self, "init", Put(store, [], mode, tables, step))
        for key, array in arrays.items():
            known, flat = self.keys[store, key], _flat(array)
            for s in known.slices:
                part = [key, s.number, known.dtype.name, s.stop - s.start, list(known.shape)]
                sent.add(s.server, part, flat[s.start : s.stop].view(np.uint8))
        return sent.send()

    def push(self, store: int, arrays: dict[Key, np.ndarray], code: Codec | None = None) -> list[Request]:
        """Push gradients for the next round of their keys; with `code` packed."""
        with self._lock:
            self.flush()
            return self._add_pushes(store, arrays, code, self.MessageBatcher(self, "push", _push(store, code))).send()

    def push_coalesced(
        self, store: int, arrays: dict[Key, np.ndarray], code: Codec | None = None, terms: int = 1, priority: int = 0
    ) -> PushFuture:
        """As `push`, but small arrays wait for others: until the next request, or for a moment.

        Each array holds `terms` terms, which the servers add up one after the other. What waits leaves
        in the order of falling `priority`.

        Keys that are pulled after each push are asked for at once: the value of a round tells that it is over.
        """
        with self._lock:
            # One message holds one round of a key.
            if self._outbox is not None and not self._outbox.keys.keys().isdisjoint(arrays):
                self.flush()
            # A message becomes a pushpull only if all its keys were pulled after their last pushes.
            usual = True
            for key in arrays:
                if self._prefetched:
                    self._cancel_prefetch(store, key)
                usual = usual and (store, key) in self._prefetch_keys
            push = _push(store, code, terms, PushOp.PUSHPULL if usual else PushOp.PUSH)
            if self._outbox is None or self._outbox.record != push:
                if self._outbox is not None:
                    self.flush()
                self._outbox = self.MessageBatcher(self, "push and pull" if usual else "push", push)
                self._queued_since = time.monotonic()
                if not self._watched:
                    self._wake()
            self._outbox.priority = priority
            batches = self._add_pushes(store, arrays, code, self._outbox)
            if batches.size >= self.MessageBatcher.LIMIT * len(self.servers):
                self.flush()
            return batches.queued

    def _add_pushes(self, store: int, arrays: dict[Key, np.ndarray], code: Codec | None, sent: Any) -> Any:
        for key, array in arrays.items():
            turn = self.next_round(store, key)
            slices, flat = self.keys[store, key].slices, _flat(array)
            if len(slices) == 1 and code is None:  # whatever the number of terms
                sent.wait_with(slices[0].server, [key, 0, turn], flat.view(np.uint8), key)
                continue
            terms = flat.reshape(-1, slices[-1].stop)
            for s in slices:
                piece = terms[0, s.start : s.stop] if len(terms) == 1 else _flat(terms[:, s.start : s.stop])
                data = code.pack(piece) if code is not None else piece.view(np.uint8)
                sent.wait_with(s.server, [key, s.number, turn], data, key)
        return sent

    def next_round(self, store: int, key: Key) -> int:
        """Count a push of a key; a prefetched value is out of date."""
        if self.on_first_push is not None:
            tell, self.on_first_push = self.on_first_push, None
            tell(self.position, self.idle)
        turn = self.rounds[store, key] + 1
        if self.elastic is not None and store in self.elastic.stores:
            turn = self.elastic.round_of_push()
        self.rounds[store, key] = turn
        if self._prefetched:
            self._cancel_prefetch(store, key)
        self._unpulled.setdefault(store, {})[key] = None
        return turn

    def last_round(self, store: int, key: Key) -> int:
        """Return the round whose value a pull of a key requests."""
        if self.elastic is not None and store in self.elastic.stores:
            return self.elastic.number - 1
        return self.rounds[store, key]

    def _cancel_prefetch(self, store: int, key: Key) -> None:
        """A key is pushed without a pull since its last push, so its prefetched value is not wanted."""
        if self._prefetched.pop((store, key), None) is not None:
            self._prefetch_keys.discard((store, key))

    def flush(self) -> None:
        """Send what was queued."""
        with self._lock:
            batches, self._outbox = self._outbox, None
            if batches is not None:
                push = batches.record
                if len(batches.later) == 1 and not batches.parts and push.apart is None and push.code is None:
                    self._send_single(batches, push.op, push.store)
                    return
                batches.queued.requests = batches.send()
                if push.op is PushOp.PUSHPULL:
                    pulled = PullFuture(self, push.store, batches.queued.requests, batches.parts, batches.unsliced)
                    for key in batches.keys:
                        self._prefetched[push.store, key] = pulled

    def _send_single(self, batches: KVWorker.MessageBatcher, op: PushOp, store: int) -> None:
        """Send a push of one array in one slice: what `MessageBatcher.send` does, with the least work."""
        ((priority, server, (key, number, turn), data),) = batches.later
        form = self._header_templates.get((op, store, key))
        if form is None:
            form = HeaderTemplate(header(batches.record), key, number)
            self._header_templates[op, store, key] = form
        header_fields = form.with_round(turn)
        if priority:
            header_fields = {**header_fields, "priority": priority}
        what = f"kvstore.{batches.what} of key {key!r}, round {turn}, at server {server}"
        ticket = self._customer.send_request(self.servers[server], what, header_fields, (data,), priority)
        batches.queued.requests = [ticket]
        if op is PushOp.PUSHPULL:
            self._prefetched[store, key] = SingleShardFuture(self, self.keys[store, key], ticket)

    def _wake(self) -> None:
        if self._flusher is None:
            self._flusher = threading.Thread(target=self._flush_loop, name="dualmx-flush", daemon=True)
            self._flusher.start()
        self._watched = True
        self._waiting.set()

    def _flush_loop(self) -> None:
        """Send what was queued and is followed by nothing."""
        # Sleeps instead of waiting for each push: waking this thread would cost as much as the push.
        pause = COALESCE_SECONDS
        while True:
            self._waiting.wait()
            time.sleep(pause)
            pause = COALESCE_SECONDS
            with self._lock:
                since = time.monotonic() - self._queued_since
                if self._outbox is not None and since < COALESCE_SECONDS:
                    pause = COALESCE_SECONDS - since
                elif self._outbox is not None:
                    self.flush()
                elif since >= 4 * COALESCE_SECONDS:  # till then, what is queued wakes nobody
                    self._watched = False
                    self._waiting.clear()

    def pull(self, store: int, keys: Sequence[Key], priority: int | None = None) -> PullFuture:
        """Request the values of keys after the rounds that this worker has pushed.

        With a `priority` the request may overtake pushes, which changes nothing where rounds are waited for.
        """
        sent = self.MessageBatcher(self, "pull", Pull(store, []), priority)
        for key in keys:
            known = self.keys[store, key]
            for s in known.slices:
                size = (s.stop - s.start) * known.dtype.itemsize
                sent.add(s.server, [key, s.number, self.last_round(store, key)], None, size)
        return PullFuture(self, store, sent.send(), sent.parts, sent.unsliced)

    def pull_prefetched(
        self, store: int, keys: Sequence[Key], ahead: bool, priority: int = 0
    ) -> Callable[[Key], np.ndarray]:
        """As `pull`; returns what waits for the value of a key.

        With `ahead`, the other keys that are pulled after each push are asked for by the way: a round of a store has
        one value, whoever asks when.
        """
        with self._lock:
            queued = self._outbox
            if queued is not None:
                if queued.record.store == store and queued.keys.keys() == set(keys):
                    queued.what, queued.record = "push and pull", queued.record._replace(op=PushOp.PUSHPULL)
                self.flush()
            if ahead and len(keys) == 1 and (store, keys[0]) in self._prefetched:
                self._prefetch_keys.add((store, keys[0]))
                self._unpulled[store].pop(keys[0], None)
                return self._prefetched.pop((store, keys[0])).value
            missing = [k for k in keys if (store, k) not in self._prefetched]
            if missing:
                unread = self._unpulled.get(store, {})
                more = [k for k in unread if (store, k) in self._prefetch_keys and k not in keys]
                more = [k for k in more if (store, k) not in self._prefetched]
                pulled = self.pull(store, [*missing, *more], priority if ahead else None)
                for key in (*missing, *more):
                    self._prefetched[store, key] = pulled
            for key in keys:
                if ahead:
                    self._prefetch_keys.add((store, key))
                self._unpulled.get(store, {}).pop(key, None)
            found = {k: self._prefetched.pop((store, k)) for k in dict.fromkeys(keys)}
        return lambda key: found[key].value(key)

    def drop_prefetched(self) -> None:
        """Drop prefetched values, which may have changed."""
        with self._lock:
            self._prefetched.clear()

    def drop(self, store: int, keys: Sequence[Key], first: int = 0, step: int | None = None) -> list[Request]:
        """Make the servers forget the slices of keys from number `first` on; from now on keys are kept in one piece."""
        sent = self.MessageBatcher(self, "drop", Drop(store, [], step))
        for key in keys:
            for s in self.keys[store, key].slices[first:]:
                sent.add(s.server, [key, s.number], None)
        return sent.send()

    class MessageBatcher:
        """Gathers parts into one message per server, or several where they grow large.

        Attributes:
            record: what is sent but for its parts.
            priority: of the parts that come next; None for messages that keep their place.
            unsliced: arrays whose slices come from several servers, each of which is received where it belongs.
        """

        LIMIT = 4 << 20  # bytes; one is summed and updated while the next is on its way
        MOST = 6 << 20  # what is begun is filled up to so many: few messages, few programs

        def __init__(self, worker: KVWorker, what: str, record: Any, priority: int | None = None):
            self._worker, self.what, self.record, self.priority = worker, what, record, priority
            self.later: list[tuple[int | None, int, list[Any], Any]] = []
            self._first: list[int | None] = []  # priority of each message: that of its first part
            self.keys: dict[Key, None] = {}
            self.queued = PushFuture(worker)
            self.size = 0
            self._open: dict[int, int] = {}
            self.parts: list[tuple[int, list[Any], list[Any], int]] = []
            self.unsliced: dict[Key, np.ndarray] = {}

        def wait_with(self, server: int, part: list[Any], data: Any, key: Key) -> None:
            """As `add`, when all are there, in the order of their priorities."""
            self.size += data.nbytes
            self.keys[key] = None
            self.later.append((self.priority, server, part, data))

        def add(self, server: int, part: list[Any], data: Any, size: int = 0) -> int:
            """Put a part into a message; returns which one."""
            size = size or (0 if data is None else data.nbytes)
            alone = self._alone(server, part)
            at = None if alone else self._open.get(server)
            if at is None or self.parts[at][3] + size > self._room(at) or len(self.parts[at][1]) >= 10_000:
                at = len(self.parts)
                if not alone:
                    self._open[server] = at
                self.parts.append((server, [], [], 0))
                self._first.append(self.priority)
            server, parts, payload, total = self.parts[at]
            parts.append(part)
            if data is not None:
                payload.append(data)
            self.parts[at] = (server, parts, payload, total + size)
            return at

        def _alone(self, server: int, part: list[Any]) -> bool:
            """Whether the reply is one slice of several, sent inline: it can be received in place."""
            if len(self._worker.keys[self.record.store, part[0]].slices) == 1:
                return False
            record = self.record
            pulls = isinstance(record, Pull) or isinstance(record, Push) and record.op is PushOp.PUSHPULL
            return pulls and not self._worker.shares(server)

        def _place(self, key: Key, number: int) -> np.ndarray:
            """Memory of a slice, as bytes, within that of its array."""
            known = self._worker.keys[self.record.store, key]
            if key not in self.unsliced:
                nbytes = math.prod(known.shape) * known.dtype.itemsize
                self.unsliced[key] = self._worker.take(nbytes).view(known.dtype)
            s = known.slices[number]
            return self.unsliced[key][s.start : s.stop].view(np.uint8)

        def _room(self, at: int) -> int:
            return self.MOST if self.parts[at][3] < self.LIMIT else self.LIMIT

        def send(self) -> list[Request]:
            for priority, server, part, data in sorted(self.later, key=lambda one: -(one[0] or 0)):
                self.priority = priority
                self.add(server, part, data)
            tickets = []
            for (server, parts, payload, _), priority in zip(self.parts, self._first, strict=True):
                more = f" and {len(parts) - 1} more" if len(parts) > 1 else ""
                is_round = isinstance(self.record, Push | PushRows | Pull | PullRows)
                turn = f", round {parts[0][2]}," if is_round else ""
                what = f"kvstore.{self.what} of key {parts[0][0]!r}{more}{turn} at server {server}"
                meta = header(self.record._replace(parts=parts))
                if priority:
                    meta["priority"] = priority
                into = self._place(*parts[0][:2]) if self._alone(server, parts[0]) else None
                tickets.append(self._worker.ask(server, what, meta, payload, priority, into))
            return tickets


def _push(store: int, code: Codec | None, apart: int = 1, op: PushOp = PushOp.PUSH) -> Push:
    return Push(op, store, [], apart if apart > 1 else None, code)


def _flat(array: np.ndarray) -> np.ndarray:
    flat = array.reshape(-1)
    return flat if flat.flags.c_contiguous else np.ascontiguousarray(flat)


__all__ = ["KVWorker", "KeyInfo", "OpenFuture", "PullFuture", "PushFuture", "SingleShardFuture"]
