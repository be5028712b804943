"""What processes that come back, and those that end, can rely on, whatever is lost meanwhile."""

from __future__ import annotations

import errno
import os
import socket
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import MXNetError
from dualmx.kvstore import compression
from dualmx.kvstore.optimizer_config import to_config
from dualmx.kvstore.residuals import Residuals
from dualmx.kvstore.server_updates import OptimizerRequests
from dualmx.launch.plan import JobPlan
from dualmx.launch.process import JobMember as Launched
from dualmx.launch.restart import RestartPolicy
from dualmx.ps import Job, ServerNode, WorkerNode, journal, scheduler, start_scheduler
from dualmx.ps.customer import Peer
from dualmx.ps.elastic_store import ElasticStore
from dualmx.ps.journal import Journal, JournalError
from dualmx.ps.scheduler import Scheduler
from dualmx.ps.scheduler_state import SchedulerState
from dualmx.ps.server import KVServer
from dualmx.ps.store import Shard, Store
from dualmx.ps.van.frame import ERROR, NOTICE, REPLY, REQUEST, Message
from dualmx.ps.van.sockets import connect_socket
from dualmx.ps.van.van import Van
from tests.ps.test_members import Running
from tests.ps.test_simulated import Cluster, gradient

SEATS = (("scheduler", 0), ("server", 0), ("worker", 0), ("worker", 1))
WAITS = {"worker": "wait", "server": "wait"}


class Post(Van):
    """Keeps what is sent.

    Attributes:
        sent: links and messages.
    """

    def __init__(self) -> None:
        self.sent: list[tuple[int, Message]] = []

    def send(self, link: int, message: Message) -> bool:
        self.sent.append((link, message))
        return True

    def drop(self, link: int) -> None:
        pass


class Office:
    """Schedulers of one job of two workers and a server, one after the other, with members played by hand."""

    def __init__(self, folder: Path, policy: dict[str, str] | None = None):
        self._folder, self._policy, self._numbers = folder, policy or WAITS, iter(range(1, 1000))
        self.start()

    def start(self) -> None:
        """Begin with the next scheduler."""
        self.van = Post()
        self.scheduler = Scheduler(
            self.van, 2, 1, self._policy, journal=Journal(self._folder, 0, role="scheduler")
        )  # fmt: skip
        self.scheduler.restore(60.0)

    def ask(self, link: int, op: str, kind: int = REQUEST, **more: Any) -> int:
        """Send a message by a link; returns its number."""
        number = next(self._numbers)
        self.scheduler.on_message(link, Message(kind, number, {"op": op, **more}))
        return number

    def register(self, link: int, role: str, rank: int, life: int, port: int = 0) -> int:
        """Ask for a place."""
        return self.ask(
            link, "register", role=role, wanted_rank=rank, life=life, workers=2, servers=1, address={"port": port}
        )  # fmt: skip

    def answer(self, number: int) -> Message | None:
        """The answer to a message, None if there is none yet."""
        return next((m for _, m in self.van.sent if m.request == number and m.kind in (REPLY, ERROR)), None)

    def come_together(self) -> None:
        """All members register, by the links 1, 2 (workers) and 3."""
        asked = [
            self.register(1, "worker", 0, 10),
            self.register(2, "worker", 1, 11),
            self.register(3, "server", 0, 12),
        ]
        assert all(self.answer(a) is not None for a in asked)

    def barrier(self, link: int, number: int, at: int = 0, idle: bool = False, skips: bool = False) -> int:
        """Come to a barrier without a name."""
        return self.ask(link, "barrier", name="", number=number, at=at, idle=idle, skips=skips)

    def skip_first(self) -> None:
        """Worker 1 dies before the first barrier, and its successor, on link 4, pushes."""
        self.come_together()
        self.scheduler.on_down(2, "killed")
        self.register(4, "worker", 1, 21)
        self.ask(4, "past", at=-1, early=True)

    def passed(self, number: int) -> bool:
        """Whether a barrier let somebody pass."""
        reply = self.answer(number)
        return reply is not None and reply.kind == REPLY


# -- joining


