"""Seeded schedules of faults on a simulated network, 3 workers and 2 servers: no bit of the weights differs."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualmx.core.errors import FormatError, MXNetError
from dualmx.ps import journal
from dualmx.ps.customer import Customer, Peer, Request
from dualmx.ps.journal import Journal
from dualmx.ps.server import KVServer, Record
from dualmx.ps.sparse_rows import dense
from dualmx.ps.store import Shard, Store
from dualmx.ps.van.frame import NOTICE, Message, encode
from dualmx.ps.van.simulator import SimNetwork
from dualmx.ps.worker import KVWorker, OpenFuture

WORKERS, SERVERS, ROUNDS = 3, 2, 12
SHAPES = {"w": (5, 4), "b": (3,)}
KEYS = list(SHAPES)


def gradient(weights: Mapping[Any, np.ndarray], rank: int, turn: int, key: str) -> np.ndarray:
    """Depends on all weights, so that none may be of another round than the others."""
    noise = np.random.default_rng([rank, turn, ord(key)]).standard_normal(weights[key].shape).astype(np.float32)
    every = np.concatenate([weights[k].reshape(-1) for k in KEYS])
    return weights[key] * np.float32(0.1) + noise * np.abs(every).sum()


def reference() -> dict[str, np.ndarray]:
    weights = {k: np.ones(s, np.float32) for k, s in SHAPES.items()}
    momenta = {k: np.zeros(s, np.float32) for k, s in SHAPES.items()}
    for turn in range(ROUNDS):
        before = dict(weights)
        for key, w in before.items():
            total = gradient(before, 0, turn, key)
            for rank in range(1, WORKERS):
                total = total + gradient(before, rank, turn, key)
            momenta[key] = momenta[key] * np.float32(0.9) - total * np.float32(0.01)
            weights[key] = w + momenta[key]
    return weights


class Momentum:
    """An optimizer with a state, as the journal sees one."""

    def __init__(self) -> None:
        self.state: dict[int, dict[tuple[Any, int], np.ndarray]] = {}

    def __call__(self, op: str, store: Store, number: int, message: Message) -> Record:
        if op == "optimizer":
            state = self.state[number] = {}
            store.apply = lambda batch: [self.update(state, held, total) for held, total in batch]
        elif op == "load":
            data, at = np.frombuffer(message.data(), np.float32), 0
            for key, slice_, size in message.field("slices", list):
                self.state[number][key, slice_] = data[at : at + size].copy()
                at += size
        return {}, []

    @staticmethod
    def update(state: dict[tuple[Any, int], np.ndarray], held: Shard, total: np.ndarray) -> np.ndarray:
        m = state.get((held.key, held.number), np.zeros_like(held.value))
        state[held.key, held.number] = m = m * np.float32(0.9) - total * np.float32(0.01)
        return dense(held.value) + m

    def records(self, number: int) -> Iterator[Record]:
        if number in self.state:
            yield {"op": "optimizer", "store": number}, []
            slices = [[key, slice_, m.size] for (key, slice_), m in self.state[number].items()]
            yield {"op": "load", "store": number, "slices": slices}, list(self.state[number].values())


class SimServer:
    def __init__(self, job: Job, rank: int):
        self.van = job.net.van()
        self.kv = KVServer(self.van, WORKERS, Momentum(), Journal(job.folder, rank), returns=True)
        self.van.on_message = self.kv.on_message
        self.van.on_down = self.on_down
        self.kv.restore()

    def on_down(self, link: int, reason: str) -> None:
        self.kv.ranks.pop(link, None)


class SimWorker:
    """A worker whose script is run step by step."""

    def __init__(self, job: Job, rank: int, back: bool):
        self.job, self.rank = job, rank
        self.van = job.net.van()
        self.customer = Customer(self.van, timeout=1.0)
        self.van.on_message = lambda link, message: self.customer.on_message(message)
        self.van.on_down = self.on_down
        self.peers = [Peer(f"server {i}") for i in range(SERVERS)]
        self.kv = KVWorker(self.customer, self.peers, bound=10, rank=rank, life=job.rng.getrandbits(40))
        self.kv.is_restarted = back
        self.final: dict[Any, np.ndarray] | None = None
        self.waits: list[Request] = []
        self.script = self.run()

    def on_down(self, link: int, reason: str) -> None:
        for peer in self.peers:
            if peer.link == link:
                peer.link = -1

    def connect(self) -> None:
        for peer, server in zip(self.peers, self.job.servers, strict=True):
            if peer.link < 0:
                assert self.customer.reconnect(
                    peer, self.van.connect(server.van.listen("", 0), 1.0), self.kv.introduction
                )

    def go(self) -> bool:
        """Go on as far as possible; False if it waits."""
        self.connect()
        if self.final is not None or not all(t.done for t in self.waits):
            return False
        next(self.script)
        return True

    def run(self) -> Iterator[None]:
        opening: OpenFuture = self.kv.open(0, True, "open")
        self.waits = opening._tickets
        yield
        first, _ = opening.wait()
        for key, shape in SHAPES.items():
            self.kv.register_key(0, key, shape, np.dtype(np.float32))
        if self.rank == 0:
            self.waits = self.kv.put(0, {k: np.ones(s, np.float32) for k, s in SHAPES.items()})
            yield
            self.kv.wait(self.waits)
            self.waits = self.kv.ask_all(
                "optimizer", {"op": "optimizer", "store": 0, "step": self.kv.next_setup_step(0)}
            )
            yield
            self.kv.wait(self.waits)
            self.job.prepared = True
        while not self.job.prepared:
            yield
        pushed: list[Request] = []
        for turn in range(first, ROUNDS + 1):
            pull = self.kv.pull(0, KEYS)
            self.waits = [*pull.tickets, *pushed]
            yield
            self.kv.wait(pushed)
            values = pull.values()
            if turn == ROUNDS:
                self.final = values
                yield
            pushed = []
            for key in KEYS:
                pushed += self.kv.push(0, {key: gradient(values, self.rank, turn, key)})


class Job:
    """Runs workers and servers, and does them harm."""

    def __init__(self, seed: int, folder: Path, faults: float = 0.08):
        self.rng, self.folder, self.faults = random.Random(seed), folder, faults
        self.net = SimNetwork(seed, duplicate=0.1)
        self.prepared = False
        self.events: list[str] = []
        self.servers = [SimServer(self, rank) for rank in range(SERVERS)]
        self.workers = [SimWorker(self, rank, back=False) for rank in range(WORKERS)]

    def harm(self) -> None:
        kind = self.rng.choice(["worker", "server", "sever", "sever", "stop"])
        self.events.append(kind)
        if kind == "worker":
            rank = self.rng.randrange(WORKERS)
            self.net.kill(self.workers[rank].van)
            self.workers[rank] = SimWorker(self, rank, back=True)
        elif kind == "server":
            rank = self.rng.randrange(SERVERS)
            self.net.kill(self.servers[rank].van)
            self.servers[rank].kv._journal.close()  # type: ignore[union-attr]
            self.servers[rank] = SimServer(self, rank)
        elif kind == "sever" and self.net.links():
            self.net.sever(self.rng.choice(self.net.links()), "damaged frame")
        elif kind == "stop":
            self.rng.choice([*self.servers, *self.workers]).van.stopped = True

    def run(self) -> list[dict[Any, np.ndarray]]:
        for _ in range(3000):
            if all(w.final is not None for w in self.workers):
                return [w.final for w in self.workers]  # type: ignore[misc]
            going = [w.go() for w in self.workers]
            moved = [self.net.step() for _ in range(self.rng.randrange(1, 8))]
            if not any(moved) and not any(going) or self.rng.random() < 0.2:
                for one in (*self.servers, *self.workers):
                    one.van.stopped = False
            if self.prepared and self.rng.random() < self.faults:
                self.harm()
        raise MXNetError("the job does not come to its end")

    def equal(self) -> bool:
        expected = reference()
        return all(final[k].tobytes() == expected[k].tobytes() for final in self.run() for k in KEYS)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Snapshots after a few records, not after many megabytes."""
    monkeypatch.setattr(journal, "MIN_LOG_BYTES", 3000)
    monkeypatch.setattr(journal, "GROWTH_LIMIT", 1)


