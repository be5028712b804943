"""`Van`: moves messages over links. It is passed in, never global, and does not know what drives it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.errors import FormatError, MXNetError
from .frame import ERROR, REPLY, Message

_log = logging.getLogger("dualmx.dist")
OnMessage = Callable[[int, Message], None]
OnDown = Callable[[int, str], None]
NO_HEARTBEAT = "no sign of life"  # how the reason begins when a peer was silent for too long
RECONNECT_SECONDS = 0.5  # seconds for a peer to connect again before the end of a connection is taken for its death


class AddressInUse(MXNetError):
    """Another process listens at a port already."""


class ConnectionRefused(MXNetError):
    """Nobody listens at an address: the process there is dead."""


class Van:
    """Moves messages between processes.

    A link is a number that stands for one connection. Messages of one link arrive in order or not at all; when a link
    breaks, `on_down(link, reason)` is called once, and nothing arrives by it any more.
    """

    on_message: OnMessage
    on_down: OnDown
    receive_buffer_for: Callable[[int, int, int], np.ndarray | None] | None = (
        None  # memory for an answer: link, request, bytes
    )

    def heartbeat_payload(self, link: int) -> dict[str, Any]:
        """Return the payload of the next heartbeat on a link, {} for none; replaced by its provider."""
        return {}

    def listen(self, host: str, port: int) -> dict[str, Any]:
        """Start accepting connections; returns the address for others, as JSON."""
        raise NotImplementedError

    def connect(self, address: dict[str, Any], timeout: float, patient: bool = True) -> int:
        """Return a new link to the van at `address`; `MXNetError` if there is none within `timeout` seconds.

        Unless `patient`, `ConnectionRefused` at once if nobody listens there.
        """
        raise NotImplementedError

    def send(self, link: int, message: Message) -> bool:
        """Send without waiting; False if the link is down."""
        raise NotImplementedError

    def answer(self, link: int, message: Message) -> bool:
        """Send to one of many: a message that cannot be encoded concerns this one alone, and is an error for it."""
        try:
            return self.send(link, message)
        except FormatError as e:
            _log.error("a message could not be sent: %s", e)
            said = {"text": f"the answer cannot be sent: {e}"}
            return message.kind == REPLY and self.send(link, Message(ERROR, message.request, said))

    def drop(self, link: int) -> None:
        """Close one link, without a call of `on_down`."""
        raise NotImplementedError

    def alloc(self, nbytes: int) -> np.ndarray:
        """Return memory (nbytes,) of uint8 that is cheap to send, and reused when it is dropped."""
        return np.empty(nbytes, np.uint8)

    def shares_memory_with(self, link: int) -> bool:
        """Whether both ends of a link see memory of the other."""
        return False

    def map_contiguous(self, pieces: Sequence[memoryview]) -> np.ndarray | None:
        """Return received pieces as one array of bytes (n,) without a copy, where that can be."""
        return None

    def has_shm_readers(self) -> bool:
        """Whether another process reads memory of `alloc` in place."""
        return False

    def drive(self, done: Callable[[], bool], timeout: float) -> bool:
        """Move messages on this thread until `done()`, for `timeout` seconds at most; False if other threads do that.

        `done` is asked again after some messages were handed over.
        """
        return False

    def send_heartbeats(self) -> None:
        """Give signs of life, for a thread that keeps this van from doing so."""

    def begin_to_close(self) -> None:
        """Close without waiting for it: joining a thread where the garbage collector runs can block for ever."""
        raise NotImplementedError

    def close(self) -> None:
        """Send what is left, and close all links."""
        raise NotImplementedError


__all__ = ["NO_HEARTBEAT", "RECONNECT_SECONDS", "AddressInUse", "ConnectionRefused", "OnDown", "OnMessage", "Van"]
