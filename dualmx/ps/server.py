"""The server's side of key-value requests: checks what arrives, hands it to the stores, sends the answers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.dtypes import NAMES, as_dtype
from ..core.errors import ArgumentTypeError, FormatError, MXNetError
from .frame import ERROR, NOTE, REPLY, REQUEST, Message
from .store import Apply, Key, Parked, Store, require
from .twobit import packed_size, unpack
from .van import Van

_log = logging.getLogger("dualmx.dist")
PATIENCE = 10.0  # seconds between two notes to a worker whose request waits for others
MAX_PARTS = 1 << 20

Control = Callable[[str, "Store", int, Message], tuple[dict[str, Any], list[Any]]]


class KVServer:
    """Answers `open`, `put`, `push`, `pull` and, through `control`, what concerns the optimizer.

    Args:
        van: sends the answers.
        workers: number of workers of the job.
        control: `control(op, store, store_id, message) -> (meta, payload)` for all other requests.

    Attributes:
        stores: by number.
        ranks: worker of each link.
    """

    def __init__(self, van: Van, workers: int, control: Control | None = None):
        self._van, self._workers, self._control = van, workers, control
        self.stores: dict[int, Store] = {}
        self.ranks: dict[int, int] = {}
        self.gone: dict[int, str] = {}
        self._parked: dict[int, Parked] = {}

    def on_message(self, link: int, message: Message) -> None:
        """Serve one message of a worker."""
        if message.kind != REQUEST:
            return
        try:
            self._serve(link, message)
        except MXNetError as e:
            self._van.send(link, Message(ERROR, message.request, {"text": str(e)}))

    def _serve(self, link: int, message: Message) -> None:
        op = message.take("op", str)
        if op == "hello":
            rank = message.take("rank", int)
            require(0 <= rank < self._workers, f"worker {rank} of {self._workers}: no such rank")
            self.ranks[link] = rank
            self._reply(link, message.request)
            return
        require(link in self.ranks, "introduce yourself first")
        number = message.take("store", int)
        if op == "open":
            self._open(number, message.take("sync", bool))
            self._reply(link, message.request)
            return
        store = self.stores.get(number)
        require(store is not None, f"there is no store {number} on this server")
        assert store is not None
        if op == "put":
            self._put(store, message)
            self._reply(link, message.request)
        elif op == "push":
            parts = self._pushed(store, message)
            who = self._park(link, message, len(parts), "push")
            with who.ended_by_errors():
                store.push(self.ranks[link], parts, who)
        elif op == "pull":
            wanted = self._parts(message, (str, int), int, int)
            who = self._park(link, message, len(wanted), "pull")
            with who.ended_by_errors():
                store.pull(wanted, who)
        elif op == "drop":
            for key, slice_ in self._parts(message, (str, int), int):
                store.held.pop((key, slice_), None)
            self._reply(link, message.request)
        else:
            require(self._control is not None, f"unknown request {op!r}")
            assert self._control is not None
            meta, payload = self._control(op, store, number, message)
            self._reply(link, message.request, meta, payload)

    def _open(self, number: int, sync: bool) -> None:
        store = self.stores.get(number)
        if store is None:
            require(len(self.stores) < 4096, "too many stores")
            self.stores[number] = store = Store(range(self._workers), sync, self._done, self._failed)
            for rank, reason in self.gone.items():
                store.lose(rank, reason)
        require(store.sync == sync, f"store {number} is {'synchronous' if store.sync else 'asynchronous'}")

    # -- what is in a message

    def _parts(self, message: Message, *kinds: Any) -> list[Any]:
        parts = message.take("parts", list)
        if len(parts) > MAX_PARTS:
            raise FormatError(f"{len(parts)} parts in a message")
        for part in parts:
            good = isinstance(part, list) and len(part) == len(kinds)
            if not good or not all(isinstance(v, k) and v is not True for v, k in zip(part, kinds, strict=True)):
                raise FormatError(f"message {message.meta.get('op')!r}: part {part!r}: not as expected")
        return [tuple(part) for part in parts]

    def _put(self, store: Store, message: Message) -> None:
        data, at = message.data(), 0
        made: list[tuple[Key, int, np.ndarray, tuple[int, ...]]] = []
        for key, number, name, size, shape in self._parts(message, (str, int), int, str, int, list):
            if name not in NAMES or not all(isinstance(n, int) and n >= 0 for n in shape) or size < 0:
                raise FormatError(f"key {key!r}: {name}{shape}: no array")
            try:
                dtype = as_dtype(name)
            except ArgumentTypeError as e:
                raise FormatError(str(e)) from None
            end = at + size * dtype.itemsize
            if end > data.nbytes:
                raise FormatError(f"key {key!r}: the numbers are missing")
            made.append((key, number, np.frombuffer(data[at:end], dtype).copy(), tuple(shape)))
            at = end
        if at != data.nbytes:
            raise FormatError("more numbers than announced")
        keep = message.meta.get("keep") is True
        for one in made:
            store.put(*one, keep_round=keep)

    def _pushed(self, store: Store, message: Message) -> list[tuple[Key, int, int, np.ndarray]]:
        data, at = message.data(), 0
        threshold = message.meta.get("threshold")
        if threshold is not None and not (isinstance(threshold, float) and threshold > 0):
            raise FormatError(f"threshold={threshold!r}: expected a number above 0")
        parts = []
        for key, number, turn in self._parts(message, (str, int), int, int):
            value = store.at(key, number).value
            size = value.nbytes if threshold is None else packed_size(value.size)
            piece = data[at : at + size]
            if piece.nbytes != size:
                raise FormatError(f"push of key {key!r}: {piece.nbytes} bytes, expected {size}")
            if threshold is None:
                numbers = np.frombuffer(piece, value.dtype)
            else:
                numbers = unpack(np.frombuffer(piece, np.uint8), value.size, threshold)
            parts.append((key, number, turn, numbers))
            at += size
        if at != data.nbytes:
            raise FormatError(
                f"push: {data.nbytes - at} bytes more than expected; was an array pushed as another type?"
            )
        return parts

    # -- answers

    def _park(self, link: int, message: Message, parts: int, what: str) -> Parked:
        who = Parked(link, message.request, parts, what)
        who.since = time.monotonic()
        self._parked[id(who)] = who
        return who

    def _reply(self, link: int, request: int, meta: dict[str, Any] | None = None, payload: Any = ()) -> None:
        self._van.send(link, Message(REPLY, request, meta or {}, payload))

    def _done(self, who: Parked) -> None:
        self._parked.pop(id(who), None)
        values = [v.view(np.uint8) for v in who.values if v is not None and v.size]
        self._reply(who.link, who.request, payload=values)

    def _failed(self, who: Parked, reason: str) -> None:
        self._parked.pop(id(who), None)
        self._van.send(who.link, Message(ERROR, who.request, {"text": reason}))

    # -- members

    def lose(self, rank: int, reason: str) -> None:
        """Worker `rank` has left or died: rounds that lack it end in an error."""
        if rank not in self.gone:
            self.gone[rank] = reason
            for store in self.stores.values():
                store.lose(rank, reason)

    def tick(self) -> None:
        """Tell workers whose requests wait for long what they wait for."""
        now = time.monotonic()
        for who in list(self._parked.values()):
            if who.over:
                self._parked.pop(id(who), None)
            elif now - who.since > PATIENCE:
                who.since = now
                for store in self.stores.values():
                    text = store.missing(who)
                    if text is not None:
                        self._van.send(who.link, Message(NOTE, 0, {"op": "waiting", "text": text}))


__all__ = ["Apply", "Control", "KVServer"]
