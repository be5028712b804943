"""What grows with the number of members: notes of who waits, housekeeping, what newcomers are told."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualmx.ps.elastic_rounds import NEWCOMER
from dualmx.ps.elastic_worker import ElasticWorker
from dualmx.ps.journal import Journal
from dualmx.ps.scheduler import Scheduler
from dualmx.ps.scheduler_state import SchedulerState
from dualmx.ps.server import KVServer
from dualmx.ps.van.frame import ERROR, REPLY, REQUEST, Message, encode
from dualmx.ps.van.socket_van import SocketVan
from dualmx.ps.van.van import Van
from tests.ps.test_members import Running

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
        kv.send_wait_notices()
        spent += clock.now - began
        clock.now += 0.25
    told, van.sent = van.sent, []
    return told, spent


def test_notes_of_a_straggler_leave_time_for_requests(straggling: tuple[KVServer, SlowVan, Clock]) -> None:
    """To tell all takes longer than the time between two notes."""
    kv, van, clock = straggling
    kv.send_wait_notices()
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
    assert [m.kind for _, m in van.sent] == [REPLY] * WORKERS * KEYS and not kv._pending


def test_a_note_names_a_few_ranks_and_the_number_of_the_others(straggling: tuple[KVServer, SlowVan, Clock]) -> None:
    kv, van, clock = straggling
    kv.stores[0].shards[0, 0].contributions.pop(1)
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
    monkeypatch.setattr(KVServer, "send_wait_notices", counted("tick", KVServer.send_wait_notices))
    monkeypatch.setattr(SocketVan, "send_heartbeats", counted("pulse", SocketVan.send_heartbeats))
    began = time.monotonic()
    for _ in range(300):
        kv._customer.wait(kv.ask_all("status", {"op": "status"}))
    most = (time.monotonic() - began) / 0.25 + 2
    assert calls["tick"] <= most and calls["pulse"] <= most
    running.end()
    assert not running.errors


class Encoding(Van):
    """Keeps what is sent, which must be encoded before."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, Message]] = []

    def send(self, link: int, message: Message) -> bool:
        encode(message)
        self.sent.append((link, message))
        return True

    def take_sent(self) -> list[tuple[int, Message]]:
        sent, self.sent = self.sent, []
        return sent


def _scheduler(policy: str) -> tuple[Scheduler, Encoding]:
    """The scheduler of a job of two workers, which have registered."""
    van = Encoding()
    scheduler = Scheduler(van, 2, 0, {"worker": policy, "server": "fail"})
    for link in (0, 1):
        _register(scheduler, link)
    van.take_sent()
    return scheduler, van


def _register(scheduler: Scheduler, link: int) -> None:
    meta = {
        "op": "register",
        "role": "worker",
        "wanted_rank": link,
        "life": link,
        "workers": 2,
        "servers": 0,
        "address": {},
    }
    scheduler.on_message(link, Message(REQUEST, 1, meta))


def _ask(scheduler: Scheduler, link: int, op: str, **more: Any) -> None:
    scheduler.on_message(link, Message(REQUEST, 2, {"op": op, **more}))


def _come_and_go(scheduler: Scheduler, times: int) -> None:
    """So many batches of 120 members, of which one is gone in every other batch, and one more does not count."""
    attendance = scheduler._attendance
    assert attendance is not None
    everybody = list(range(120))
    for number in range(times):
        members = everybody if number % 2 else everybody[:50] + everybody[51:]
        attendance.start_round(members, attendance.members[1:])


def test_a_newcomer_learns_of_seven_thousand_changes_and_takes_part() -> None:
    scheduler, van = _scheduler("elastic")
    attendance = scheduler._attendance
    assert attendance is not None
    _ask(scheduler, 0, "batch", ended=0, marks=[["order", 0, 1]])  # an epoch that lasts
    attendance._waiting.clear()
    _come_and_go(scheduler, 7000)
    attendance.start_round([0, 1], attendance.members)
    _register(scheduler, 2)
    van.take_sent()
    for link, ended in ((2, NEWCOMER), (0, 7001), (1, 7001)):
        _ask(scheduler, link, "batch", ended=ended, marks=[])
    told = {link: m for link, m in van.take_sent() if m.kind in (REPLY, ERROR)}
    assert [(told[link].kind, told[link].meta.get("batch")) for link in range(3)] == [(REPLY, 7002)] * 3

    def history(start: int) -> Message:
        _ask(scheduler, 2, "history", start=start)
        return van.take_sent()[-1][1]

    calls: Any = None, history, None
    batches = ElasticWorker(2, 2, True, *calls)
    batches._load_history(told[2].meta["batch"])
    assert [one.number for one in batches.history] == list(range(1, 7002))
    everybody = list(range(120))
    for one in batches.history[:-2]:
        assert one.members == (everybody[:50] + everybody[51:] if one.number % 2 else everybody)
        assert one.counted == one.members[1:]
    assert batches.history[-2].counted == everybody and batches.history[-1][1:] == ([0, 1], [0, 1])
    _ask(scheduler, 0, "batch", ended=7002, marks=[["order", 1, 6990]])  # the next epoch: most is forgotten
    for link in (1, 2):
        _ask(scheduler, link, "batch", ended=7002, marks=[])
    assert len(attendance.history) < 30 and attendance.page(0)["since"] == 6990
    again = ElasticWorker(2, 2, True, *calls)
    again._load_history(7003)
    assert again.history[:10] == batches.history[6989:6999] and again.marks == {"order": (1, 6990)}


def test_history_is_kept_for_nobody_where_no_samples_are_counted() -> None:
    scheduler, _ = _scheduler("elastic")
    _come_and_go(scheduler, 1000)
    assert scheduler._attendance is not None and len(scheduler._attendance.history) < 5


def test_a_scheduler_that_was_started_again_knows_the_history(tmp_path: Path) -> None:
    scheduler, _ = _scheduler("elastic")
    attendance = scheduler._attendance
    assert attendance is not None
    attendance.mark([["order", 3, 1]])
    _come_and_go(scheduler, 7000)
    journal = Journal(tmp_path, 0, role="scheduler")
    assert not list(journal.replay())
    journal.snapshot((record, []) for record in attendance.records())
    again = SchedulerState(2, 0, True, Journal(tmp_path, 0, role="scheduler"))
    again.replay()
    assert again.elastic_rounds is not None
    assert again.elastic_rounds.page(0) == attendance.page(0) and again.elastic_rounds.history == attendance.history
    assert (again.elastic_rounds.number, again.elastic_rounds.members) == (7000, attendance.members)


def test_an_answer_that_cannot_be_sent_is_an_error_for_those_who_wait_for_it() -> None:
    scheduler, van = _scheduler("fail")
    for link in (0, 1):
        _ask(scheduler, link, "meet", address={"host": "x" * (3 << 20)})
    answers = van.take_sent()
    assert sorted((link, m.kind) for link, m in answers) == [(0, ERROR), (1, ERROR)]
    assert all("the answer cannot be sent" in m.meta["text"] and not m.meta.get("final") for _, m in answers)
    _ask(scheduler, 0, "barrier", name="", at=0, number=1, idle=False)
    _ask(scheduler, 1, "barrier", name="", at=0, number=1, idle=False)
    assert [m.kind for _, m in van.take_sent()] == [REPLY, REPLY]
