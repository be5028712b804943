"""The customer: requests that wait for replies. Each one ends, with a reply or with an error.

A request belongs to a peer, not to a connection. After a reconnection unanswered requests are sent with their old
numbers, by which the peer knows what it has done already.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from enum import Enum, auto
from typing import Any

import numpy as np

from ..core.errors import MXNetError
from .protocol import WaitNotice, parse
from .van.frame import ERROR, REPLY, REQUEST, Message
from .van.van import OnMessage, Van


class Peer:
    """Another process of the job.

    Attributes:
        name: in words, for error texts.
        address: where it listens.
        link: the connection to it, -1 while there is none.
        failure: why it is given up, "" while it is not.
    """

    def __init__(self, name: str, address: dict[str, Any] | None = None, link: int = -1):
        self.name, self.address, self.link = name, address or {}, link
        self.failure = ""
        self.lock = threading.RLock()


class RequestState(Enum):
    """Whether a request waits, or how it has ended."""

    PENDING = auto()
    ANSWERED = auto()
    FAILED = auto()


PENDING, ANSWERED, FAILED = RequestState


class Request:
    """A request to a peer.

    Attributes:
        description: the request in words, for error texts.
        message: what is sent, until it is answered.
        state: whether it waits.
        reply: the answer once it is there.
        error: why there will be none, "" if it has not failed.
        blocked_on: what the peer says that it waits for.
        receive_buffer: memory that the answer's payload is received into, if it is as large and travels.
    """

    def __init__(self, number: int, peer: Peer, what: str, message: Message, into: np.ndarray | None = None):
        self.number, self.peer, self.description, self.receive_buffer = number, peer, what, into
        self.message: Message | None = message
        self.reply: Message | None = None
        self.error = ""
        self.state = PENDING
        self.blocked_on = "all processes are alive, so one of them may wait for something else"
        self.sent, self.attempts = time.monotonic(), 1  # the last time, and how often

    @property
    def done(self) -> bool:
        """Whether it was answered, or has failed."""
        return self.state is not PENDING

    def release_payload(self) -> None:
        """Release the reply's payload, whose memory is reused when nobody else has it."""
        if self.reply is not None:
            self.reply = _FORGOTTEN


_FORGOTTEN = Message(REPLY)


