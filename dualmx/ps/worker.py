"""The worker's side of key-value requests: slices arrays over the servers and puts the answers together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import MXNetError
from .customer import Customer, Ticket
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
        servers: link of each server, by rank.
        bound: arrays of as many elements are split over all servers.
        gone: tells why a server (by rank) is gone, "" if it is not.
    """

    def __init__(
        self, customer: Customer, servers: Sequence[int], bound: int, gone: Callable[[int], str] | None = None
    ):
        self._customer, self._servers, self._bound = customer, list(servers), bound
        self._gone = gone or (lambda rank: "")
        self.keys: dict[tuple[int, Key], Known] = {}
        self.rounds: dict[tuple[int, Key], int] = {}

    def wait(self, tickets: Sequence[Ticket]) -> list[Message]:
        """Wait for requests; see `Customer.wait`."""
        return self._customer.wait(tickets)

    def ask(self, server: int, what: str, meta: dict[str, Any], payload: Sequence[Any] = ()) -> Ticket:
        """Send a request to one server."""
        return self._customer.ask(
            self._servers[server], f"server {server}", what, meta, payload, note=self._gone(server)
        )

    def ask_all(self, what: str, meta: dict[str, Any], payload: Sequence[Any] = ()) -> list[Ticket]:
        """Send the same request to all servers."""
        return [self.ask(s, what, meta, payload) for s in range(len(self._servers))]

    # -- keys

    def know(self, store: int, key: Key, shape: tuple[int, ...], dtype: np.dtype, whole: bool = False) -> Known:
        """Note a key and decide where its slices are; the same on every worker."""
        slices = place(key, math.prod(shape), dtype.itemsize, len(self._servers), self._bound, whole)
        if any((s.stop - s.start) * dtype.itemsize > MAX_PAYLOAD for s in slices):
            raise MXNetError(
                f"key {key!r}: {dtype.name}{list(shape)} is kept in one piece, as its optimizer needs, and "
                f"larger than {MAX_PAYLOAD >> 20} MiB; set update_on_kvstore=False"
            )
        known = self.keys[store, key] = Known(shape, dtype, slices)
        self.rounds[store, key] = 0
        return known

    def put(self, store: int, arrays: dict[Key, np.ndarray], keep: bool = False) -> list[Ticket]:
        """Store the values of known keys; `keep` leaves the rounds as they are."""
        sent = self._Batches(self, "init", {"op": "put", "store": store, "keep": keep})
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

    def drop(self, store: int, keys: Sequence[Key]) -> list[Ticket]:
        """Make the servers forget keys."""
        sent = self._Batches(self, "drop", {"op": "drop", "store": store})
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
