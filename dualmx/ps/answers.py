"""What a worker waits for: pushes and values under way, and stores that are being opened."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.errors import MXNetError
from .customer import Request
from .placement import Slice
from .store import Key

if TYPE_CHECKING:
    from .worker import KVWorker


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
    """The value of one slice, which is a whole array, under way; see `PullFuture`."""

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
        return least, any(r.meta.get("whole") is True for r in replies)


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
    """Values under way."""

    def __init__(
        self, worker: KVWorker, store: int, tickets: list[Request], parts: Sequence[Any], wholes: dict[Key, np.ndarray]
    ):
        self._worker, self._store = worker, store
        self.tickets, self._assembled = tickets, wholes
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
        """Wait for the array of a key, in its shape; it may be in memory that is read by others. It is given once.

        Raises:
            MXNetError: see `Customer.wait`; or an answer of the wrong size.
        """
        known = self._worker.keys[self._store, key]
        if len(known.slices) == 1:
            i, number = self._where[key][0]
            if i not in self._received:
                self._take(i)
            return np.frombuffer(self._pieces.pop((key, number)), known.dtype).reshape(known.shape)
        whole, loose = self._assembled.pop(key, None), {}
        for i, number in self._where[key]:
            if i not in self._received:
                self._take(i)
            if (key, number) in self._pieces:  # it was not received into its place
                loose[number] = self._pieces.pop((key, number))
        if whole is None:
            joined = self._worker.joined([loose[s.number] for s in known.slices])
            if joined is not None:
                return joined.view(known.dtype).reshape(known.shape)
            whole = self._worker.take(math.prod(known.shape) * known.dtype.itemsize).view(known.dtype)
        for number, piece in loose.items():
            s = known.slices[number]
            whole[s.start : s.stop] = np.frombuffer(piece, known.dtype)
        return whole.reshape(known.shape)

    def values(self) -> dict[Key, np.ndarray]:
        """Wait for all arrays; see `value`."""
        return {key: self.value(key) for key in self._where}


__all__ = ["KeyInfo", "OpenFuture", "PullFuture", "PushFuture", "SingleShardFuture"]
