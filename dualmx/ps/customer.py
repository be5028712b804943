"""The customer: requests that wait for their replies. Every one of them ends, with an answer or with an error."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from ..core.errors import MXNetError
from .frame import ERROR, REPLY, REQUEST, Message
from .van import Van

_log = logging.getLogger("dualmx.dist")


class Ticket:
    """A request under way.

    Attributes:
        what: the request in words, for error texts.
        reply: the answer once it is there.
        error: why there will be none.
    """

    def __init__(self, number: int, link: int, peer: str, what: str):
        self.number, self.link, self.peer, self.what = number, link, peer, what
        self.reply: Message | None = None
        self.error: str | None = None

    @property
    def done(self) -> bool:
        """Answered or failed."""
        return self.reply is not None or self.error is not None


class Customer:
    """Sends requests and matches replies; a reply that nobody waits for (any more) is ignored.

    Args:
        van: carries the messages.
        timeout: most seconds that `wait` waits; 0 for no limit.
    """

    def __init__(self, van: Van, timeout: float = 0.0):
        self._van, self._timeout = van, timeout
        self._open: dict[int, Ticket] = {}
        self._changed = threading.Condition()
        self._numbers = iter(range(1, 1 << 62))

    def ask(
        self, link: int, peer: str, what: str, meta: dict[str, Any], payload: Sequence[Any] = (), note: str = ""
    ) -> Ticket:
        """Send a request; `note` tells why `peer` is known to be gone, if it is."""
        with self._changed:
            ticket = Ticket(next(self._numbers), link, peer, what)
            self._open[ticket.number] = ticket
        if note or not self._van.send(link, Message(REQUEST, ticket.number, meta, payload)):
            self._finish(ticket, error=note or f"{peer} is gone")
        return ticket

    def on_message(self, message: Message) -> None:
        """Take a reply or an error."""
        ticket = self._open.get(message.request)
        if ticket is None:
            return
        if message.kind == REPLY:
            self._finish(ticket, reply=message)
        elif message.kind == ERROR:
            self._finish(ticket, error=str(message.meta.get("text", "no reason given")))

    def fail(self, which: Callable[[Ticket], bool], reason: str) -> None:
        """End the open requests that `which` picks by an error."""
        for ticket in list(self._open.values()):
            if which(ticket):
                self._finish(ticket, error=reason)

    def _finish(self, ticket: Ticket, reply: Message | None = None, error: str | None = None) -> None:
        with self._changed:
            self._open.pop(ticket.number, None)
            if not ticket.done:
                ticket.reply, ticket.error = reply, error
            self._changed.notify_all()

    def open(self) -> list[Ticket]:
        """Requests under way."""
        return list(self._open.values())

    def wait(self, tickets: Sequence[Ticket], timeout: float | None = None) -> list[Message]:
        """Return the replies, in the order of the tickets; `timeout` takes the place of the customer's.

        Raises:
            MXNetError: a request failed or was not answered in time; names the request, the peer, the reason.
        """
        limit = self._timeout if timeout is None else timeout
        until = time.monotonic() + limit if limit else None
        with self._changed:
            while True:
                failed = next((t for t in tickets if t.error is not None), None)
                if failed is not None:
                    raise MXNetError(f"{failed.what}: {failed.error}")
                waiting = next((t for t in tickets if not t.done), None)
                if waiting is None:
                    return [t.reply for t in tickets if t.reply is not None]
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    self._open.pop(waiting.number, None)
                    raise MXNetError(
                        f"{waiting.what}: no answer from {waiting.peer} within {limit:g} s "
                        "(DUALMX_DIST_TIMEOUT); all processes are alive, so one of them may wait for something else"
                    )
                self._changed.wait(1.0 if left is None else min(left, 1.0))


__all__ = ["Customer", "Ticket"]
