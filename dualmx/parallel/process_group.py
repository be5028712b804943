"""`ProcessGroup`: collectives on NumPy arrays, on which those of NDArrays are built."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from ..core.errors import ArgumentError, MXNetError
from ..ps import PeerLinks
from ..ps.van.frame import Message
from .buffer_pool import pool
from .reduce_ops import reduce_values
from .shm_allreduce import SharedMemoryAllReduce

MAX_GATHERED_BYTES = 128 << 10  # bytes up to which every process simply gets the arrays of all others
JOINED = "join"
MAX_MESSAGE_BYTES = 256 << 20  # most bytes of one message


class ProcessGroup:
    """Some processes of a job, all of which call the same exchanges in the same order.

    Args:
        ranks: of the members in the job, in ascending order.
        peers: links to them, None if this process is alone.
        name: the same in all members, and of no other group.
        rank: of this process in the job.

    Attributes:
        ranks: of the members in the job.
        rank: number of this process in the group, -1 if it is no member.
        size: how many members there are.

    Example:
        >>> from dualmx import parallel
        >>> parallel.new_group([0]).size
        1
    """

    def __init__(self, ranks: Sequence[int], peers: PeerLinks | None, name: str, rank: int):
        self.ranks = tuple(ranks)
        self.rank = self.ranks.index(rank) if rank in self.ranks else -1
        self.size = len(self.ranks)
        self.peers = peers
        self.name = name
        self._numbers = itertools.count()
        self._named: dict[str, int] = {}
        self._shm: SharedMemoryAllReduce | None = None
        self._shm_negotiated = False
        self._thread: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Group(ranks={list(self.ranks)})"

    # -- order

    def run_in_order(self, work: Callable[[], Any]) -> Any:
        """Run an exchange after those that were begun before."""
        return work() if self._thread is None else self.run_async(work).result()

    def run_async(self, work: Callable[[], Any]) -> Future[Any]:
        """Run an exchange on the group's own thread, after those that were begun before."""
        with self._lock:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, "dualmx-exchange")
        return self._thread.submit(work)

    def _links(self, what: str) -> PeerLinks:
        if self.rank < 0:
            raise ArgumentError(f"{what}: this process is not in {self!r}")
        if self.peers is None:
            raise MXNetError(f"{what}: this process is alone")
        return self.peers

    def _others(self) -> list[int]:
        return [i for i in range(self.size) if i != self.rank]

    def _channel(self) -> str:
        """What the next exchange is called, which is counted."""
        self._count_round()
        return self._next()

    def _next(self) -> str:
        return f"{self.name}:{next(self._numbers)}"

    def _count_round(self) -> None:
        if self.peers is not None:
            self.peers.traffic.rounds += 1

    # -- messages of one exchange

    def send(self, to: int, channel: str, head: dict[str, Any], array: np.ndarray) -> None:
        """Send a contiguous array to a member; `head` describes it."""
        assert self.peers is not None
        flat = array.reshape(-1).view(np.uint8) if array.size else np.empty(0, np.uint8)
        self.peers.traffic.sent += flat.size
        for at in range(0, max(flat.size, 1), MAX_MESSAGE_BYTES):
            self.peers.send(self.ranks[to], channel, head if at == 0 else {}, [flat[at : at + MAX_MESSAGE_BYTES]])

    def receive(
        self, sources: Sequence[int], channel: str, what: str, mine: dict[str, Any] | None = None,
        out: np.ndarray | None = None,
    ) -> tuple[int, np.ndarray]:  # fmt: skip
        """Return the next array on a channel of one of the members `sources`, and that member.

        Args:
            mine: what the sender's `head` must be, but for values that are None here.
            out: contiguous array that the values are written to, if shapes and dtypes agree.

        Raises:
            MXNetError: they are gone. ArgumentError: another head.
        """
        peers = self._links(what)
        rank, message = peers.receive(channel, [self.ranks[s] for s in sources], what)
        member = self.ranks.index(rank)
        head = message.meta
        if mine is not None:
            self._agree(peers, channel, rank, head, mine, what)
        return member, self._receive_rest(message, what, channel, rank, out)

    def _receive_rest(
        self, message: Message, what: str, channel: str = "", rank: int = -1, out: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the array that starts with a message; the rest is received from process `rank`."""
        peers = self._links(what)
        dtype, shape = np.dtype(message.meta["d"]), tuple(message.meta["s"])
        pieces = message.pieces()
        size = dtype.itemsize * int(np.prod(shape))
        peers.traffic.received += size
        if out is not None and (out.shape != shape or out.dtype != dtype):
            raise ArgumentError(
                f"{what}: process {rank} sent {dtype.name} {shape}; it does not fit into {out.dtype.name} {out.shape}"
            )
        if pieces.left == size and out is None:
            return np.frombuffer(pieces.read(size), dtype).reshape(shape)
        array = np.empty(shape, dtype) if out is None else out
        flat = array.reshape(-1).view(np.uint8) if size else np.empty(0, np.uint8)
        at = 0
        while True:
            got = pieces.left
            flat[at : at + got] = np.frombuffer(pieces.read(got), np.uint8)
            at += got
            if at >= size:
                return array
            pieces = peers.receive(channel, [rank], what)[1].pieces()

    def _agree(
        self, peers: PeerLinks, channel: str, rank: int, theirs: dict[str, Any], mine: dict[str, Any], what: str
    ) -> None:
        if all(v is None or theirs.get(k) == v for k, v in mine.items()):
            return
        here, there = _described(mine), _described(theirs)
        me = self.ranks[self.rank]
        text = f"the processes disagree: process {rank} calls {there}, process {me} {here}"
        peers.cancel_channel(channel, text, self.ranks)
        raise ArgumentError(f"{what}: {text}")

    def _exchange(self, what: str, head: dict[str, Any], arrays: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        """Send one array to each member, and return the received ones by member; None: nothing is sent."""
        self._links(what)
        channel = self._channel()
        mine = {k: v for k, v in head.items() if k != "s"} | ({"s": None} if "s" in head else {})
        for i in self._others():
            a = arrays[i]
            assert a is not None
            self.send(i, channel, {**head, "d": a.dtype.name, "s": list(a.shape)}, a)
        own = arrays[self.rank]
        assert own is not None
        found = {i: self.receive([i], channel, what, mine)[1] for i in self._others()}
        return [own if i == self.rank else found[i] for i in range(self.size)]

    # -- exchanges

    def all_reduce(self, x: np.ndarray, op: str, postscale: float, what: str, name: str = "") -> np.ndarray:
        """Return what `op` makes of the arrays of all members; the same bits in each.

        Raises:
            ArgumentError: shapes, dtypes or names differ. MXNetError: a member is gone.
        """
        peers = self._links(what)
        channel = self._channel()
        head = {"k": "all_reduce", "d": x.dtype.name, "s": list(x.shape), "o": op, "f": postscale, "n": name}
        out = pool.empty(x.shape, x.dtype)
        small = x.nbytes <= MAX_GATHERED_BYTES
        for i in self._others():
            self.send(i, channel, head, x) if small else peers.send(self.ranks[i], channel, head)
        parts: dict[int, np.ndarray] = {self.rank: x}
        for i in self._others():
            rank, message = peers.receive(channel, [self.ranks[i]], what)
            if message.meta.get("k") != JOINED:
                self._agree(peers, channel, rank, message.meta, head, what)
                parts[i] = self._receive_rest(message, what) if small else x
        active = sorted(parts)
        if not small and len(active) < self.size:
            others = [i for i in active if i != self.rank]
            for i in others:
                self.send(i, channel, head, x)
            parts.update((i, self.receive([i], channel, what)[1]) for i in others)
        if small or len(active) < self.size:
            reduce_values([parts[i] for i in active], op, postscale, out)
            return out
        shm = self._negotiate_shm(peers, what)
        flat, into = x.reshape(-1), out.reshape(-1)
        if shm is not None:
            shm.all_reduce(flat, op, postscale, into, channel, what)
            return out
        bounds = np.linspace(0, x.size, self.size + 1).astype(int)
        cuts = [slice(*b) for b in itertools.pairwise(bounds.tolist())]
        mine = into[cuts[self.rank]]
        self._scatter_reduce(flat, cuts, op, postscale, mine, channel, what)
        for i in self._others():
            self.send(i, channel, _head(mine), mine)
        for i in self._others():
            self.receive([i], channel, what, None, into[cuts[i]])
        return out

    def join(self, what: str) -> int:
        """Join the reductions of the others without values, until all have joined; return the last rank to join.

        Raises:
            ArgumentError: a member calls something else than reductions. MXNetError: a member is gone.
        """
        peers = self._links(what)
        for rounds in itertools.count():
            channel = self._channel()
            for i in self._others():
                peers.send(self.ranks[i], channel, {"k": JOINED, "rounds": rounds})
            joined = {self.rank: rounds}
            for i in self._others():
                rank, message = peers.receive(channel, [self.ranks[i]], what)
                if message.meta.get("k") == JOINED:
                    joined[i] = message.field("rounds", int)
                elif message.meta.get("k") != "all_reduce":
                    self._agree(peers, channel, rank, message.meta, {"k": JOINED}, what)
            if len(joined) == self.size:
                return max(i for i, waited in joined.items() if waited == min(joined.values()))
        raise AssertionError("unreachable")

    def _scatter_reduce(
        self, flat: np.ndarray, parts: Sequence[slice], op: str, postscale: float, out: np.ndarray, channel: str,
        what: str,
    ) -> None:  # fmt: skip
        for i in self._others():
            self.send(i, channel, _head(flat[parts[i]]), flat[parts[i]])
        own = flat[parts[self.rank]]
        reduce_values(
            [own if i == self.rank else self.receive([i], channel, what)[1] for i in range(self.size)], op, postscale,
            out,
        )  # fmt: skip

    def _negotiate_shm(self, peers: PeerLinks, what: str) -> SharedMemoryAllReduce | None:
        if not self._shm_negotiated:
            self._shm_negotiated = True
            channel = f"{self.name}:lane"
            able = SharedMemoryAllReduce.is_supported() and peers.shares(self.ranks)
            block = peers.alloc(SharedMemoryAllReduce.size(self.size)) if able else None
            if block is not None:
                block[:] = 0
            for i in self._others():
                here = block is not None and peers.shares([self.ranks[i]])
                peers.send(self.ranks[i], channel, {"able": here}, [block] if here else [])
            views = [np.empty(0, np.uint8)] * self.size
            for i in self._others():
                message = peers.receive(channel, [self.ranks[i]], what)[1]
                if message.meta.get("able") is not True:
                    block = None
                else:
                    views[i] = np.frombuffer(message.payload[0], np.uint8)
            # All must decide alike.
            for i in self._others():
                peers.send(self.ranks[i], channel, {"able": block is not None})
            for i in self._others():
                if peers.receive(channel, [self.ranks[i]], what)[1].meta.get("able") is not True:
                    block = None
            if block is not None:
                self._shm = SharedMemoryAllReduce(self.rank, self.ranks, peers, block, views)
        return self._shm

    def all_reduce_named(self, x: np.ndarray, key: str, what: str) -> np.ndarray:
        """Sum small arrays over the members; collectives are matched by `key`, not by order.

        Raises:
            ArgumentError: shapes or dtypes differ. MXNetError: a member is gone.
        """
        number = self._named[key] = self._named.get(key, 0) + 1
        channel, head = f"{self.name}:{key}:{number}", {"k": "sum", **_head(x)}
        self._count_round()
        for i in self._others():
            self.send(i, channel, head, x)
        parts = [x if i == self.rank else self.receive([i], channel, what, head)[1] for i in range(self.size)]
        out = np.empty(x.shape, x.dtype)
        reduce_values(parts, "sum", 1.0, out)
        return out

    def reduce_scatter(self, x: np.ndarray, op: str, postscale: float, what: str) -> np.ndarray:
        """Return this member's equal part, along the first axis, of what `op` makes of all arrays.

        Raises:
            ArgumentError: shapes or dtypes differ. MXNetError: a member is gone.
        """
        rows = x.shape[0] // self.size
        head = {"k": "reduce_scatter", "o": op, "f": postscale, "shape": list(x.shape), "d": x.dtype.name}
        found = self._exchange(what, head, [x[i * rows : (i + 1) * rows] for i in range(self.size)])
        out = np.empty((rows, *x.shape[1:]), x.dtype)
        reduce_values(found, op, postscale, out)
        return out

    def all_gather(self, x: np.ndarray, same: bool, what: str) -> list[np.ndarray]:
        """Return the arrays of all members; `same`: of one shape, else they may differ in the first axis.

        Raises:
            ArgumentError: shapes or dtypes differ. MXNetError: a member is gone.
        """
        shape = list(x.shape) if same else list(x.shape[1:])
        return self._exchange(what, {"k": "all_gather", "shape": shape, "d": x.dtype.name, "n": same}, [x] * self.size)

    def all_to_all(self, arrays: Sequence[np.ndarray], what: str) -> list[np.ndarray]:
        """Return the array that each member has for this one.

        Raises:
            ArgumentError: shapes behind the first axis or dtypes differ. MXNetError: a member is gone.
        """
        x = arrays[0]
        return self._exchange(what, {"k": "all_to_all", "shape": list(x.shape[1:]), "d": x.dtype.name}, arrays)

    def broadcast(self, x: np.ndarray, root: int, what: str) -> np.ndarray:
        """Return the array of member `root`; on other ranks `array` gives the expected shape and dtype.

        Raises:
            ArgumentError: shapes or dtypes differ. MXNetError: a member is gone.
        """
        return self.scatter([x] * self.size, root, what, "broadcast", {"s": list(x.shape), "d": x.dtype.name})

    def scatter(
        self, arrays: Sequence[np.ndarray] | None, root: int, what: str, kind: str = "scatter",
        expected: dict[str, Any] | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Return the array that member `root` has for this one.

        Raises:
            ArgumentError: the members call different things. MXNetError: a member is gone.
        """
        self._links(what)
        channel = self._channel()
        head = {"k": kind, "r": root, **(expected or {"d": None, "s": None})}
        if self.rank != root:
            assert self.peers is not None
            self.peers.send(self.ranks[root], channel, head)
            return self.receive([root], channel, what, head)[1]
        assert arrays is not None
        for i in self._others():
            self.send(i, channel, {**head, **_head(arrays[i])}, arrays[i])
        self._heads(channel, head, what)
        return arrays[root]

    def _heads(self, channel: str, head: dict[str, Any], what: str) -> None:
        """Take what the others say that they call, so that the root learns of a mistake as well."""
        peers = self._links(what)
        for i in self._others():
            rank, message = peers.receive(channel, [self.ranks[i]], what)
            self._agree(peers, channel, rank, message.meta, head, what)

    def gather(self, x: np.ndarray, root: int, same: bool, what: str, **more: Any) -> list[np.ndarray]:
        """Return the arrays of all members in member `root`, nothing in the others.

        Raises:
            ArgumentError: the members call different things. MXNetError: a member is gone.
        """
        self._links(what)
        channel = self._channel()
        shape = list(x.shape) if same else list(x.shape[1:])
        head = {"k": "gather", "r": root, "shape": shape, "d": x.dtype.name, "n": same, **more}
        if self.rank == root:
            for i in self._others():  # so that those who call something else learn of it
                self.send(i, channel, {**head, "s": [0]}, x.reshape(-1)[:0])
            found = {i: self.receive([i], channel, what, head)[1] for i in self._others()}
            return [x if i == root else found[i] for i in range(self.size)]
        self.send(root, channel, {**head, "s": list(x.shape)}, x)
        self.receive([root], channel, what, head)
        return []

    def check_same_call(self, what: str, head: dict[str, Any]) -> bool:
        """Return when all members have called it with the same `head`; False if some have joined instead.

        Raises:
            ArgumentError: another head. MXNetError: a member is gone.
        """
        peers = self._links(what)
        channel = self._next()  # XLA's exchange follows, and is counted itself
        for i in self._others():
            peers.send(self.ranks[i], channel, head)
        active = True
        for i in self._others():
            rank, message = peers.receive(channel, [self.ranks[i]], what)
            if message.meta.get("k") == JOINED and head["k"] == "all_reduce":
                active = False
            else:
                self._agree(peers, channel, rank, message.meta, head, what)
        return active

    def barrier(self, what: str) -> None:
        """Wait until all members are here.

        Raises:
            MXNetError: a member is gone.
        """
        self._exchange(what, {"k": "barrier"}, [np.empty(0, np.uint8)] * self.size)


def _head(a: np.ndarray) -> dict[str, Any]:
    return {"d": a.dtype.name, "s": list(a.shape)}


def _described(head: dict[str, Any]) -> str:
    kind = str(head.get("k", "another exchange"))
    shape = head.get("shape", head.get("s"))
    typed = f" of {head['d']} {tuple(shape)}" if head.get("d") and shape is not None else head.get("t", "")
    more = "".join(
        f", {name}={head[k]!r}" for k, name in (("o", "op"), ("r", "root"), ("n", "name")) if head.get(k, "") != ""
    )
    return kind + typed + more


__all__ = ["ProcessGroup"]
