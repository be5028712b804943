"""Controls: what `docs/faults.md` promises does not hold when the mechanism behind it is switched off."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualmx.core.errors import FormatError, MXNetError
from dualmx.ps import WorkerNode
from dualmx.ps.elastic_store import ElasticStore
from dualmx.ps.journal import Journal
from dualmx.ps.postoffice import Postoffice
from dualmx.ps.scheduler import Scheduler
from dualmx.ps.server import KVServer
from dualmx.ps.store import PendingRequest, Store
from dualmx.ps.van import frame, handshake
from dualmx.ps.van.frame import NOTICE, Decoder, Message, encode
from dualmx.ps.van.simulator import SimNetwork
from tests.ps.test_members import Running
from tests.ps.test_simulated import Cluster, gradient


@pytest.fixture
def two() -> Any:
    running = Running(2, 1)
    running.whole()
    assert not running.errors
    yield running
    running.end()


def waits(running: Running, ends: bool) -> bool:
    """Whether a barrier of worker 0 neither passes nor raises for some time: a long one if it is to end."""
    running.go("waits", running.workers[0].barrier)
    running.threads["waits"].join(15.0 if ends else 1.5)
    return running.threads["waits"].is_alive()


@pytest.mark.parametrize("told", [True, False])
def test_a_push_that_lacks_a_dead_worker_ends(told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Promise 1. The control is told nothing, and gives up after its own time."""
    if not told:
        monkeypatch.setattr(Store, "fail_worker", lambda self, rank, reason: None)
    cluster = Cluster(0)
    tickets = cluster.workers[0].push(0, {"b": gradient(0, 1, "b")})
    cluster.net.kill(cluster.worker_vans[2])
    cluster.net.run()
    with pytest.raises(MXNetError, match="worker 2 died" if told else "no answer from server"):
        cluster.workers[0].wait(tickets)


