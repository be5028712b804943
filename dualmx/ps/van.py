"""The van: moves messages over links. What drives it is not its concern, and it is given, never global."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .frame import Message

OnMessage = Callable[[int, Message], None]
OnDown = Callable[[int, str], None]


class Van:
    """Moves messages between processes.

    A link is a number that stands for one connection. Messages of one link arrive in order or not at all; when a link
    breaks, `on_down(link, reason)` is called once, and nothing arrives by it any more.
    """

    on_message: OnMessage
    on_down: OnDown

    def listen(self, host: str, port: int) -> dict[str, Any]:
        """Accept connections; returns the address to tell to others, as JSON."""
        raise NotImplementedError

    def connect(self, address: dict[str, Any], timeout: float) -> int:
        """Return a new link to the van at `address`; `MXNetError` if there is none within `timeout` seconds."""
        raise NotImplementedError

    def send(self, link: int, message: Message) -> bool:
        """Send without waiting; False if the link is down."""
        raise NotImplementedError

    def drop(self, link: int) -> None:
        """Close one link, without a call of `on_down`."""
        raise NotImplementedError

    def close(self) -> None:
        """Send what is left, and close all links."""
        raise NotImplementedError


__all__ = ["OnDown", "OnMessage", "Van"]
