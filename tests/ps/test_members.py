"""Real sockets within one process: joining, secrets, strangers, barriers, silence."""

from __future__ import annotations

import os
import random
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualmx.core.errors import ArgumentError, FormatError, MXNetError
from dualmx.core.net import free_port
from dualmx.ps import Job, ServerNode, WorkerNode, run_scheduler
from dualmx.ps.journal import Journal
from dualmx.ps.van import handshake, shared_memory, socket_van, sockets
from dualmx.ps.van.frame import NOTICE, Message, encode
from dualmx.ps.van.handshake import load_secret, user_secret_path
from dualmx.ps.van.van import RECONNECT_SECONDS

SECRET = b"a secret of the tests, long enough"


class Running:
    """Parts of a job on threads; each one's error is kept."""

    def __init__(self, workers: int, servers: int, start: float = 10.0, silence: float = 5.0):
        port = free_port("127.0.0.1")
        self.job = Job("worker", "127.0.0.1", port, workers, servers, SECRET, -1, 0.2, silence, 10.0, start)
        self.errors: dict[str, Exception] = {}
        self.threads: dict[str, threading.Thread] = {}
        self.workers: dict[int, WorkerNode] = {}

    def go(self, name: str, work: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                work()
            except Exception as e:
                self.errors[name] = e

        self.threads[name] = threading.Thread(target=guarded, daemon=True)
        self.threads[name].start()

    def scheduler(self) -> None:
        self.go("scheduler", lambda: run_scheduler(self.job))

    def server(self, rank: int) -> None:
        self.go(f"server {rank}", lambda: ServerNode(replace(self.job, role="server", task=rank)).run())

    def worker(self, rank: int) -> None:
        self.go(f"worker {rank}", lambda: self.workers.__setitem__(rank, WorkerNode(replace(self.job, task=rank))))

    def whole(self) -> None:
        self.scheduler()
        for i in range(self.job.servers):
            self.server(i)
        for i in range(self.job.workers):
            self.worker(i)
        for i in range(self.job.workers):
            self.join(f"worker {i}")

    def join(self, *names: str) -> None:
        for name in names:
            self.threads[name].join(60)
            assert not self.threads[name].is_alive(), f"{name} hangs"

    def end(self) -> None:
        for worker in self.workers.values():
            worker.close(wait=False)
        self.join(*self.threads)


@pytest.fixture
def two() -> Iterator[Running]:
    running = Running(2, 2)
    running.whole()
    assert not running.errors
    yield running
    running.end()


def test_ranks_are_as_wished_and_everyone_leaves(two: Running) -> None:
    assert {r: w.rank for r, w in two.workers.items()} == {0: 0, 1: 1}
    two.end()
    assert not two.errors


def test_values_travel_in_slices(two: Running) -> None:
    a, b = two.workers[0].kv, two.workers[1].kv
    big = np.random.default_rng(0).standard_normal((1001, 1000)).astype(np.float32)
    for kv in (a, b):
        kv.wait(kv.ask_all("open", {"op": "open", "store": 0, "sync": True}))
        kv.register_key(0, "big", big.shape, big.dtype)
    a.wait(a.put(0, {"big": big}))
    assert [s.server for s in a.keys[0, "big"].slices] == [0, 1]
    assert (b.pull(0, ["big"]).values()["big"] == big).all()
    for kv in (a, b):
        kv.push(0, {"big": big})
    assert (b.pull(0, ["big"]).values()["big"] == big + big).all()


def test_a_barrier_waits_for_all(two: Running) -> None:
    passed = []
    two.go("first", lambda: (two.workers[0].barrier(), passed.append(0)))  # type: ignore[func-returns-value]
    time.sleep(0.2)
    assert not passed
    two.workers[1].barrier()
    two.join("first")
    assert passed == [0]


def test_a_barrier_names_who_has_left(two: Running) -> None:
    two.workers[1].close()
    with pytest.raises(MXNetError, match="barrier 1: worker 1 has left the job"):
        two.workers[0].barrier()


@pytest.mark.slow
def test_a_broken_connection_is_a_death(two: Running) -> None:
    two.workers[1]._van.close()  # without a goodbye
    with pytest.raises(MXNetError, match="barrier 1: worker 1 died"):
        two.workers[0].barrier()
    assert two.workers[0].dead == {("worker", 1)}


def test_the_wrong_secret_is_refused_on_both_sides(two: Running) -> None:
    with pytest.raises(MXNetError, match="another secret"):
        WorkerNode(replace(two.job, secret=b"not the secret of this job"))
    two.workers[0].kv.wait(two.workers[0].kv.ask_all("open", {"op": "open", "store": 0, "sync": True}))


def test_a_peer_that_only_pretends_learns_nothing_and_is_not_heard(two: Running) -> None:
    """A replayed handshake and frames without one are both useless."""
    raw = b"".join(encode(Message(NOTICE, 0, {"op": "bye"})))
    old, hello = (handshake.HELLO.pack(handshake.MAGIC, version, 0, bytes(32)) for version in (1, handshake.VERSION))
    for start, sizes in ((raw, (0,)), (old + bytes(32) + raw, (0, 40)), (hello + bytes(32) + raw, (0, 72))):
        with socket.create_connection(("127.0.0.1", two.job.port)) as s:
            s.settimeout(5)
            s.sendall(start)
            answer = b""
            while more := _receive(s):
                answer += more
            assert len(answer) in sizes  # at most the greeting of the other end
    assert two.workers[0].dead_peers == {}


def _receive(s: socket.socket) -> bytes:
    try:
        return s.recv(1000)
    except ConnectionError:
        return b""


def test_random_bytes_on_the_port_do_no_harm(two: Running) -> None:
    rng = random.Random(1)
    for size in (1, 39, 40, 41, 200, 100_000):
        with socket.create_connection(("127.0.0.1", two.job.port)) as s:
            try:
                s.sendall(rng.randbytes(size))
            except ConnectionError:
                pass
    passed = [two.go("other", two.workers[1].barrier), two.workers[0].barrier()]
    assert passed == [None, None]
    two.join("other")
    assert not two.errors


def test_rubbish_from_a_member_costs_it_one_connection(two: Running) -> None:
    """A damaged frame ends the connection; another one is made, and what was not answered is sent again."""
    van = two.workers[1]._van
    for peer in (two.workers[1]._scheduler, *two.workers[1]._servers):
        before = peer.link
        van._links[before].sock.send(b"rubbish" * 20)  # type: ignore[attr-defined]
        until = time.monotonic() + 5
        while peer.link in (before, -1) and time.monotonic() < until:
            time.sleep(0.01)
        assert peer.link not in (before, -1)
    two.go("other", two.workers[1].barrier)
    two.workers[0].barrier()
    two.join("other")
    assert not two.errors and not two.workers[0].dead


def test_connections_that_break_all_the_time_change_no_bit(two: Running) -> None:
    """Rounds of both workers while every connection to the servers is cut again and again."""
    rng = random.Random(3)
    kvs = [two.workers[i].kv for i in (0, 1)]
    start = np.arange(4000, dtype=np.float32)
    for kv in kvs:
        kv.open(0, True, "open").wait()
        kv.register_key(0, "w", start.shape, start.dtype)
    kvs[0].wait(kvs[0].put(0, {"w": start}))
    cut, last, stop = [0], [np.zeros(0)] * 2, threading.Event()

    def train(rank: int) -> None:
        for turn in range(150):
            value = kvs[rank].pull(0, ["w"]).values()["w"]
            kvs[rank].push(0, {"w": value * np.float32(0.25 + 0.25 * rank) + np.float32(turn)})
        last[rank] = kvs[rank].pull(0, ["w"]).values()["w"]

    def harm() -> None:
        while not stop.wait(0.005):
            worker = two.workers[rng.randrange(2)]
            link = worker._van._links.get(rng.choice(worker._servers).link)  # type: ignore[attr-defined]
            if link is not None:
                link.sock.shutdown(rng.choice([socket.SHUT_RD, socket.SHUT_WR, socket.SHUT_RDWR]))
                cut[0] += 1

    two.go("harm", harm)
    for rank in (0, 1):
        two.go(f"train {rank}", lambda rank=rank: train(rank))  # type: ignore[misc]
    two.join("train 0", "train 1")
    stop.set()
    two.join("harm")
    expected = start
    for turn in range(150):
        pushed = [expected * np.float32(0.25 + 0.25 * rank) + np.float32(turn) for rank in (0, 1)]
        expected = pushed[0] + pushed[1]
    assert not two.errors and cut[0] > 5
    assert all(value.tobytes() == expected.tobytes() for value in last)


class Cut:
    """A job of one worker and one server whose connection breaks; it is made again when `may_connect` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, silence: float = 5.0):
        self.running = running = Running(1, 1, silence=silence)
        running.scheduler()
        nodes: list[ServerNode] = []
        job = replace(running.job, role="server", task=0)
        running.go("server 0", lambda: (nodes.append(ServerNode(job)), nodes[0].run()))  # type: ignore[func-returns-value]
        running.worker(0)
        running.join("worker 0")
        self.worker, self.server = running.workers[0], nodes[0]
        self.may_connect, connect = threading.Event(), self.worker._van.connect

        def held(*arguments: Any, **named: Any) -> int:
            assert self.may_connect.wait(10)
            return connect(*arguments, **named)

        monkeypatch.setattr(self.worker._van, "connect", held)

    def cut(self) -> None:
        """Break the connection, and wait until the server has seen it."""
        client = self.server.kv.clients[0]
        link = self.worker._van._links[self.worker._servers[0].link]  # type: ignore[attr-defined]
        link.sock.shutdown(socket.SHUT_RDWR)
        wait_until(lambda: client.link not in self.server.kv.ranks)
        with self.server._serve_lock:  # it has done what it does then
            assert 0 in self.server._unreachable

    def connect(self) -> None:
        self.may_connect.set()
        wait_until(lambda: self.server.kv.clients[0].link in self.server.kv.ranks)
        self.may_connect.clear()

    def end(self) -> None:
        """The worker is served as before."""
        self.may_connect.set()
        self.worker.kv.open(0, True, "open").wait()
        assert not self.server.kv.lost_workers
        self.running.end()
        assert not self.running.errors


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_a_worker_that_is_slow_to_connect_again_lives_as_long_as_the_scheduler_hears_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = Cut(monkeypatch)
    job.cut()
    time.sleep(4 * RECONNECT_SECONDS)
    assert not job.server.kv.lost_workers
    job.end()


def test_each_connection_that_breaks_gives_a_worker_all_the_time_to_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dualmx.ps.server_node.HOUSEKEEPING", 1e9)
    job = Cut(monkeypatch)
    job.cut()
    job.connect()
    job.server._unreachable[0] = (0.0, "it came back, and nobody has looked since")
    job.cut()
    job.server._check()
    assert not job.server.kv.lost_workers
    job.connect()
    job.server._mark_suspect(0)  # the scheduler has lost it, which is connected here again
    assert not job.server.kv.lost_workers
    job.end()


def test_the_job_must_come_together(monkeypatch: pytest.MonkeyPatch) -> None:
    running = Running(2, 1, start=1.0)
    running.scheduler()
    running.server(0)
    running.worker(0)
    running.join("scheduler", "server 0", "worker 0")
    for error in running.errors.values():
        assert "within 1 s" in str(error) and "1 of 2 workers, 1 of 1 servers" in str(error)
    assert len(running.errors) == 3


def test_one_too_many_and_other_counts_are_refused(two: Running) -> None:
    with pytest.raises(MXNetError, match="has its 2 workers already"):
        WorkerNode(two.job)
    with pytest.raises(MXNetError, match="DMLC_NUM_WORKER"):
        WorkerNode(replace(two.job, workers=3))
    with pytest.raises(MXNetError, match="'worker': 'fail'.* this worker's has .*'continue'.*DUALMX_ON_WORKER_DEATH"):
        WorkerNode(replace(two.job, on_worker_death="continue"))


@pytest.mark.slow
def test_a_job_that_ends_well_leaves_no_journal_and_that_of_another_is_refused(tmp_path: Path) -> None:
    for left_over in (False, True):
        if left_over:
            other = Journal(tmp_path, 0)
            assert list(other.replay()) == []
            other.append({"op": "open", "store": 0, "sync": True, "slack": None})
            other.close()
        running = Running(1, 1)
        running.job = replace(running.job, journal=str(tmp_path), on_server_death="wait")
        running.whole()
        if not left_over:
            kv = running.workers[0].kv
            kv.open(0, True, "open").wait()
            assert [p.stat().st_size > 0 for p in tmp_path.iterdir()] == [True, True]
            running.end()
            assert not running.errors and not list(tmp_path.iterdir())
        else:
            running.join("server 0")
            assert "holds the journal of another job; give an empty folder" in str(running.errors["server 0"])
            running.end()


def test_no_scheduler_is_an_error() -> None:
    running = Running(1, 1, start=0.5)
    with pytest.raises(MXNetError, match=r"cannot connect to 127.0.0.1:\d+ within 0.5 s"):
        WorkerNode(running.job)


def test_servers_share_the_wish_for_a_port(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    port = free_port("127.0.0.1")
    monkeypatch.setenv("PORT", str(port))
    running = Running(1, 2)
    running.whole()
    ports = [server.address["port"] for server in running.workers[0]._servers]
    assert len(set(ports)) == 2 and port in ports and f"PORT={port}: cannot listen" in caplog.text
    running.end()


def test_the_port_may_be_taken(two: Running) -> None:
    with pytest.raises(MXNetError, match="cannot listen"):
        run_scheduler(two.job)


@pytest.mark.slow
@pytest.mark.parametrize("silence", [1.0, 0.0])
def test_silence_is_noticed_unless_it_is_allowed(silence: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that is stopped keeps its connections open; only the signs of life tell."""
    running = Running(2, 1, silence=silence)
    running.whole()
    stopped = running.workers[1]._van
    hold = threading.Event()
    monkeypatch.setattr(stopped, "_check_timeouts", lambda now, slept: hold.wait(6))
    running.go("waits", running.workers[0].barrier)
    running.threads["waits"].join(15.0 if silence else 2.5)
    if silence:
        assert "worker 1 died: no sign of life for " in str(running.errors["waits"])
    else:
        assert running.threads["waits"].is_alive()
    hold.set()
    running.end()


def test_nothing_waits_for_ever(two: Running) -> None:
    two.workers[0]._customer._timeout = 0.5
    with pytest.raises(MXNetError, match="no answer from the scheduler within 0.5 s"):
        two.workers[0].barrier()


def test_a_link_over_tcp_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (socket_van, sockets):
        monkeypatch.setattr(module, "host_identity", lambda: "")
    running = Running(1, 1)
    running.whole()
    assert not running.errors
    kinds = {k.sock.family for k in running.workers[0]._van._links.values()}
    assert kinds == {socket.AF_INET}
    running.end()


class TestSecret:
    def test_the_environment_comes_first(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DUALMX_SECRET", "0123456789abcdef")
        assert load_secret("10.0.0.1") == b"0123456789abcdef"

    def test_a_short_one_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DUALMX_SECRET", "hunter2")
        with pytest.raises(MXNetError, match="16 or more"):
            load_secret("127.0.0.1")

    def test_several_hosts_need_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("DUALMX_SECRET", raising=False)
        with pytest.raises(MXNetError, match=r"export DUALMX_SECRET=\$"):
            load_secret("192.0.2.7")
        monkeypatch.setenv("DUALMX_INSECURE", "1")
        assert load_secret("192.0.2.7") == b""

    def test_processes_of_a_user_share_a_file(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.delenv("DUALMX_SECRET", raising=False)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        first = load_secret("127.0.0.1")
        assert len(first) == 64 and load_secret("localhost") == first
        assert stat.S_IMODE(user_secret_path().stat().st_mode) == 0o600
        assert [p.name for p in user_secret_path().parent.iterdir()] == ["secret"]
        os.chmod(user_secret_path(), 0o644)
        with pytest.raises(MXNetError, match="chmod 600"):
            load_secret("127.0.0.1")


def test_the_environment_of_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT", "DMLC_NUM_WORKER", "DMLC_NUM_SERVER"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ArgumentError, match="DMLC_PS_ROOT_URI, DMLC_PS_ROOT_PORT.*dualmx-launch"):
        Job.from_env()
    monkeypatch.setenv("DMLC_PS_ROOT_URI", "127.0.0.1")
    monkeypatch.setenv("DMLC_PS_ROOT_PORT", "99999")
    monkeypatch.setenv("DMLC_NUM_WORKER", "two")
    monkeypatch.setenv("DMLC_NUM_SERVER", "2")
    monkeypatch.setenv("DUALMX_SECRET", "0123456789abcdef")
    with pytest.raises(ArgumentError, match="DMLC_NUM_WORKER='two'"):
        Job.from_env()
    monkeypatch.setenv("DMLC_NUM_WORKER", "3")
    monkeypatch.setenv("DMLC_TASK_ID", "1")
    with pytest.raises(ArgumentError, match="DMLC_PS_ROOT_PORT=99999: expected a port from 1 to 65535"):
        Job.from_env()
    monkeypatch.setenv("DMLC_PS_ROOT_PORT", "9091")
    job = Job.from_env()
    assert (job.workers, job.servers, job.task, job.port, job.heartbeat_timeout) == (3, 2, 1, 9091, 4)
    monkeypatch.setenv("PS_DROP_MSG", "100")
    with pytest.raises(ArgumentError, match="PS_DROP_MSG=100: expected an integer from 0 to 99"):
        Job.from_env()
    monkeypatch.setenv("DMLC_INTERFACE", "lo")
    assert job.own_host() == "127.0.0.1"
    monkeypatch.setenv("DMLC_INTERFACE", "absent0")
    with pytest.raises(ArgumentError, match="there are .*lo"):
        job.own_host()
    monkeypatch.setenv("DMLC_NODE_HOST", "worker.example")
    assert job.own_host() == "worker.example"


def _rounds(running: Running) -> None:
    """Two workers exchange arrays of several sizes."""
    kvs = [running.workers[i].kv for i in (0, 1)]
    arrays: dict[Any, np.ndarray] = {
        f"k{n}": np.random.default_rng(n).standard_normal(n).astype(np.float32) for n in (1, 5000, 40_000, 2_100_000)
    }
    for kv in kvs:
        kv.open(0, True, "open").wait()
        for key, a in arrays.items():
            kv.register_key(0, key, a.shape, a.dtype)
    kvs[0].wait(kvs[0].put(0, arrays))
    for turn in range(1, 4):
        for rank, kv in enumerate(kvs):
            kv.push(0, {k: a * np.float32(turn + rank) for k, a in arrays.items()})
        for kv in kvs:
            for key, value in kv.pull(0, list(arrays)).values().items():
                assert (value == arrays[key] * np.float32(turn) + arrays[key] * np.float32(turn + 1)).all(), key


@pytest.mark.parametrize(
    "how", [{}, {"memory": 0}, {"tcp": True}, {"tcp": True, "encrypt": "1"}, {"memory": 2}], ids=str
)
def test_every_transport_carries_the_same(how: dict[str, int | bool | str]) -> None:
    running = Running(2, 2)
    running.job = replace(running.job, **how)  # type: ignore[arg-type]
    running.whole()
    assert not running.errors
    _rounds(running)
    running.end()
    assert not running.errors


def test_small_pushes_wait_for_company_but_not_for_ever(two: Running) -> None:
    kvs = [two.workers[i].kv for i in (0, 1)]
    keys: list[Any] = ["a", "b", "c"]
    for kv in kvs:
        kv.open(0, True, "open").wait()
        for key in keys:
            kv.register_key(0, key, (3,), np.dtype(np.float32))
    kvs[0].wait(kvs[0].put(0, dict.fromkeys(keys, np.zeros(3, np.float32))))
    for turn in range(1, 5):
        ones = np.full(3, turn, np.float32)
        for key in keys:
            kvs[0].push_coalesced(0, {key: ones})  # followed by nothing: it is sent after a moment
            kvs[1].push_coalesced(0, {key: ones})
        for key in keys[: 1 + turn % 3]:  # the habit of pulling all of them is given up and taken again
            value = kvs[1].pull_prefetched(0, [key], ahead=True)(key)
            assert value.tolist() == [2.0 * turn] * 3
    pushed = kvs[1].push_coalesced(0, {"a": ones})
    assert kvs[1].wait(
        pushed.requests_after_flush() if kvs[0].push_coalesced(0, {"a": ones}) else []
    )  # sent at the latest when it is asked for
    values = kvs[1].pull_prefetched(0, keys, ahead=False)
    assert [values(k)[0] for k in keys] == [8.0, 8.0, 8.0]


def test_small_pushes_leave_by_themselves_after_a_rest_too(two: Running) -> None:
    kvs = [two.workers[i].kv for i in (0, 1)]
    for kv in kvs:
        kv.open(0, True, "open").wait()
        kv.register_key(0, "a", (3,), np.dtype(np.float32))
    kvs[0].wait(kvs[0].put(0, {"a": np.zeros(3, np.float32)}))
    for turn, rest in enumerate((0.0, 0.3, 0.0, 0.05, 0.3), 1):
        time.sleep(rest)
        pushed = [kv.push_coalesced(0, {"a": np.full(3, turn, np.float32)}) for kv in kvs]
        until = time.monotonic() + 5
        while not all(q.requests is not None and all(t.done for t in q.requests) for q in pushed):
            assert time.monotonic() < until, f"the push of round {turn} was not sent"
            time.sleep(0.01)


def test_memory_is_used_again_when_nobody_looks_at_it() -> None:
    arena = shared_memory.Arena(1 << 20)
    loans = shared_memory.RemoteArena(os.dup(arena.fd), reader := arena.reader())
    first = arena.alloc(100_000)
    assert first is not None
    first[:] = 7
    (loan,) = arena.share([first.data], reader)
    assert not isinstance(loan, int) and loan[1] % shared_memory.PAGE == 0
    seen = loans.view(list(loan))
    where = first.ctypes.data
    del first
    part = seen[10:20]
    del seen
    again = arena.alloc(100_000)
    assert again is not None and again.ctypes.data != where and (part == 7).all()
    del part
    reused = arena.alloc(100_000)
    assert reused is not None and reused.ctypes.data == where
    assert isinstance(arena.share([np.ones(50_000, np.uint8).data], reader)[0], tuple)
    assert arena.alloc(2 << 20) is None and arena.share([np.ones(2 << 20, np.uint8).data], reader) == [2 << 20]
    for wrong in (
        [0, 0, 8],
        [-1, shared_memory.TABLE, 8],
        [0, shared_memory.TABLE, 1 << 40],
        [0, shared_memory.TABLE],
        "all",
        [0, 1.5, 2],
    ):
        with pytest.raises(FormatError, match="shared memory"):
            loans.view(wrong)


def test_memory_that_was_lent_twice_is_used_again_when_both_loans_are_back() -> None:
    arena = shared_memory.Arena(1 << 20)
    loans = shared_memory.RemoteArena(os.dup(arena.fd), reader := arena.reader())
    first = arena.alloc(100_000)
    assert first is not None
    where = first.ctypes.data
    seen = [loans.view(list(*arena.share([first.data], reader))) for _ in range(2)]
    del first
    for left in (1, 0):
        seen.pop()
        taken = arena.alloc(100_000)
        assert taken is not None and (taken.ctypes.data == where) == (left == 0)


def test_parts_of_a_message_share_a_loan() -> None:
    arena = shared_memory.Arena(8 << 20)
    loans = shared_memory.RemoteArena(os.dup(arena.fd), reader := arena.reader())
    block = arena.alloc(200_000)
    assert block is not None
    block[:] = np.arange(200_000) % 251
    strange = [np.full(n, i, np.uint8) for i, n in enumerate((64, 640, 100, 64_000))]
    parts = [strange[0], strange[1], block[:50_000], block[50_000:90_000], block[90_064:], strange[2], strange[3]]
    places = arena.share([p.data for p in parts], reader)
    assert len(places) == 5
    found = [loans.view(list(p)) for p in places if not isinstance(p, int)]
    assert b"".join(f.tobytes() for f in found) == b"".join(p.tobytes() for p in parts)
    assert all(f.ctypes.data % shared_memory.CACHE_LINE in (0, 50_000 % 64, 90_064 % 64) for f in found)
    assert (
        arena.share([p.data for p in (strange[0], strange[1], block, strange[2])], reader)[0] == 704
    )  # too few to lend
