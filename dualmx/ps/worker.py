"""The worker's side of key-value requests: slices arrays over the servers and puts the answers together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import MXNetError
from .customer import Customer, Peer, Ticket
from .frame import MAX_PAYLOAD, Message
from .placement import Slice, place
from .store import Key
from .twobit import pack


class Known(NamedTuple):
    """A key as a worker knows it.

    Attributes:
        shape, dtype: of the array.
        slices: where its parts are.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    slices: list[Slice]


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
        back: this worker takes the place of one that died.
    """

    def __init__(self, customer: Customer, servers: Sequence[Peer], bound: int, rank: int = 0, life: int = 0):
        self._customer, self.servers, self._bound = customer, list(servers), bound
        self.hello = {"op": "hello", "rank": rank, "life": life}
        self.back = False
        self.keys: dict[tuple[int, Key], Known] = {}
        self.rounds: dict[tuple[int, Key], int] = {}
        self._resumed: dict[tuple[int, Key], int] = {}
        self._steps: dict[int, int] = {}

    def wait(self, tickets: Sequence[Ticket]) -> list[Message]:
        """Wait for requests; see `Customer.wait`."""
        return self._customer.wait(tickets)

    def ask(self, server: int, what: str, meta: dict[str, Any], payload: Sequence[Any] = ()) -> Ticket:
        """Send a request to one server."""
        return self._customer.ask(self.servers[server], what, meta, payload)

    def ask_all(self, what: str, meta: dict[str, Any], payload: Sequence[Any] = ()) -> list[Ticket]:
        """Send the same request to all servers."""
        return [self.ask(s, what, meta, payload) for s in range(len(self.servers))]

    def step(self, store: int) -> int:
        """Count a one-time preparation of a store; one that a restarted worker repeats has the same number."""
        self._steps[store] = self._steps.get(store, 0) + 1
        return self._steps[store]

    def open(self, store: int, sync: bool, what: str) -> Opening:
        """Ask for a store on all servers; it is made by the first who asks."""
        return Opening(self, store, self.ask_all(what, {"op": "open", "store": store, "sync": sync, "back": self.back}))

    # -- keys

    def know(self, store: int, key: Key, shape: tuple[int, ...], dtype: np.dtype, whole: bool = False) -> Known:
        """Note a key and decide where its slices are; the same on every worker."""
        slices = place(key, math.prod(shape), dtype.itemsize, len(self.servers), self._bound, whole)
        if any((s.stop - s.start) * dtype.itemsize > MAX_PAYLOAD for s in slices):
            raise MXNetError(
                f"key {key!r}: {dtype.name}{list(shape)} is kept in one piece, as its optimizer needs, and "
                f"larger than {MAX_PAYLOAD >> 20} MiB; set update_on_kvstore=False"
            )
        known = self.keys[store, key] = Known(shape, dtype, slices)
        self.rounds[store, key] = self._resumed.get((store, key), 0)
        return known

    def put(self, store: int, arrays: dict[Key, np.ndarray], mode: str = "init", **more: Any) -> list[Ticket]:
        """Store the values of known keys; see `Store.put`."""
        sent = self._Batches(self, "init", {"op": "put", "store": store, "mode": mode, **more})
        for key, array in arrays.items():
            known, flat = self.keys[store, key], _flat(array)
            for s in known.slices:
                part = [key, s.number, known.dtype.name, s.stop - s.start, list(known.shape)]
                sent.add(s.server, part, flat[s.start : s.stop].view(np.uint8), key)
        return sent.send()

    def push(self, store: int, arrays: dict[Key, np.ndarray], threshold: float | None = None) -> list[Ticket]:
        """Push gradients for the next round of their keys; with `threshold` as 2-bit values."""
        meta: dict[str, Any] = {"op": "push", "store": store}
        if threshold is not None:
            meta["threshold"] = float(threshold)
        sent = self._Batches(self, "push", meta)
        for key, array in arrays.items():
            turn = self.rounds[store, key] = self.rounds[store, key] + 1
            flat = _flat(array)
            for s in self.keys[store, key].slices:
                piece = flat[s.start : s.stop]
                data = pack(piece) if threshold is not None else piece.view(np.uint8)
                sent.add(s.server, [key, s.number, turn], data, key)
        return sent.send()

    def pull(self, store: int, keys: Sequence[Key]) -> Pulled:
        """Ask for the values of keys after the rounds that this worker has pushed."""
        sent = self._Batches(self, "pull", {"op": "pull", "store": store})
        for key in keys:
            known = self.keys[store, key]
            for s in known.slices:
                size = (s.stop - s.start) * known.dtype.itemsize
                sent.add(s.server, [key, s.number, self.rounds[store, key]], None, key, size)
        return Pulled(self, store, keys, sent.send(), sent.parts)

    def drop(self, store: int, keys: Sequence[Key], **more: Any) -> list[Ticket]:
        """Make the servers forget keys; from now on keys are kept in one piece."""
        sent = self._Batches(self, "drop", {"op": "drop", "store": store, **more})
        for key in keys:
            for s in self.keys[store, key].slices:
                sent.add(s.server, [key, s.number], None, key)
        return sent.send()

    class _Batches:
        """Gathers parts into one message per server, or several where they grow large."""

        LIMIT = 256 << 20

        def __init__(self, worker: KVWorker, what: str, meta: dict[str, Any]):
            self._worker, self._what, self._meta = worker, what, meta
            self._open: dict[int, int] = {}
            self.parts: list[tuple[int, list[Any], list[Any], int]] = []

        def add(self, server: int, part: list[Any], data: Any, key: Key, size: int = 0) -> None:
            size = size or (0 if data is None else data.nbytes)
            at = self._open.get(server)
            if at is None or self.parts[at][3] + size > self.LIMIT or len(self.parts[at][1]) >= 10_000:
                at = self._open[server] = len(self.parts)
                self.parts.append((server, [], [], 0))
            server, parts, payload, total = self.parts[at]
            parts.append(part)
            if data is not None:
                payload.append(data)
            self.parts[at] = (server, parts, payload, total + size)

        def send(self) -> list[Ticket]:
            tickets = []
            for server, parts, payload, _ in self.parts:
                more = f" and {len(parts) - 1} more" if len(parts) > 1 else ""
                turn = f", round {parts[0][2]}," if self._what in ("push", "pull") else ""
                what = f"kvstore.{self._what} of key {parts[0][0]!r}{more}{turn} at server {server}"
                tickets.append(self._worker.ask(server, what, {**self._meta, "parts": parts}, payload))
            return tickets


class Opening:
    """A store that is being opened."""

    def __init__(self, worker: KVWorker, store: int, tickets: list[Ticket]):
        self._worker, self._store, self._tickets = worker, store, tickets

    def done(self) -> tuple[int, bool]:
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
        return least, any(r.meta.get("whole") is True for r in replies)


class Pulled:
    """Values under way."""

    def __init__(self, worker: KVWorker, store: int, keys: Sequence[Key], tickets: list[Ticket], parts: list[Any]):
        self._worker, self._store, self._keys = worker, store, keys
        self.tickets, self._parts = tickets, parts

    def values(self) -> dict[Key, np.ndarray]:
        """Wait for the arrays, in their shapes.

        Raises:
            MXNetError: see `Customer.wait`; or an answer of the wrong size.
        """
        replies = self._worker.wait(self.tickets)
        out: dict[Key, np.ndarray] = {}
        for key in self._keys:
            known = self._worker.keys[self._store, key]
            out[key] = np.empty(math.prod(known.shape), known.dtype)
        for reply, (server, parts, _, _) in zip(replies, self._parts, strict=True):
            data, at = reply.data(), 0
            for key, number, _ in parts:
                known = self._worker.keys[self._store, key]
                s = known.slices[number]
                size = (s.stop - s.start) * known.dtype.itemsize
                if at + size > data.nbytes:
                    raise MXNetError(f"kvstore.pull of key {key!r}: server {server} sent too few numbers")
                out[key][s.start : s.stop] = np.frombuffer(data[at : at + size], known.dtype)
                at += size
        return {k: v.reshape(self._worker.keys[self._store, k].shape) for k, v in out.items()}


def _flat(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1)


__all__ = ["KVWorker", "Known", "Pulled"]
