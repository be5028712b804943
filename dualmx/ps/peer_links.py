"""Direct links between workers, and their received messages."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..core.errors import MXNetError
from .heartbeat import ExchangeCounters
from .protocol import (
    OP,
    PEER_NOTICES,
    Departure,
    PeerCancel,
    PeerHello,
    PeerLeave,
    PeerMessage,
    header,
    notice,
)  # fmt: skip
from .van.frame import NOTICE, Message
from .van.socket_van import SocketVan
from .van.sockets import host_identity
from .van.van import ConnectionRefused

_log = logging.getLogger("dualmx.dist")
WAIT_LOG_SECONDS = 10.0  # seconds after which a process that waits says for whom


class PeerLost(MXNetError):
    """A peer process is lost, so that a collective cannot be completed."""


class PeerLinks:
    """All workers of a job, each linked to each; in an elastic job, those of one group.

    What a process sends on a *channel* arrives in order, and waits until it is taken.

    Args:
        van: moves the messages.
        rank, size: of this process, and how many there are.
        timeout: most seconds of one wait, 0 for no limit.
        group: number of the group in an elastic job, or, if `rank` is not known yet (-1), of the one before it.
        traffic: where exchanges of this process are counted.

    Attributes:
        lost_ranks: why a process is not there any more, by rank.
        nodes: what tells the hosts of the processes apart, by rank.
        workers: numbers of the processes in the job, by rank.
    """

    def __init__(
        self, van: SocketVan, rank: int, size: int, timeout: float, group: int = 0,
        traffic: ExchangeCounters | None = None,
    ):  # fmt: skip
        self.traffic = traffic or ExchangeCounters()
        self.rank, self.size, self.timeout, self.group = rank, size, timeout, group
        self.workers = list(range(size))
        self._early_messages: list[tuple[int, Message]] = []  # from who knows the group before this process does
        self.lost_ranks: dict[int, str] = {}
        self.nodes: list[str] = []
        self._van = van
        self._links: dict[int, int] = {}  # rank -> link
        self._ranks: dict[int, int] = {}  # link -> rank
        self._mailboxes: dict[tuple[str, int], deque[Message]] = {}
        self._cancelled: dict[str, str] = {}
        self._death = ""  # the first one without a leave
        self.changed = threading.Condition()

    # -- making the links

    def listen(self, host: str, own: str) -> dict[str, Any]:
        """Start accepting links on address `host`; returns the address for the others."""
        address = {**self._van.listen(host, 0), "host": own}
        return {**address, "node": host_identity() or socket.gethostname()}

    def connect(self, addresses: Sequence[dict[str, Any]], start: float) -> None:
        """Link this process to all others, which do the same, within `start` seconds.

        Raises:
            MXNetError: one cannot be reached.
        """
        until = time.monotonic() + start
        self.nodes = [str(a.get("node", a.get("host"))) for a in addresses]
        for rank in range(self.rank):
            try:
                link = self._van.connect(addresses[rank], max(until - time.monotonic(), 0.1), not self.group)
            except ConnectionRefused as e:
                self.fail_rank(rank, f"process {rank} died: {e}")
                continue
            self._linked(rank, link)
            self._van.send(link, notice(PeerHello(self.rank, self.group)))
        with self.changed:
            while len(self._links) + len(self.lost_ranks.keys() - self._links.keys()) < self.size - 1:
                if not self.changed.wait(until - time.monotonic()) and time.monotonic() > until:
                    missing = sorted(set(range(self.size)) - {self.rank} - self._links.keys())
                    raise MXNetError(f"the processes {missing} did not connect to process {self.rank} in {start:g} s")

    def set_ranks(self, group: int, rank: int, workers: Sequence[int]) -> None:
        """The group is formed: its number, the rank of this process, and the numbers of all in the job."""
        with self.changed:
            self.group, self.rank, self.size, self.workers = group, rank, len(workers), list(workers)
            for link, message in self._early_messages:
                self.on_message(link, message)
            self._early_messages = []

    def _accept_peer(self, link: int, message: Message) -> bool:
        """Handle a message on an unregistered link; False unless it introduces another worker."""
        hello = PEER_NOTICES.read(message) if message.meta.get(OP) in PEER_NOTICES.kinds else None
        is_hello = isinstance(hello, PeerHello)
        if self.rank < 0 and (is_hello and hello.group > self.group or self._has_early_messages(link)):
            self._early_messages.append((link, message))
        elif not is_hello:
            return False
        elif self.rank < 0 or hello.group != self.group:
            self._van.drop(link)  # of a group that this process has left
        elif self.rank < hello.rank < self.size:
            self._linked(hello.rank, link)
        else:
            return False
        return True

    def _has_early_messages(self, link: int) -> bool:
        return any(link == sender for sender, _ in self._early_messages)

    def _linked(self, rank: int, link: int) -> None:
        with self.changed:
            self._links[rank], self._ranks[link] = link, rank
            self.changed.notify_all()

    # -- messages, on the van's thread

    def on_message(self, link: int, message: Message) -> bool:
        """Take a message; False if it is none of another worker."""
        if message.kind != NOTICE:
            return False
        rank = self._ranks.get(link)
        if rank is None or self._early_messages:
            with self.changed:  # what came before is taken first
                rank = self._ranks.get(link)
                if rank is None:
                    return self._accept_peer(link, message)
        match PEER_NOTICES.read(message):
            case PeerMessage(channel):
                self._put(channel, rank, message)
            case PeerCancel(channel, text):
                self._off(channel, text)
            case PeerLeave(Departure.CRASH, text):
                self.fail_rank(rank, f"process {rank} died: {text[:500]}")
            case PeerLeave(why, text):
                # What made it go, if it was the end of another one, is what has to be looked into.
                cause, where = text[:500] or self._death, "job" if why == Departure.LEAVE else "group"
                self._note(rank, f"process {rank} has left the {where}" + (f", after {cause}" if cause else ""))
        return True

    def on_down(self, link: int, reason: str) -> None:
        """A link broke: the process at its other end is lost."""
        rank = self._ranks.get(link)
        if rank is not None:
            self.fail_rank(rank, f"process {rank} died: {reason}")

    def fail_rank(self, rank: int, reason: str) -> None:
        """Note that a process died; the first reason counts."""
        with self.changed:
            if rank not in self.lost_ranks:
                self._death = self._death or reason
            self._note(rank, reason)

    def lost_worker(self, worker: int, reason: str) -> None:
        """Note that a worker died, by its number in the job; nothing happens if it is not in this group."""
        if worker in self.workers:
            self.fail_rank(self.workers.index(worker), reason)

    def forked(self, reason: str) -> None:
        """In a forked child: all peers are lost; see `Customer.forked`."""
        self.changed = threading.Condition()
        self.lost_ranks = dict.fromkeys(range(self.size), reason)

    def _note(self, rank: int, reason: str) -> None:
        with self.changed:
            self.lost_ranks.setdefault(rank, reason)
            self.changed.notify_all()

    def _put(self, channel: str, source: int, message: Message) -> None:
        with self.changed:
            self._mailboxes.setdefault((channel, source), deque()).append(message)
            self.changed.notify_all()

    def _off(self, channel: str, text: str) -> None:
        with self.changed:
            self._cancelled.setdefault(channel, text)
            self.changed.notify_all()

    # -- exchanges

    def send(self, to: int, channel: str, head: dict[str, Any], payload: Sequence[Any] = ()) -> None:
        """Send without waiting; what is sent must not change any more.

        Raises:
            Lost: the process is gone.
        """
        message = Message(NOTICE, 0, {**head, **header(PeerMessage(channel))}, payload)
        if to == self.rank:
            self._put(channel, to, message)
        elif to in self.lost_ranks or not self._van.send(self._links[to], message):
            raise PeerLost(self.lost_ranks.get(to, f"process {to} died"))

    def cancel_channel(self, channel: str, text: str, others: Iterable[int]) -> None:
        """End what others wait for on a channel by an error."""
        for rank in others:
            if rank != self.rank and rank not in self.lost_ranks:
                self._van.send(self._links[rank], notice(PeerCancel(channel, text)))

    def receive(self, channel: str, sources: Sequence[int], what: str) -> tuple[int, Message]:
        """Wait for the next message on a channel of one of some processes; returns its sender and the message.

        Raises:
            Lost: all of them are gone. MXNetError: the exchange was called off, or it takes too long.
        """

        def found() -> tuple[int, Message] | None:
            for source in sources:
                box = self._mailboxes.get((channel, source))
                if box:
                    message = box.popleft()
                    if not box:
                        del self._mailboxes[channel, source]
                    return source, message
            return None

        return self.wait(found, channel, sources, what)

    def wait(self, found: Callable[[], Any], channel: str, sources: Sequence[int], what: str) -> Any:
        """Wait until `found`, called with the lock held, returns something, and return it; see `receive`."""
        began = time.monotonic()
        logged = False
        with self.changed:
            got = found()
            if got is not None:
                return got
            self.traffic.begin_wait([self.workers[r] for r in sources], what, began)
            try:
                while True:
                    waited = time.monotonic() - began
                    self.check(channel, sources, what, waited)
                    if waited > WAIT_LOG_SECONDS and not logged:
                        logged = True
                        _log.warning(f"process {self.rank} waits in {what} for {_named(sources)} since {waited:.0f} s")
                    self.changed.wait(1.0)
                    got = found()
                    if got is not None:
                        return got
            finally:
                self.traffic.end_wait()

    def check(self, channel: str, sources: Sequence[int], what: str, waited: float = 0.0) -> None:
        """Raise what `receive` raises if there is a reason not to wait any longer for any of `sources`."""
        if channel in self._cancelled:
            raise MXNetError(f"{what}: {self._cancelled[channel]}")
        gone = [self.lost_ranks[r] for r in sources if r in self.lost_ranks]
        if gone and len(gone) == len(sources):
            raise PeerLost(f"{what}: process {self.rank} of {self.size} lost another one: {gone[0]}")
        if self.timeout and waited > self.timeout:
            raise MXNetError(
                f"{what}: {_named(sources)} did not take part within {self.timeout:g} s (DUALMX_DIST_TIMEOUT)"
            )

    def can_receive(self, channel: str, sources: Sequence[int]) -> bool:
        """Whether a message of one of `sources` has arrived, or none will."""
        with self.changed:
            there = any(self._mailboxes.get((channel, s)) for s in sources)
            return there or all(s in self.lost_ranks for s in sources) or channel in self._cancelled

    def waiting(self, channel: str, sources: Sequence[int]) -> bool:
        """Whether a message of one of `sources` is there."""
        with self.changed:
            return any(self._mailboxes.get((channel, s)) for s in sources)

    def shares(self, ranks: Iterable[int]) -> bool:
        """Whether all these processes see memory of this one, and it theirs."""
        return all(r == self.rank or (r in self._links and self._van.shares_memory_with(self._links[r])) for r in ranks)

    def alloc(self, nbytes: int) -> np.ndarray | None:
        """Return memory (nbytes,) of uint8 which processes of this host see when it is sent to them, if there is."""
        return self._van.take_shared(nbytes)

    def leave(self, why: str, text: str = "") -> None:
        """Announce that this process leaves, and why."""
        text = text or self._death
        for link in list(self._ranks):
            self._van.send(link, notice(PeerLeave(Departure(why), text[:500])))

    def leave_group(self) -> None:
        """Leave the group: peers are notified, and pending receives fail."""
        self.leave(Departure.MOVE)
        for rank in range(self.size):
            if rank != self.rank:
                self._note(rank, f"process {self.rank} has left the group itself")

    def close(self) -> None:
        """Close the links, on which nothing is awaited any more."""
        for link in list(self._ranks):
            self._van.drop(link)


def _named(ranks: Sequence[int]) -> str:
    if len(ranks) == 1:
        return f"process {ranks[0]}"
    return f"the processes {', '.join(map(str, ranks))}"


__all__ = ["PeerLinks", "PeerLost"]