def test_a_member_whose_registration_was_not_answered_asks_again(tmp_path: Path) -> None:
    office = Office(tmp_path)
    office.register(1, "worker", 0, 10)
    office.start()  # the first one was killed before all were there
    second = office.register(4, "worker", 0, 10)
    office.register(2, "worker", 1, 11)
    office.register(3, "server", 0, 12)
    reply = office.answer(second)
    assert reply is not None and reply.meta["rank"] == 0 and not reply.meta["back"]
    office.start()  # the answer was lost with this one
    after = office.register(5, "worker", 0, 10)
    reply = office.answer(after)
    assert reply is not None and reply.kind == REPLY and reply.meta["rank"] == 0 and not reply.meta["back"]


def test_a_worker_that_came_back_is_known_to_the_next_scheduler(tmp_path: Path) -> None:
    office = Office(tmp_path)
    office.come_together()
    office.scheduler.on_down(2, "killed")
    assert office.answer(office.register(4, "worker", 1, 21)) is not None
    office.start()  # killed before the answer arrived
    reply = office.answer(office.register(5, "worker", 1, 21))
    assert reply is not None and reply.kind == REPLY and reply.meta["rank"] == 1 and reply.meta["back"]


def test_all_requests_of_a_member_are_answered_when_the_job_begins(tmp_path: Path) -> None:
    office = Office(tmp_path)
    first, second = office.register(1, "worker", 0, 10), office.register(1, "worker", 0, 10)
    office.register(2, "worker", 1, 11)
    office.register(3, "server", 0, 12)
    assert office.answer(first) is not None and office.answer(second) is not None


def test_a_new_address_reaches_those_who_missed_the_note(tmp_path: Path) -> None:
    office = Office(tmp_path)
    office.come_together()
    office.scheduler.on_down(1, "reset")
    office.scheduler.on_down(3, "killed")
    office.register(4, "server", 0, 22, port=99)
    reply = office.answer(office.ask(5, "rejoin", role="worker", rank=0, life=10))
    assert reply is not None and reply.meta["servers"] == [{"port": 99}]


def test_the_optimizer_of_a_worker_that_joins_counts_where_there_is_none() -> None:
    """Seed 522: all first workers had died before theirs had arrived, and sums took the places of values."""
    control, store = OptimizerRequests(), ElasticStore([0], True, print, print)

    def tell(name: str, default: bool) -> str:
        told = {"op": "optimizer", "store": 0, "config": to_config(mx.optimizer.create(name)), "default": default}
        told |= {"factors": [], "order": []}
        control("optimizer", store, 0, Message(REQUEST, 1, told))
        return next(iter(control.records(0)))[0]["config"]["name"]

    assert [tell("sgd", True), tell("adam", True), tell("adam", False), tell("sgd", True)] == [
        "sgd", "sgd", "adam", "adam",
    ]  # fmt: skip


# -- leaving


def test_a_worker_takes_over_the_view_of_a_scheduler_that_it_has_connected_to() -> None:
    """Seed 26: a server came back, with another address, while the worker had no scheduler."""
    job = Running(1, 1)
    job.whole()
    try:
        worker = job.workers[0]
        view = {"servers": [{"host": "127.0.0.1", "port": 7}], "gone": [["worker", 5, "worker 5 died", True]]}
        view["workers"] = [0]
        worker._van.on_message(worker._scheduler.link, Message(REPLY, 0, view))
        assert worker._servers[0].address["port"] == 7 and ("worker", 5) in worker.dead
    finally:
        job.end()


def test_a_worker_without_which_the_job_went_on_waits_for_no_server() -> None:
    """Seed 327: it was stopped for long, and then waited for a server that had ended."""
    job = Running(1, 1)
    job.whole()
    try:
        worker = job.workers[0]
        ticket = worker._customer.send_request(worker._servers[0], "a push", {"op": "of nobody"})
        refusal = {"text": "the job goes on without worker 0: silent", "final": True, "excluded": True}
        worker._van.on_message(worker._scheduler.link, Message(ERROR, 0, refusal))
        with pytest.raises(MXNetError, match="the job goes on without worker 0: silent"):
            worker.kv.wait([ticket, *worker.kv.ask_all("another one", {"op": "of nobody"})])
        with pytest.raises(MXNetError, match="joining server 0: the job goes on without worker 0"):
            worker._connect_server(worker._servers[0])
    finally:
        job.end()