@pytest.mark.parametrize("watched", [True, False])
def test_the_end_of_a_connection_is_noticed(watched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Promise 2."""
    if not watched:
        monkeypatch.setattr(Scheduler, "on_down", lambda self, link, reason: None)
    running = Running(2, 1)
    running.whole()
    running.workers[1]._van.close()
    assert waits(running, watched) is not watched
    assert watched is ("waits" in running.errors)
    running.workers[0].close(wait=False)


@pytest.mark.parametrize("again", [True, False])
def test_broken_connections_are_made_again(again: bool, two: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Promise 3."""
    if not again:

        def broke(self: Postoffice, peer: Any, link: int, reason: str, waits: bool, hello: Any, lost: Any) -> None:
            lost(reason)

        monkeypatch.setattr(Postoffice, "reconnect_or_fail", broke)
    worker = two.workers[0]
    before = worker._servers[0].link
    worker._van._links[before].sock.shutdown(2)  # type: ignore[attr-defined]
    until = time.monotonic() + 5
    while worker._servers[0].link == before and not worker._servers[0].failure and time.monotonic() < until:
        time.sleep(0.01)
    ask = [lambda: worker.kv.wait(worker.kv.ask_all("open", {"op": "open", "store": 0, "sync": True}))]
    if again:
        ask[0]()
    else:
        with pytest.raises(MXNetError, match="server 0 died"):
            ask[0]()


@pytest.mark.parametrize("checked", [True, False])
def test_a_damaged_frame_is_noticed(checked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Promise 3."""
    if not checked:
        monkeypatch.setitem(frame.digest, 0, lambda data: 0)
    sent = bytearray(b"".join(encode(Message(NOTICE, 0, {"op": "n"}, [np.arange(4, dtype=np.float32)]))))
    sent[-1] ^= 64
    decoder = Decoder()
    if checked:
        with pytest.raises(FormatError, match="damaged frame"):
            decoder.decode_complete(memoryview(sent))
    else:
        message, _ = decoder.decode_complete(memoryview(sent))
        assert message is not None and np.frombuffer(message.data(), np.float32)[-1] != 3


class Elastic:
    """A server of an elastic job, of which the three workers are played by hand."""

    def __init__(self) -> None:
        self.store = ElasticStore(range(3), True, lambda who: None, lambda who, reason: None)
        for key in ("a", "b"):
            self.store.put(key, 0, np.zeros(1, np.float32), (1,))

    def push(self, rank: int, *keys: str) -> None:
        parts = [(key, 0, self.store.batch + 1, np.full(1, 10.0**rank, np.float32)) for key in keys]
        self.store.push(rank, parts, PendingRequest(0, 0, len(parts), "push"))

    def values(self) -> list[float]:
        return [float(self.store.shard(key, 0).value[0]) for key in ("a", "b")]  # type: ignore[index]


@pytest.mark.parametrize("settled", [True, False])
def test_a_batch_of_a_worker_counts_as_a_whole(settled: bool) -> None:
    """A worker dies after it has pushed one of two keys. The control lets count what has arrived."""
    job = Elastic()
    job.push(0, "a", "b")
    job.push(1, "a", "b")
    job.push(2, "a")
    job.store.commit_round(1, [0, 1] if settled else range(3))
    assert job.values() == ([11, 11] if settled else [111, 11])
    job.push(0, "a")
    job.store.commit_round(1, [0, 1, 2])  # comes again, from another worker
    job.store.commit_round(2, [0, 1])
    assert job.values()[0] == 1


def begun(folder: Path | None) -> Scheduler:
    """A scheduler of a job of one worker and one server, that has come together."""
    net = SimNetwork()
    journal = Journal(folder, 0, role="scheduler") if folder is not None else None
    scheduler = Scheduler(net.van(), 1, 1, {"worker": "wait", "server": "wait"}, journal=journal)
    if not scheduler.restore(60.0):
        for link, role in ((1, "worker"), (2, "server")):
            meta = {
                "op": "register",
                "role": role,
                "wanted_rank": 0,
                "life": 7,
                "workers": 1,
                "servers": 1,
                "address": {},
            }
            scheduler.on_message(link, Message(1, 1, meta))
    return scheduler


@pytest.mark.parametrize("written", [True, False])
def test_a_scheduler_knows_what_the_one_before_had_promised(written: bool, tmp_path: Path) -> None:
    """Promise 5. The control writes nothing down: a barrier that was passed would be waited for again."""
    first = begun(tmp_path if written else None)
    first.on_message(1, Message(1, 2, {"op": "barrier", "name": "after init", "number": 0}))
    first.on_message(1, Message(1, 3, {"op": "barrier", "name": "", "number": 1}))
    second = begun(tmp_path if written else None)
    assert (("after init" in second._ledger.passed), second._ledger.last == (0, 1)) == (written, written)
    states = {m.name: m.state for m in second._members.values()}
    assert states == dict.fromkeys(("worker 0", "server 0"), "lost" if written else "alive")
    meta = {"op": "rejoin", "role": "worker", "rank": 0, "life": 7}
    second.on_message(9, Message(1, 4, meta))
    assert (second._members[9].state == "alive") if written else True


def test_the_journal_of_another_job_is_refused(tmp_path: Path) -> None:
    begun(tmp_path)
    other = Scheduler(SimNetwork().van(), 2, 1, journal=Journal(tmp_path, 0, role="scheduler"))
    with pytest.raises(MXNetError, match="holds a job of 1 workers and 1 servers, this one has 2 and 1; give an empty"):
        other.restore(1.0)


@pytest.mark.parametrize("watched", [True, False])
def test_who_waits_at_different_places_is_told(watched: bool, two: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Promise 6."""
    monkeypatch.setattr("dualmx.ps.scheduler.MISMATCH_SECONDS", 0.2)
    if not watched:
        monkeypatch.setattr(Scheduler, "_fail_mismatched_barriers", lambda self, now: None)
    two.go("other", lambda: two.workers[1].barrier("there"))
    two.go("one", lambda: two.workers[0].barrier("here"))
    two.threads["one"].join(15.0 if watched else 2.0)
    assert two.threads["one"].is_alive() is not watched
    if watched:
        two.join("one", "other")
        assert "worker 0 at the barrier here; worker 1 at the barrier there" in str(two.errors["one"])


@pytest.mark.slow
@pytest.mark.parametrize("told", [True, False])
def test_who_waits_at_a_barrier_for_long_is_told(
    told: bool, two: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Promise 7. The error of a worker that gives up has the reason as well."""
    monkeypatch.setattr("dualmx.ps.scheduler.WAIT_LOG_SECONDS", 0.1 if told else 60.0)
    two.workers[0]._customer._timeout = 3.0
    with caplog.at_level("WARNING"), pytest.raises(MXNetError, match=r"within 3 s \(DUALMX_DIST_TIMEOUT\)") as failed:
        two.workers[0].barrier("here")
    lacking = "the barrier here still lacks worker 1"
    assert (lacking in str(failed.value)) is told and (f"worker 0 waits: {lacking}" in caplog.text) is told


@pytest.mark.parametrize("told", [True, False])
def test_who_waits_for_long_is_told(told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Promise 7."""
    monkeypatch.setattr("dualmx.ps.server.WAIT_NOTICE_SECONDS", -1.0)
    if not told:
        monkeypatch.setattr(KVServer, "send_wait_notices", lambda self: None)
    cluster = Cluster(0)
    notes: list[str] = []
    take = cluster.worker_vans[1].on_message
    note = cluster.workers[1]._customer.set_blocked_on
    cluster.worker_vans[1].on_message = lambda link, m: notes.append(note(m)) if m.kind == NOTICE else take(link, m)
    tickets = cluster.workers[1].push(0, {"b": gradient(1, 1, "b")})
    for kv in cluster.servers:
        cluster.net.run()
        kv.send_wait_notices()
    cluster.net.run()
    assert bool(notes) is told
    with pytest.raises(MXNetError, match="no answer") as failed:
        cluster.workers[1].wait(tickets)
    assert ("round 1 of key 'b' still lacks the push of worker 0, 2" in str(failed.value)) is told


@pytest.mark.parametrize("proven", [True, False])
def test_a_wrong_secret_does_not_get_in(proven: bool, two: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Security. The control takes any proof."""
    if not proven:
        monkeypatch.setattr(handshake.hmac, "compare_digest", lambda a, b: True)
    with pytest.raises(MXNetError, match="another secret" if proven else "has its 2 workers already"):
        WorkerNode(replace(two.job, secret=b"not the secret of this job"))


@pytest.mark.parametrize("bounded", [True, False])
def test_announced_sizes_are_bounded(bounded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Security. The control waits for what the header announces."""
    if not bounded:
        monkeypatch.setattr(frame, "MAX_PAYLOAD", 1 << 60)
    head = bytearray(b"".join(encode(Message(NOTICE, 0, {"op": "n"}))))[: frame.SIZE]
    fields = list(frame.HEADER.unpack(head[: frame.HEADER.size]))
    fields[6] = 1 << 50
    forged = frame.HEADER.pack(*fields)
    forged += frame._CRC.pack(frame.zlib.crc32(forged))
    if bounded:
        with pytest.raises(FormatError, match="too large|bytes"):
            Decoder().decode_complete(memoryview(forged))
    else:
        assert Decoder().decode_complete(memoryview(forged)) == (None, 0)
