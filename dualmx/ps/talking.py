"""What `PS_VERBOSE` makes visible: 1 the members of a job and their coming and going, 2 every message as well."""

from __future__ import annotations

import logging
import sys

from ..core import knobs
from .frame import ERROR, NOTICE, PING, REPLY, REQUEST, Message
from .sockets import SocketVan

_log = logging.getLogger("dualmx.dist")
_KINDS = {REQUEST: "request", REPLY: "reply", ERROR: "error", NOTICE: "note", PING: "ping"}


def enable_logging() -> None:
    """Show the log of this process's job on stderr, as much of it as `PS_VERBOSE` asks for."""
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


__all__ = ["LoggingVan", "describe_message", "enable_logging"]