class Customer:
    """Sends requests and matches replies; replies to unknown requests are ignored.

    Args:
        van: carries the messages.
        timeout: most seconds that `wait` waits; 0 for no limit.

    Attributes:
        alloc: returns memory of a number of bytes that can be sent cheaply.
    """

    def __init__(self, van: Van, timeout: float = 0.0):
        self._van, self._timeout = van, timeout
        self.alloc, self.shares, self.joined = van.alloc, van.shares_memory_with, van.map_contiguous
        van.receive_buffer_for = self._receive_buffer_for
        self._pending: dict[int, Request] = {}
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._sleeping = 0  # threads that wait to be notified
        self._failures = 0
        self._numbers = iter(range(1, 1 << 62))

    def send_request(
        self,
        peer: Peer,
        what: str,
        meta: dict[str, Any],
        payload: Sequence[Any] = (),
        priority: int | None = None,
        into: np.ndarray | None = None,
    ) -> Request:
        """Send a request, now or when there is a connection; for `priority` see `Message`,
        for `receive_buffer` `Request`."""
        with peer.lock:  # so that numbers arrive in their order
            number = next(self._numbers)
            ticket = Request(number, peer, what, Message(REQUEST, number, meta, payload, priority), into)
            self._pending[number] = ticket
            if peer.failure:
                self._finish(ticket, error=peer.failure)
            elif peer.link >= 0:
                self._van.send(peer.link, ticket.message)  # type: ignore[arg-type]
        return ticket

    def reconnect(self, peer: Peer, link: int, hello: dict[str, Any]) -> bool:
        """Continue with `peer` on a new connection: introduce this process, then resend pending requests.

        False if the connection is down already, perhaps before anybody knew whose it was.
        """
        with peer.lock:
            peer.link = link
            before = [t for t in self.open() if t.peer is peer]
            number = next(self._numbers)
            greeting = Request(number, peer, f"joining {peer.name} again", Message(REQUEST, number, hello))
            self._pending[number] = greeting
            resumed = all(self._van.send(link, m) for t in (greeting, *before) if (m := t.message) is not None)
            if not resumed:
                peer.link = -1
            return resumed

    def resend_overdue(self, after: float, longest: float) -> None:
        """Resend requests pending for `after` seconds, later ones after up to `longest`."""
        now = time.monotonic()
        for ticket in self.open():
            if now - ticket.sent < min(after * 2 ** (ticket.attempts - 1), longest):
                continue
            with ticket.peer.lock:
                message = ticket.message
                if message is not None and ticket.peer.link >= 0:
                    ticket.sent, ticket.attempts = now, ticket.attempts + 1
                    self._van.send(ticket.peer.link, message)

    def receiver(self, coordinator: Peer, others: OnMessage) -> OnMessage:
        """Return what takes a van's messages: answers end requests; `others` gets the rest, and all of `coordinator`'s.

        What the coordinator answers may be news of other members, which have to be known before the request ends.
        """

        def receive(link: int, message: Message) -> None:
            if message.kind in (REPLY, ERROR) and link != coordinator.link:
                self.on_message(message)
            else:
                others(link, message)

        return receive

    def on_message(self, message: Message) -> None:
        """Take a reply or an error."""
        ticket = self._pending.get(message.request)
        if ticket is None:
            return
        if message.kind == REPLY:
            self._finish(ticket, reply=message)
        elif message.kind == ERROR:
            text = str(message.meta.get("text", "no reason given"))
            self._finish(ticket, error=text)
            if message.meta.get("final") is True:
                self.fail_peer(ticket.peer, text)

    def _receive_buffer_for(self, link: int, request: int, nbytes: int) -> np.ndarray | None:
        ticket = self._pending.get(request)
        into = ticket.receive_buffer if ticket is not None and ticket.peer.link == link else None
        return into if into is not None and into.nbytes == nbytes else None

    def set_blocked_on(self, message: Message) -> str:
        """Keep what a peer says that one of the requests waits for; returns it."""
        text, request = parse(WaitNotice, message.meta)
        if (ticket := self._pending.get(request)) is not None:
            ticket.blocked_on = text
        return text

    def fail_peer(self, peer: Peer, reason: str) -> None:
        """End the open requests to `peer`, and all later ones, by an error."""
        with peer.lock:
            peer.failure = peer.failure or reason
        for ticket in self.open():
            if ticket.peer is peer:
                self._finish(ticket, error=peer.failure)

    def reset_after_fork(self, peers: Sequence[Peer], reason: str) -> None:
        """In a forked child: fail all requests to `peers`; threads of the parent may hold locks."""
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        for peer in peers:
            peer.lock = threading.RLock()
            self.fail_peer(peer, reason)

    def _finish(self, ticket: Request, reply: Message | None = None, error: str = "") -> None:
        with self._lock:
            self._pending.pop(ticket.number, None)
            if ticket.state is PENDING:
                ticket.message = None
                if reply is not None:
                    ticket.reply, ticket.state = reply, ANSWERED
                else:
                    self._failures += 1
                    ticket.error, ticket.state = error, FAILED
            if self._sleeping:
                self._changed.notify_all()

    def open(self) -> list[Request]:
        """Return the pending requests by number."""
        return sorted(self._pending.values(), key=lambda t: t.number)

    def wait(self, tickets: Sequence[Request], timeout: float | None = None) -> list[Message]:
        """Return the replies in the order of the tickets; `timeout` overrides the customer's.

        Raises:
            MXNetError: a request failed or was not answered in time; names the request, the peer, the reason.
        """
        limit = self._timeout if timeout is None else timeout
        until = 0.0
        while True:
            failures = self._failures
            waiting = None
            for ticket in tickets:
                if ticket.state is FAILED:
                    raise MXNetError(f"{ticket.description}: {ticket.error}")
                if ticket.state is PENDING and waiting is None:
                    waiting = ticket
            if waiting is None:
                return [t.reply for t in tickets]  # type: ignore[misc]
            left = 1.0
            if limit:
                until = until or time.monotonic() + limit
                left = min(until - time.monotonic(), 1.0)
            if left <= 0:
                self._pending.pop(waiting.number, None)
                raise MXNetError(
                    f"{waiting.description}: no answer from {waiting.peer.name} within {limit:g} s "
                    f"(DUALMX_DIST_TIMEOUT); {waiting.blocked_on}"
                )
            if not self._van.drive(
                lambda one=waiting, n=failures: one.state is not PENDING or self._failures != n, left
            ):
                with self._lock:
                    if waiting.state is PENDING and self._failures == failures:
                        self._sleeping += 1
                        try:
                            self._changed.wait(left)
                        finally:
                            self._sleeping -= 1


__all__ = ["Customer", "Peer", "Request"]