def test_a_worker_that_was_silent_for_long_is_told_that_the_job_went_on(tmp_path: Path) -> None:
    office = Office(tmp_path, {"worker": "elastic", "server": "wait"})
    office.come_together()
    office.scheduler.on_down(2, "no sign of life for 9 s")
    reply = office.answer(office.ask(4, "rejoin", role="worker", rank=0, life=10))
    assert reply is not None and reply.kind == REPLY
    office.scheduler.on_down(4, "no sign of life for 9 s")  # the last one, which is waited for
    reply = office.answer(office.ask(5, "rejoin", role="worker", rank=1, life=11))
    assert reply is not None and reply.kind == ERROR and reply.meta["excluded"] and reply.meta["final"]


def test_the_next_scheduler_of_an_elastic_job_knows_where_epochs_began(tmp_path: Path) -> None:
    """Seed 488: a worker that joined just after a scheduler's death began another order of the samples."""
    first = SchedulerState(2, 1, True, Journal(tmp_path, 0, role="scheduler"))
    assert first.elastic_rounds is not None
    first.replay()
    first.elastic_rounds.mark([["train", 0, 1]])
    first.elastic_rounds.request_round(0, 0, (1, 1))
    assert first.elastic_rounds.try_complete({0})
    first.log_round()
    second = SchedulerState(2, 1, True, Journal(tmp_path, 0, role="scheduler"))
    second.replay()
    assert second.elastic_rounds is not None and second.elastic_rounds.number == 1
    assert second.elastic_rounds.marks == {"train": (0, 1)}


