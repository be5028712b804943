"""Lost messages, for tests: a share of what arrives is dropped, and what was not answered is sent again."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from .customer import Customer
from .frame import ERROR, REPLY, REQUEST, Message
from .van import OnMessage

NEVER_DROPPED = ("register", "rejoin", "hello", "bye")  # by these, processes introduce themselves and take leave
MAX_RESEND_SECONDS = 8.0  # most seconds between two repetitions


def with_message_drops(on_message: OnMessage, percent: int, seed: str) -> OnMessage:
    """Return `on_message` that loses `percent` of the requests and answers, chosen by `seed` (`PS_DROP_MSG`)."""
    if not percent:
        return on_message
    draw = random.Random(seed)

    def passed(link: int, message: Message) -> None:
        lossy = message.kind in (REQUEST, REPLY, ERROR) and message.meta.get("op") not in NEVER_DROPPED
        if not lossy or draw.random() * 100 >= percent:
            on_message(link, message)

    return passed


def repeat(customer: Customer, after: float, over: Callable[[], bool]) -> None:
    """Send requests again, on a thread, that were not answered for `after` seconds, until `over()`.

    They do no harm: whoever receives one twice does not do it twice.
    """

    def run() -> None:
        asleep = threading.Event()
        while not over():
            asleep.wait(after / 2)
            customer.resend_overdue(after, MAX_RESEND_SECONDS)

    threading.Thread(target=run, name="dualmx-repeat", daemon=True).start()


__all__ = ["repeat", "with_message_drops"]