@pytest.mark.parametrize(
    "seeds", [range(25), range(25, 50), pytest.param(range(50, 500), marks=pytest.mark.slow)], ids=str
)
def test_no_schedule_of_faults_changes_a_bit(seeds: range, tmp_path: Path, small: None) -> None:
    happened: list[str] = []
    snapshots = 0
    for seed in seeds:
        job = Job(seed, tmp_path / str(seed))
        assert job.equal(), (seed, job.events)
        happened += job.events
        snapshots += len(list(job.folder.glob("*.snapshot")))
    assert min(happened.count(kind) for kind in ("worker", "server", "sever", "stop")) > 25 and snapshots > 25


def broken(tmp_path: Path, seeds: range = range(6)) -> int:
    """How many of some schedules do not end with the right bits."""
    wrong = 0
    for seed in seeds:
        job = Job(seed, tmp_path / str(seed), faults=0.08)
        try:
            wrong += not job.equal()
        except (MXNetError, AssertionError, StopIteration):
            wrong += 1
    return wrong


def test_control_without_a_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Journal, "append", lambda self, meta, payload=(): False)
    assert broken(tmp_path) >= 5


def test_control_without_repeated_requests(tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def resume(self: Customer, peer: Peer, link: int, hello: dict[str, Any]) -> bool:
        peer.link = link
        self.send_request(peer, "hello", hello)
        return True

    monkeypatch.setattr(Customer, "reconnect", resume)
    assert broken(tmp_path) >= 3


def test_control_without_identities(tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def count(self: Store, held: Shard, turn: int, rank: int, data: np.ndarray) -> None:
        seat = held.contributions.setdefault(max(turn, held.completed_round + 1), {})
        seat[next(r for r in range(99) if r not in seat)] = data

    monkeypatch.setattr(Store, "_add_contribution", count)
    assert broken(tmp_path) >= 5


def test_control_without_the_weights_of_the_round_before(tmp_path: Path, small: None) -> None:
    """A worker that comes back in the midst of a round would compute from weights that are too new."""
    wrong = 0
    for seed in range(10):
        job = Job(seed, tmp_path / str(seed), faults=0.1)
        for server in job.servers:
            server.kv._returns = False
        job.harm = lambda job=job: kill_worker(job)  # type: ignore[method-assign]
        wrong += not job.equal()
    assert wrong


def kill_worker(job: Job) -> None:
    rank = job.rng.randrange(WORKERS)
    job.net.kill(job.workers[rank].van)
    job.workers[rank] = SimWorker(job, rank, back=True)


def test_a_record_that_is_not_whole_is_forgotten(tmp_path: Path) -> None:
    first = Journal(tmp_path, 0)
    assert list(first.replay()) == []
    for i in range(3):
        first.append({"op": "n", "i": i}, [np.full(50, i, np.float32)])
    first.close()
    path = tmp_path / "server-0.0.journal"
    whole = path.read_bytes()
    third = len(whole) // 3
    for cut in (1, third - 1, third // 2):
        path.write_bytes(whole[:-cut])
        again = Journal(tmp_path, 0)
        assert [m.meta["i"] for m in again.replay()] == [0, 1]
        again.append({"op": "n", "i": 7})
        again.close()
        assert [m.meta["i"] for m in Journal(tmp_path, 0).replay()] == [0, 1, 7]
    path.write_bytes(whole[: third + 60] + b"x" + whole[third + 61 :])
    assert [m.meta["i"] for m in Journal(tmp_path, 0).replay()] == [0]


def test_a_snapshot_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    """A journal that ends early lacks what nobody was told of; a snapshot holds what was promised."""
    first = Journal(tmp_path, 0)
    assert list(first.replay()) == []
    first.snapshot([({"op": "n", "i": i}, [np.full(50, i, np.float32)]) for i in range(2)])
    first.close()
    (snapshot,) = tmp_path.glob("*.snapshot")
    whole = snapshot.read_bytes()
    assert [m.meta["i"] for m in Journal(tmp_path, 0).replay()] == [0, 1]
    for part in (whole[:-1], whole[:300], whole[:10], whole + b"x", whole[:-60] + b"x" + whole[-59:]):
        snapshot.write_bytes(part)
        with pytest.raises(FormatError, match="damaged snapshot"):
            list(Journal(tmp_path, 0).replay())
    # One that ends with a record, lacks one, or goes on behind its end.
    first_end = len(_frame(1, 0))
    assert whole.startswith(_frame(1, 0) + _frame(2, 1))
    for part in (b"", whole[:first_end], whole[: 2 * first_end], whole[first_end:], whole + whole[:first_end]):
        snapshot.write_bytes(part)
        with pytest.raises(FormatError, match="damaged snapshot"):
            list(Journal(tmp_path, 0).replay())


def test_a_snapshot_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    snapshot = tmp_path / "server-0.1.snapshot"
    snapshot.write_bytes(_frame(0, 0) + _frame(0, 1))
    assert [m.meta["i"] for m in Journal(tmp_path, 0).replay()] == [0, 1]
    snapshot.write_bytes(_frame(0, 0) + _frame(0, 1)[:-1])
    with pytest.raises(FormatError, match="damaged snapshot"):
        list(Journal(tmp_path, 0).replay())


def _frame(number: int, i: int) -> bytes:
    """A record of a snapshot, which has a number from 1, or 0 in those of earlier versions."""
    return b"".join(encode(Message(NOTICE, number, {"op": "n", "i": i}, [np.full(50, i, np.float32)]), True))