@pytest.mark.parametrize("last", ["killed", "left"])
def test_the_scheduler_waits_for_others_where_the_last_worker_has_died(
    last: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the order of what happened, not by that in which it became sure."""
    monkeypatch.setattr(scheduler, "RECONNECT_SECONDS", -1.0)
    office = Office(tmp_path, {"worker": "elastic", "server": "wait"})
    office.come_together()
    if last == "killed":
        office.ask(1, "bye")
    office.scheduler.on_down(2, "killed")
    if last == "left":
        office.ask(1, "bye")
    office.scheduler._watch()
    office.ask(3, "bye", newest=1)
    assert office.scheduler.over.is_set() == (last == "left")


def test_who_joins_when_all_have_left_has_nothing_to_do(tmp_path: Path) -> None:
    """Seed 700: one server had ended, and the other served the worker that had joined, which waited for the first."""
    office = Office(tmp_path, {"worker": "elastic", "server": "wait"})
    office.come_together()
    office.scheduler.on_down(2, "killed")
    reply = office.answer(office.register(4, "worker", 1, 20))
    assert reply is not None and reply.meta["rank"] == 2
    for link in (1, 4):
        office.ask(link, "bye")
    reply = office.answer(office.register(5, "worker", 1, 21))
    assert reply is not None and reply.kind == REPLY and reply.meta == {"over": True}


def test_who_joins_when_the_last_worker_has_died_goes_on(tmp_path: Path) -> None:
    """Also while that is not sure yet; the servers stay until then, and until the one that joins has left."""
    office = Office(tmp_path, {"worker": "elastic", "server": "wait"})
    office.come_together()
    office.ask(1, "bye")
    office.scheduler.on_down(2, "killed")
    reply = office.answer(office.ask(3, "bye", newest=1))
    assert reply is not None and reply.meta == {"workers": []}
    reply = office.answer(office.register(4, "worker", 1, 20))
    assert reply is not None and reply.meta["rank"] == 2
    reply = office.answer(office.ask(3, "bye", newest=1))
    assert reply is not None and reply.meta == {"workers": [2]}
    office.scheduler._mark_dead(office.scheduler._members[2])
    office.ask(4, "bye")
    reply = office.answer(office.ask(3, "bye", newest=2))
    assert reply is not None and reply.meta == {}


def test_a_server_serves_who_joined_while_the_others_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeds 698 and 895: it had not heard of that worker, and ended."""
    job = Running(1, 1)
    job.job = replace(job.job, on_worker_death="elastic")
    job.whole()
    joined, parted = threading.Event(), threading.Event()
    original = WorkerNode._connect_server

    def reach(self: WorkerNode, peer: Peer) -> int:
        joined.set()
        parted.wait(10)
        return original(self, peer)

    monkeypatch.setattr(WorkerNode, "_connect_server", reach)
    monkeypatch.setattr(ServerNode, "on_member_joined", lambda self, rank: None)  # the note is lost
    job.worker(1)
    assert joined.wait(10)
    job.workers.pop(0).close()
    job.threads["server 0"].join(0.3)
    parted.set()
    job.join("worker 1")
    job.end()
    assert not job.errors


def test_a_server_that_connects_again_hears_of_those_who_joined(tmp_path: Path) -> None:
    office = Office(tmp_path, {"worker": "elastic", "server": "wait"})
    office.come_together()
    office.scheduler.on_down(3, "reset")
    office.register(4, "worker", -1, 20)
    reply = office.answer(office.ask(5, "rejoin", role="server", rank=0, life=12))
    assert reply is not None and reply.meta["workers"] == [0, 1, 2]


def test_nobody_is_waited_for_when_the_last_worker_left_after_another_had_died(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed 604: its death was certain only after the last one had left, and the servers waited for others."""
    job = Running(1, 1)
    job.job = replace(job.job, on_worker_death="elastic")
    job.whole()

    def reach(self: WorkerNode, peer: Peer) -> int:
        raise MXNetError("of the test")

    monkeypatch.setattr(WorkerNode, "_connect_server", reach)
    with pytest.raises(MXNetError, match="of the test"):
        WorkerNode(job.job)  # it has joined, and no server knows it
    job.workers.pop(0).close()
    job.join("scheduler", "server 0")
    assert not job.errors


def test_who_has_left_is_not_awaited_by_the_next_scheduler(tmp_path: Path) -> None:
    office = Office(tmp_path)
    office.come_together()
    assert office.answer(office.ask(1, "bye")) is not None
    office.start()
    reply = office.answer(office.ask(4, "rejoin", role="server", rank=0, life=12))
    assert reply is not None
    assert [(role, rank, dead) for role, rank, _, dead in reply.meta["gone"]] == [("worker", 0, False)]


def test_a_worker_that_was_killed_after_it_had_left_has_nothing_to_do(tmp_path: Path) -> None:
    office = Office(tmp_path)
    office.come_together()
    office.ask(1, "bye")
    reply = office.answer(office.register(4, "worker", 0, 20))
    assert reply is not None and reply.kind == REPLY and reply.meta == {"over": True}


@pytest.mark.parametrize("killed", ["scheduler", "server 0", "worker 1"])
def test_the_launcher_starts_nobody_again_when_the_job_is_over(killed: str) -> None:
    members = {m.name: m for m in (Launched(r, i) for r, i in SEATS)}
    for name, member in members.items():
        member.code = -9 if name == killed else 0 if name.startswith("worker") or killed == "worker 1" else None
    returns = RestartPolicy(JobPlan(["true"], 2, 1, policy=WAITS, restarts=9))
    try:
        returns.decide([members[killed]], list(members.values()))
        assert returns.tolerates(members[killed]) and not returns.pending
    finally:
        returns.close()


# -- barriers


def test_a_worker_that_comes_back_later_in_its_script_lets_others_pass(tmp_path: Path) -> None:
    """It died before the barrier after round 5, and goes on at round 6."""
    office = Office(tmp_path)
    office.come_together()
    waits = office.barrier(1, 1, at=5)
    office.scheduler.on_down(2, "killed")
    office.register(4, "worker", 1, 21)
    assert not office.passed(waits)
    office.ask(4, "past", at=5, early=False)
    assert office.passed(waits)
    later = office.barrier(1, 1, at=6)
    assert not office.passed(later)
    assert office.passed(office.barrier(4, 1, at=6)) and office.passed(later)


def test_the_scheduler_after_it_knows_where_a_worker_is(tmp_path: Path) -> None:
    office = Office(tmp_path)
    office.come_together()
    office.scheduler.on_down(2, "killed")
    office.register(4, "worker", 1, 21)
    office.ask(4, "past", at=5, early=False)
    office.start()
    office.ask(5, "rejoin", role="worker", rank=0, life=10)
    assert office.passed(office.barrier(5, 1, at=5))


def test_a_barrier_that_was_passed_is_passed_again(tmp_path: Path) -> None:
    office = Office(tmp_path)
    office.come_together()
    office.barrier(1, 1, at=7)
    assert office.passed(office.barrier(2, 1, at=7))
    office.scheduler.on_down(2, "killed")
    office.start()
    office.register(4, "worker", 1, 21)
    assert office.passed(office.barrier(4, 1, at=7)) and office.passed(office.barrier(4, 3, at=2))


def test_the_first_barrier_of_an_asynchronous_job_waits_for_nobody_who_pushes(tmp_path: Path) -> None:
    office = Office(tmp_path)
    office.come_together()
    waits = office.barrier(1, 1, idle=True)
    office.scheduler.on_down(2, "killed")
    office.register(4, "worker", 1, 21)
    office.ask(4, "past", at=-1, early=True)
    assert office.passed(waits)
    last = office.barrier(1, 2)
    assert not office.passed(last)  # which is to come behind all pushes


@pytest.mark.parametrize("first", [0, 1], ids=["the other first", "the successor first"])
def test_a_successor_that_left_the_first_barrier_out_meets_others_at_the_second(first: int, tmp_path: Path) -> None:
    """Seed 167: it passed for its first what was the first of others, while these still pushed."""
    office = Office(tmp_path)
    office.skip_first()
    last = [office.barrier(4, 1, skips=True)] if first else []
    assert office.passed(office.barrier(1, 1, idle=True))
    last += [] if first else [office.barrier(4, 1, skips=True)]
    assert not office.passed(last[0])
    last.append(office.barrier(1, 2))
    assert all(map(office.passed, last))
    office.start()  # the answer was lost with this one
    office.ask(5, "rejoin", role="worker", rank=1, life=21)
    assert office.passed(office.barrier(5, 1, skips=True)) and not office.passed(office.barrier(5, 2, skips=True))


def test_successors_that_all_left_the_first_barrier_out_meet_each_other(tmp_path: Path) -> None:
    office = Office(tmp_path)
    office.skip_first()
    waits = office.barrier(4, 1, skips=True)
    office.scheduler.on_down(1, "killed")
    office.register(5, "worker", 0, 20)
    office.ask(5, "past", at=-1, early=True)
    assert not office.passed(waits)
    assert office.passed(office.barrier(5, 1, skips=True)) and office.passed(waits)


def test_a_successor_that_left_a_barrier_out_waits_for_nobody_who_is_gone_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = Office(tmp_path)
    office.skip_first()
    waits = office.barrier(4, 1, skips=True)
    office.ask(1, "crash", NOTICE, text="of the test")
    office.scheduler.on_down(1, "killed")
    assert office.answer(waits) is None
    monkeypatch.setattr(office.scheduler, "_restart_timeout", 0.0)
    office.scheduler._watch()
    reply = office.answer(waits)
    assert reply is not None and reply.kind == ERROR and "worker 0 died: of the test" in reply.meta["text"]


def test_nobody_waits_for_those_who_left_where_workers_came_back(tmp_path: Path) -> None:
    office = Office(tmp_path)
    office.come_together()
    office.scheduler.on_down(2, "killed")
    office.register(4, "worker", 1, 21)
    waits = office.barrier(4, 2)
    assert not office.passed(waits)
    office.ask(1, "bye")
    assert office.passed(waits)


def test_others_are_told_that_one_has_left(tmp_path: Path) -> None:
    """Where nobody came back, a barrier that lacks one that has left is a mistake of the script."""
    office = Office(tmp_path)
    office.come_together()
    waits = office.barrier(1, 2)
    office.ask(2, "bye")
    reply = office.answer(waits)
    assert reply is not None and reply.kind == ERROR and "worker 1 has left the job" in reply.meta["text"]


# -- rounds


def test_an_array_in_one_piece_takes_the_place_of_its_first_slice() -> None:
    """Worker 0 may have died when one server had dropped its slices, and the one that gets the array had not."""
    store = Store([0], True, print, print)
    for size, shape in ((4, (8,)), (8, (8,)), (8, (8,)), (5, (5,))):
        store.put("w", 0, np.full(size, size, np.float32), shape)
    assert store.shard("w", 0).value.tolist() == [8.0] * 8


def test_a_push_of_a_round_that_is_not_over_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server that has it may die before the round is over; it counts once all the same."""
    cluster = Cluster(0)
    everything = [w.push(0, {k: gradient(rank, 1, k) for k in "wb"}) for rank, w in enumerate(cluster.workers)]
    cluster.net.run()
    for worker, tickets in zip(cluster.workers, everything, strict=True):
        worker.wait(tickets)
    worker = cluster.workers[0]
    worker.push(0, {k: gradient(0, 2, k) for k in "wb"})
    cluster.net.run()
    worker.is_restarted = True
    for last in (1, 2):
        opening = worker.open(0, True, "open")
        cluster.net.run()
        assert opening.wait()[0] == last
        monkeypatch.setattr(KVServer, "_resume_info", _remembered)  # the control: it relies on what may be lost


def _remembered(self: KVServer, rank: int, number: int, message: Message) -> dict[str, Any]:
    slices: list[Shard] = list(self.stores[number].shards.values())
    return {"is_unsliced": False, "rounds": [[h.key, h.last_round_of(rank)] for h in slices]}


@pytest.mark.parametrize("kind", ["2bit", "1bit", "fp16"])
@pytest.mark.parametrize("died", ["between two rounds", "in a round"])
def test_what_compression_keeps_back_outlives_the_worker(kind: str, died: str, tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    gradients = [mx.nd.array(draw.standard_normal((5, 4)).astype("f")) for _ in range(6)]
    undisturbed = compression.Compression(kind, 0.5)
    expected = [undisturbed("w", g).asnumpy() for g in gradients]
    sent: list[np.ndarray] = []
    for back in (False, True):
        packing = compression.Compression(kind, 0.5)
        packing.residuals = Residuals(Journal(tmp_path, 0, role="residuals"), back)
        first = 0 if not back else 3 if died == "between two rounds" else 2
        last = 3 if not back else 6
        del sent[first:]
        sent += [packing("w", gradients[turn], turn + 1).asnumpy() for turn in range(first, last)]
    assert all(a.tobytes() == b.tobytes() for a, b in zip(sent, expected, strict=True))
    forgetful = compression.Compression(kind, 0.5)  # the control
    assert forgetful("w", gradients[3], 4).asnumpy().tobytes() != expected[3].tobytes()


def test_a_push_that_a_worker_died_in_is_made_as_it_was(tmp_path: Path) -> None:
    """Whatever its gradients are now: a server may have it already, so that the residual must be that of this push."""
    first = compression.Compression("2bit", 0.5)
    first.residuals = Residuals(Journal(tmp_path, 0, role="residuals"), back=False)
    sent = first("w", mx.nd.array([0.7, 0.2]), 1).asnumpy()
    second = compression.Compression("2bit", 0.5)
    second.residuals = Residuals(Journal(tmp_path, 0, role="residuals"), back=True)
    assert second("w", mx.nd.array([-0.7, 0.4]), 1).asnumpy().tobytes() == sent.tobytes()
    assert second("w", mx.nd.array([0.0, 0.3]), 2).asnumpy().tolist() == [0.0, 0.5]


# -- the disk and the network


def test_a_full_disk_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "PAUSE", 0.0)
    full = [0]
    write = os.writev

    def writev(file: int, buffers: list[memoryview]) -> int:
        if not full[0]:
            return write(file, buffers)
        full[0] -= 1
        if full[0] % 2:
            return os.write(file, buffers[0][:7])  # some of it fits
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "writev", writev)
    meanwhile: list[int] = []
    first = Journal(tmp_path, 0, timeout=9.0, meanwhile=lambda: meanwhile.append(1))
    assert list(first.replay()) == []
    for i in range(3):
        full[0] = 6 * (i == 1)
        first.append({"op": "n", "i": i}, [np.full(50, i, np.float32)])
    assert len(meanwhile) == 3
    assert [m.meta["i"] for m in Journal(tmp_path, 0).replay()] == [0, 1, 2]
    full[0] = 1
    first.snapshot([({"op": "n", "i": 9}, [])])  # there is none of it
    assert [m.meta["i"] for m in Journal(tmp_path, 0).replay()] == [0, 1, 2]
    first._timeout, full[0] = 0.0, 1 << 30
    with pytest.raises(JournalError, match=r"DUALMX_JOURNAL=.*No space left on device; .*make room"):
        first.append({"op": "n", "i": 3})
    assert [m.meta["i"] for m in Journal(tmp_path, 0).replay()] == [0, 1, 2]
    first.remove()
    assert not list(tmp_path.iterdir())


def test_a_server_whose_journal_cannot_be_written_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says would not outlive it."""
    cluster = Cluster(0)
    server = cluster.servers[0]

    def write(meta: dict[str, Any], payload: Any) -> None:
        raise JournalError("DUALMX_JOURNAL='/full': No space left on device")

    monkeypatch.setattr(server, "_write", write)
    link = next(iter(server.ranks))
    with pytest.raises(JournalError, match="No space left"):
        server.on_message(link, Message(REQUEST, 99, {"op": "drop", "store": 0, "parts": []}))


def test_a_connection_to_itself_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def create_connection(address: tuple[str, int], timeout: float) -> socket.socket:
        sock = socket.socket()
        sock.bind(("127.0.0.1", 0))
        sock.connect(sock.getsockname())  # as the system does by chance where nobody listens
        return sock

    monkeypatch.setattr(socket, "create_connection", create_connection)
    with pytest.raises(ConnectionRefusedError, match="nobody listens there"):
        connect_socket({"host": "127.0.0.1", "port": 9}, 1.0)


def test_who_is_lost_and_what_can_be_done(tmp_path: Path) -> None:
    office = Office(tmp_path, {"worker": "fail", "server": "fail"})
    office.come_together()
    waits = office.barrier(1, 1)
    office.ask(2, "crash", NOTICE, text="ValueError: of the test")
    office.scheduler.on_down(2, "closed the connection")
    reply = office.answer(waits)
    assert reply is not None and reply.kind == ERROR
    assert "worker 1 died: ValueError: of the test" in reply.meta["text"]
    assert "dualmx-launch --on-worker-death wait (DUALMX_ON_WORKER_DEATH)" in reply.meta["text"]


def test_a_job_that_does_not_come_together_names_who_is_missing(tmp_path: Path) -> None:
    office = Office(tmp_path, {"worker": "fail", "server": "fail"})
    office.register(1, "worker", 1, 10)
    with pytest.raises(MXNetError, match="1 of 2 workers, 0 of 1 servers; missing: worker 0, server 0: see what"):
        office.scheduler.run(0.0)


def test_a_scheduler_that_comes_back_waits_for_its_port(tmp_path: Path) -> None:
    office = Office(tmp_path)
    office.come_together()
    for link in (1, 2, 3):
        office.ask(link, "bye")
    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    job = Job(
        role="scheduler", uri="127.0.0.1", port=port, workers=2, servers=1, secret=b"of the test" * 2,
        on_worker_death="wait", on_server_death="wait", journal=str(tmp_path),
    )  # fmt: skip
    closing = threading.Timer(0.3, taken.close)
    closing.start()
    start_scheduler(job)()
    closing.join()
    assert not list(tmp_path.iterdir())
    with socket.create_server(("127.0.0.1", 0)) as taken:  # the control: a new job, whose port is another's for good
        with pytest.raises(MXNetError, match="cannot listen"):
            start_scheduler(replace(job, port=taken.getsockname()[1]))
