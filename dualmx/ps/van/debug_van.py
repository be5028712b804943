"""Debug wrappers of vans: `PS_DROP_MSG` drops messages at random, `PS_VERBOSE` logs members (1) and messages (2)."""

from __future__ import annotations

import logging
import random
import sys
import threading
from collections.abc import Callable

from ...core import knobs
from ..customer import Customer
from ..protocol import NEVER_DROPPED, OP
from .frame import ERROR, NOTICE, PING, REPLY, REQUEST, Message
from .socket_van import SocketVan
from .van import OnMessage

MAX_RESEND_SECONDS = 8.0  # most seconds between two repetitions


def with_message_drops(on_message: OnMessage, percent: int, seed: str) -> OnMessage:
    """Return `on_message` that loses `percent` of the requests and answers, chosen by `seed` (`PS_DROP_MSG`)."""
    if not percent:
        return on_message
    draw = random.Random(seed)

    def passed(link: int, message: Message) -> None:
        lossy = message.kind in (REQUEST, REPLY, ERROR) and message.meta.get(OP) not in NEVER_DROPPED
        if not lossy or draw.random() * 100 >= percent:
            on_message(link, message)

    return passed


def repeat(customer: Customer, after: float, over: Callable[[], bool]) -> None:
    """Resend requests on a thread that are unanswered for `after` seconds, until `over()`.

    They do no harm: whoever receives one twice does not do it twice.
    """

    def run() -> None:
        asleep = threading.Event()
        while not over():
            asleep.wait(after / 2)
            customer.resend_overdue(after, MAX_RESEND_SECONDS)

    threading.Thread(target=run, name="dualmx-repeat", daemon=True).start()


_log = logging.getLogger("dualmx.dist")
_KINDS = {REQUEST: "request", REPLY: "reply", ERROR: "error", NOTICE: "note", PING: "ping"}


def enable_logging() -> None:
    """Log this process's job to stderr, at the level of `PS_VERBOSE`."""
    level = {"2": logging.DEBUG, "1": logging.INFO}.get(knobs.VERBOSE.read(), logging.WARNING)
    if level < logging.WARNING:
        _log.setLevel(level)
        if not _log.hasHandlers():
            handler = logging.StreamHandler(sys.stderr)
            handler.setFormatter(logging.Formatter("%(message)s"))
            _log.addHandler(handler)


def describe_message(message: Message) -> str:
    """A message in a line: its kind, number, what it says, and the bytes that it carries."""
    meta = ", ".join(f"{k}={v!r}" for k, v in message.meta.items())
    size = sum(memoryview(p).nbytes for p in message.payload)
    return f"{_KINDS.get(message.kind, message.kind)} {message.request}: {meta[:300]}" + (
        f" + {size} B" if size else ""
    )


class LoggingVan(SocketVan):
    """A van that logs every message but signs of life."""

    def send(self, link: int, message: Message) -> bool:
        if message.kind != PING:
            _log.debug("%s sends to link %d %s", knobs.ROLE.read(), link, describe_message(message))
        return super().send(link, message)

    def _receive(self, link: object, message: Message | None) -> None:
        if message is not None and message.kind != PING:
            _log.debug("%s gets from link %d %s", knobs.ROLE.read(), link.number, describe_message(message))  # type: ignore[attr-defined]
        super()._receive(link, message)  # type: ignore[arg-type]


__all__ = ["LoggingVan", "describe_message", "enable_logging", "repeat", "with_message_drops"]
