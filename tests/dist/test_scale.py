"""What grows with the number of members: notes of who waits, housekeeping, what newcomers are told."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from dualmx.ps.frame import ERROR, REPLY, REQUEST, Message
from dualmx.ps.server import KVServer
from dualmx.ps.sockets import SocketVan
from dualmx.ps.van import Van
from tests.dist.test_members import Running

WORKERS = 300
KEYS = 5


class Clock:
    """Stands still but for what sending takes."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


class SlowVan(Van):
    """Keeps what is sent; each message takes 20 ms."""

    def __init__(self, clock: Clock):
        self.clock = clock
        self.sent: list[tuple[int, Message]] = []

    def send(self, link: int, message: Message) -> bool:
        self.clock.now += 0.02
        self.sent.append((link, message))
        return True


@pytest.fixture
def straggling(monkeypatch: pytest.MonkeyPatch) -> tuple[KVServer, SlowVan, Clock]:
    """A server of many workers of which the last one has pushed nothing."""
    clock = Clock()
    monkeypatch.setattr("dualmx.ps.server.time", clock)
    van = SlowVan(clock)
    kv = KVServer(van, WORKERS)
    for rank in range(WORKERS):
        kv.on_message(rank, Message(REQUEST, 1, {"op": "hello", "rank": rank, "life": rank}))
    kv.on_message(0, Message(REQUEST, 2, {"op": "open", "store": 0, "sync": True}))
    value = np.zeros(4, np.float32)
    for key in range(KEYS):
        kv.stores[0].put(key, 0, value, (4,))
    for key in range(KEYS):
        meta = {"op": "push", "store": 0, "dtype": "float32", "parts": [[key, 0, 1]]}
        for rank in range(WORKERS - 1):
            kv.on_message(rank, Message(REQUEST, 10 + key, meta, [value.tobytes()], size=16))
    assert not [m for _, m in van.sent if m.kind == ERROR]
    van.sent.clear()
    return kv, van, clock


def _look_after(kv: KVServer, van: SlowVan, clock: Clock, notes: int) -> tuple[list[tuple[int, Message]], float]:
    """Let a server look after what waits until there are so many notes; returns them, and the time that they took."""
    spent = 0.0
    while len(van.sent) < notes:
        began = clock.now
        kv.tick()
        spent += clock.now - began
        clock.now += 0.25
    told, van.sent = van.sent, []
    return told, spent


def test_notes_of_a_straggler_leave_time_for_requests(straggling: tuple[KVServer, SlowVan, Clock]) -> None:
    """To tell all takes longer than the time between two notes."""
    kv, van, clock = straggling
    kv.tick()
    assert not van.sent
    clock.now += 11.0
    began, count = clock.now, (WORKERS - 1) * KEYS
    told, spent = _look_after(kv, van, clock, count)
    assert spent > 20.0 and spent / (clock.now - began) < 0.4
    assert {(link, m.meta["request"]) for link, m in told} == {
        (r, 10 + k) for r in range(WORKERS - 1) for k in range(KEYS)
    }
    assert {m.meta["text"] for _, m in told} == {
        f"round 1 of key {key} still lacks the push of worker {WORKERS - 1}" for key in range(KEYS)
    }
    van.sent = []
    for key in range(KEYS):  # the straggler comes
        meta = {"op": "push", "store": 0, "dtype": "float32", "parts": [[key, 0, 1]]}
        kv.on_message(WORKERS - 1, Message(REQUEST, 10 + key, meta, [bytes(16)], size=16))
    assert [m.kind for _, m in van.sent] == [REPLY] * WORKERS * KEYS and not kv._parked


def test_a_note_names_a_few_ranks_and_the_number_of_the_others(straggling: tuple[KVServer, SlowVan, Clock]) -> None:
    kv, van, clock = straggling
    kv.stores[0].held[0, 0].rounds.pop(1)
    clock.now += 11.0
    texts = {m.meta["text"] for _, m in _look_after(kv, van, clock, WORKERS)[0]}
    assert f"round 1 of key 0 still lacks the push of worker 0, 1, 2, 3, 4, 5, 6, 7 and {WORKERS - 8} more" in texts


def test_housekeeping_does_not_follow_every_request(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = {"tick": 0, "pulse": 0}

    def counted(name: str, method: Any) -> Any:
        def call(self: Any) -> None:
            calls[name] += 1
            method(self)

        return call

    running = Running(1, 1)
    running.whole()
    kv = running.workers[0].kv
    monkeypatch.setattr(KVServer, "tick", counted("tick", KVServer.tick))
    monkeypatch.setattr(SocketVan, "pulse", counted("pulse", SocketVan.pulse))
    began = time.monotonic()
    for _ in range(300):
        kv._customer.wait(kv.ask_all("status", {"op": "status"}))
    most = (time.monotonic() - began) / 0.25 + 2
    assert calls["tick"] <= most and calls["pulse"] <= most
    running.end()
    assert not running.errors
