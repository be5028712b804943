"""Signs of life: a process that is busy is not taken for dead."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest

from dualmx.ps.frame import NOTE, Message
from dualmx.ps.sockets import SocketVan

SECRET = b"a secret of the tests, long enough"


@pytest.fixture
def vans() -> Iterator[list[SocketVan]]:
    made = [SocketVan(SECRET, 0.1, 1.0, memory=0) for _ in range(3)]
    yield made
    for van in made:
        van.close()


def test_who_reads_much_from_one_is_not_silent_to_the_others(vans: list[SocketVan]) -> None:
    busy, talker, quiet = vans
    heard: list[int] = []
    down: list[str] = []

    def slowly(link: int, message: Message) -> None:
        time.sleep(0.08)
        heard.append(message.request)

    busy.on_message = slowly
    for van in (talker, quiet):
        van.on_message = lambda link, message: None
    for van in vans:
        van.on_down = lambda link, reason: down.append(reason)
        van.start()
    address = busy.listen("127.0.0.1", 0)
    link = talker.connect(address, 5.0)
    quiet.connect(address, 5.0)
    payload = np.zeros(100 << 10, np.uint8)
    for number in range(25):  # two seconds, in a buffer of the socket that is read in one go
        talker.send(link, Message(NOTE, number, {}, (payload,)))
    until = time.monotonic() + 20
    while len(heard) < 25 and time.monotonic() < until:
        time.sleep(0.05)
    assert heard == list(range(25)) and not down
