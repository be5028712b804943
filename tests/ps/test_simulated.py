"""The protocol on a simulated network: whatever is delivered twice or out of order, the bits are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dualmx.core.errors import MXNetError
from dualmx.ps.customer import Customer, Peer
from dualmx.ps.server import KVServer
from dualmx.ps.sparse_rows import dense
from dualmx.ps.store import Shard, Store, _sum
from dualmx.ps.van import frame
from dualmx.ps.van.frame import NOTICE
from dualmx.ps.van.simulator import SimNetwork, SimVan
from dualmx.ps.worker import KVWorker

WORKERS, SERVERS, ROUNDS = 3, 2, 6
SHAPES = {"w": (5, 4), "b": (3,)}


def gradient(rank: int, turn: int, key: str) -> np.ndarray:
    draw = np.random.default_rng([rank, turn, len(key), ord(key)])
    return (draw.standard_normal(SHAPES[key]) * 10.0 ** draw.integers(-3, 3)).astype(np.float32)


class Momentum:
    def __init__(self) -> None:
        self.state: dict[tuple[object, int], np.ndarray] = {}

    def __call__(self, batch: list[tuple[Shard, np.ndarray]]) -> list[np.ndarray]:
        out = []
        for held, total in batch:
            m = self.state.get((held.key, held.number), np.zeros_like(held.value))
            self.state[held.key, held.number] = m = m * np.float32(0.9) - total * np.float32(0.01)
            out.append(dense(held.value) + m)
        return out


class Cluster:
    """Workers and servers on one simulated network, past the start of the job."""

    def __init__(self, seed: int, sync: bool = True):
        self.net = SimNetwork(seed)
        self.servers: list[KVServer] = []
        self.server_vans: list[SimVan] = []
        self.worker_vans: list[SimVan] = []
        self.workers: list[KVWorker] = []
        for _ in range(SERVERS):
            van = self.net.van()
            kv = KVServer(van, WORKERS)
            van.on_message = kv.on_message
            van.on_down = lambda link, reason, kv=kv: kv.fail_worker(
                kv.ranks[link], f"worker {kv.ranks[link]} died: {reason}"
            )
            self.servers.append(kv)
            self.server_vans.append(van)
        for rank in range(WORKERS):
            van = self.net.van()
            customer = Customer(van, timeout=1.0)
            van.on_message = lambda link, message, customer=customer: customer.on_message(message)
            peers = [
                Peer(f"server {i}", link=van.connect(v.listen("", 0), 1.0)) for i, v in enumerate(self.server_vans)
            ]

            def on_down(link: int, reason: str, customer: Customer = customer, peers: list[Peer] = peers) -> None:
                for p in peers:
                    if p.link == link:
                        customer.fail_peer(p, f"{p.name}: {reason}")

            van.on_down = on_down
            worker = KVWorker(customer, peers, bound=10, rank=rank)
            tickets = worker.ask_all("hello", worker.introduction)
            self.net.run()
            opening = worker.open(0, sync, "open")
            self.net.run()
            worker.wait(tickets)
            opening.wait()
            for key, shape in SHAPES.items():
                worker.register_key(0, key, shape, np.dtype(np.float32))
            self.workers.append(worker)
            self.worker_vans.append(van)
        tickets = self.workers[0].put(0, {k: np.ones(s, np.float32) for k, s in SHAPES.items()})
        self.net.run()
        self.workers[0].wait(tickets)
        for kv in self.servers:
            kv.stores[0].apply = Momentum()

    def train(self) -> list[dict[str, np.ndarray]]:
        """All rounds of all workers at once on the network; returns what each worker pulls at the end."""
        tickets = []
        for turn in range(1, ROUNDS + 1):
            for rank, worker in enumerate(self.workers):
                tickets.append((worker, worker.push(0, {k: gradient(rank, turn, k) for k in SHAPES})))
        pulls = [w.pull(0, list(SHAPES)) for w in self.workers]
        self.net.run()
        for worker, sent in tickets:
            worker.wait(sent)
        return [p.values() for p in pulls]  # type: ignore[misc]


def reference() -> dict[str, np.ndarray]:
    out = {}
    for key, shape in SHAPES.items():
        w, m = np.ones(shape, np.float32), np.zeros(shape, np.float32)
        for turn in range(1, ROUNDS + 1):
            total = gradient(0, turn, key).copy()
            for rank in range(1, WORKERS):
                total += gradient(rank, turn, key)
            m = m * np.float32(0.9) - total * np.float32(0.01)
            w = w + m
        out[key] = w
    return out


@pytest.mark.parametrize("seed", range(25))
def test_duplicates_and_disorder_change_no_bit(seed: int) -> None:
    cluster = Cluster(seed)
    cluster.net.duplicate, cluster.net.reorder = 0.3, True
    expected = reference()
    for pulled in cluster.train():
        assert all(pulled[k].tobytes() == expected[k].tobytes() for k in SHAPES)


def test_counting_pushes_instead_of_telling_them_apart_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the same network and a server that counts must not pass."""

    def count(self: Store, held: Shard, turn: int, rank: int, data: np.ndarray) -> None:
        seat = held.contributions.setdefault(max(turn, held.completed_round + 1), {})
        seat[len(seat)] = data

    monkeypatch.setattr(Store, "_add_contribution", count)
    expected, wrong = reference(), 0
    for seed in range(5):
        cluster = Cluster(seed)
        cluster.net.duplicate, cluster.net.reorder = 0.3, True
        try:
            pulled = cluster.train()
            wrong += any(p[k].tobytes() != expected[k].tobytes() for p in pulled for k in SHAPES)
        except MXNetError:
            wrong += 1
    assert wrong == 5


def test_the_order_of_ranks_matters_to_the_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of reproducibility: sums in the order of arrival differ between seeds."""
    monkeypatch.setattr(
        "dualmx.ps.store._sum", lambda seat, take: sum(list(seat.values())[1:], next(iter(seat.values())))
    )
    results = set()
    for seed in range(8):
        cluster = Cluster(seed)
        cluster.net.reorder = True
        results.add(cluster.train()[0]["w"].tobytes())
    assert len(results) > 1


@pytest.mark.parametrize("workers", [1, 2, 3, 6])
def test_terms_that_are_sent_apart_are_added_one_after_the_other(workers: int) -> None:
    terms = [gradient(i, 1, "w").reshape(-1) for i in range(6)]
    expected = terms[0]
    for term in terms[1:]:
        expected = expected + term
    own = 6 // workers
    apart = {r: np.stack(terms[r * own : (r + 1) * own]) for r in range(workers)}
    seat: dict[int, Any] = {r: a if own > 1 else a[0] for r, a in apart.items()}
    total = _sum(seat)
    assert isinstance(total, np.ndarray) and total.tobytes() == expected.tobytes()
    together = _sum({r: a.sum(axis=0) for r, a in apart.items()})  # the control
    assert workers in (1, 6) or dense(together).tobytes() != expected.tobytes()


def test_a_dead_worker_ends_the_round_for_all_who_wait() -> None:
    cluster = Cluster(0)
    pushes = [(w, w.push(0, {"b": gradient(i, 1, "b")})) for i, w in enumerate(cluster.workers[:2])]
    pull = cluster.workers[0].pull(0, ["b"])
    cluster.net.run()
    cluster.net.kill(cluster.worker_vans[2])
    cluster.net.run()
    for worker, tickets in pushes:
        with pytest.raises(MXNetError, match=r"round 1 of key 'b'.*worker 2 died: killed"):
            worker.wait(tickets)
    with pytest.raises(MXNetError, match="worker 2 died"):
        pull.values()
    late = cluster.workers[1].push(0, {"w": gradient(1, 1, "w")})
    cluster.net.run()
    with pytest.raises(MXNetError, match="worker 2 died"):
        cluster.workers[1].wait(late)


def test_a_round_that_the_dead_worker_had_joined_is_completed() -> None:
    cluster = Cluster(0)
    cluster.workers[2].push(0, {"b": gradient(2, 1, "b")})
    cluster.net.run()
    cluster.net.kill(cluster.worker_vans[2])
    for rank in (0, 1):
        cluster.workers[rank].push(0, {"b": gradient(rank, 1, "b")})
    pull = cluster.workers[0].pull(0, ["b"])
    cluster.net.run()
    assert np.isfinite(pull.values()["b"]).all()


def test_asynchronous_pushes_need_nobody() -> None:
    cluster = Cluster(0, sync=False)
    cluster.net.kill(cluster.worker_vans[2])
    for _ in range(2):
        tickets = cluster.workers[0].push(0, {"b": np.ones(3, np.float32)})
        cluster.net.run()
        cluster.workers[0].wait(tickets)
    pull = cluster.workers[1].pull(0, ["b"])
    cluster.net.run()
    m1 = np.float32(-0.01)
    assert np.allclose(pull.values()["b"], 1 + m1 + (m1 * 0.9 - 0.01))


def test_a_dead_server_is_an_error() -> None:
    cluster = Cluster(0)
    pull = cluster.workers[0].pull(0, ["w"])
    cluster.net.kill(cluster.server_vans[1])
    cluster.net.run()
    with pytest.raises(MXNetError, match="kvstore.pull of key 'w'.*server 1: killed"):
        pull.values()
    again = cluster.workers[0].pull(0, ["w"])
    cluster.net.run()
    with pytest.raises(MXNetError, match="server 1: killed"):
        again.values()


def test_an_update_that_fails_is_reported_to_all() -> None:
    cluster = Cluster(0)

    def broken(batch: list[tuple[Shard, np.ndarray]]) -> list[np.ndarray]:
        raise ValueError("no such luck")

    for kv in cluster.servers:
        kv.stores[0].apply = broken
    sent = [(w, w.push(0, {"b": gradient(i, 1, "b")})) for i, w in enumerate(cluster.workers)]
    cluster.net.run()
    for worker, tickets in sent:
        with pytest.raises(MXNetError, match="no such luck"):
            worker.wait(tickets)


def test_values_that_fit_in_no_frame_are_an_error_for_who_asks_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(0)
    monkeypatch.setattr(frame, "MIN_SHARED_BYTES", 8)
    monkeypatch.setattr(frame, "MAX_PAYLOAD", 10)
    pulled = cluster.workers[0].pull(0, ["b"])
    cluster.net.run()
    with pytest.raises(MXNetError, match=r"pull of key 'b'.*the answer cannot be sent: frame of \d+ \+ 12 bytes"):
        pulled.values()
    monkeypatch.undo()
    again = cluster.workers[0].pull(0, ["b"])
    cluster.net.run()
    assert np.array_equal(again.value("b"), np.ones(3, np.float32))


@pytest.mark.parametrize(
    ("meta", "payload", "text"),
    [
        ({"op": "nothing", "store": 0}, b"", "unknown request"),
        ({"op": "pull", "store": 9, "parts": []}, b"", "no store 9"),
        ({"op": "pull", "store": 0, "parts": [["absent", 0, 0]]}, b"", "not on this server"),
        ({"op": "pull", "store": 0, "parts": [[["list"], 0, 0]]}, b"", "not as expected"),
        ({"op": "pull", "store": 0, "parts": 3}, b"", "not as expected"),
        ({"op": "push", "store": 0, "parts": [["b", 0, 1]]}, b"123", "expected 12"),
        ({"op": "push", "store": 0, "parts": [["b", 0, 1]]}, b"1" * 24, "12 bytes more"),
        ({"op": "push", "store": 0, "parts": [["b", 0, 1]], "code": ["2bit", -1.0]}, b"1234", "threshold"),
        ({"op": "push", "store": 0, "parts": [["b", 0, 1]], "apart": 0}, b"1" * 12, "up to 4096 terms"),
        ({"op": "push", "store": 0, "parts": [["b", 0, 1]], "apart": 2}, b"1" * 12, "expected 24"),
        ({"op": "put", "store": 0, "parts": [["n", 0, "object", 1, [1]]]}, b"12345678", "no array"),
        ({"op": "put", "store": 0, "parts": [["n", 0, "float32", 9, [9]]]}, b"1234", "missing"),
        ({"op": "open", "store": 0, "sync": False}, b"", "synchronous"),
        ({"op": "push", "store": 0, "parts": [["b", 0, 1]], "code": ["2bit", 0.0]}, b"1234", "threshold above 0"),
        ({"op": "push rows", "store": 0, "parts": [["b", 0, 1, 4]]}, b"1" * 48, "4 rows of 3"),
        ({"op": "push rows", "store": 0, "parts": [["b", 0, 1, -1]]}, b"", "-1 rows of 3"),
        ({"op": "push rows", "store": 0, "parts": [["b", 0, 1, 1]]}, b"", "row numbers are missing"),
        ({"op": "push rows", "store": 0, "parts": [["b", 0, 1, 1]]}, bytes(8), "the numbers of its rows are missing"),
        ({"op": "push rows", "store": 0, "parts": [["b", 0, 1, 1]]}, b"\3" + bytes(11), r"in \[0, 3\)"),
        ({"op": "push rows", "store": 0, "parts": [["b", 0, 1, 1]]}, b"\xff" * 8 + bytes(4), r"in \[0, 3\)"),
        ({"op": "push rows", "store": 0, "parts": [["b", 0, 1, 2]]}, bytes(24), r"ascending ones in \[0, 3\)"),
        ({"op": "pull rows", "store": 0, "parts": [["b", 0, 0, 4]]}, b"", "4 rows of 3"),
        ({"op": "pull rows", "store": 0, "parts": [["b", 0, 0, -2]]}, b"", "-2 rows of 3"),
        ({"op": "pull rows", "store": 0, "parts": [["b", 0, 0, 1]]}, b"\3" + bytes(7), r"in \[0, 3\)"),
    ],
)
def test_bad_requests_are_answered_by_errors_and_change_nothing(meta: dict, payload: bytes, text: str) -> None:
    cluster = Cluster(0)
    server = cluster.workers[0].keys[0, "b"].slices[0].server
    ticket = cluster.workers[0].ask(server, "the request", meta, (payload,))
    cluster.net.run()
    with pytest.raises(MXNetError, match=text):
        cluster.workers[0].wait([ticket])
    expected = reference()
    for pulled in cluster.train():
        assert all(pulled[k].tobytes() == expected[k].tobytes() for k in SHAPES)


@pytest.mark.parametrize(("size", "dtype"), [(5, "float32"), (6, "float16")])  # more bytes than before, and as many
@pytest.mark.parametrize("times", [0, 1, 3])
def test_a_slice_that_is_stored_anew_is_pushed_to_as_it_is_then(times: int, size: int, dtype: str) -> None:
    """Whatever a server has noted of requests that came before."""
    cluster = Cluster(0)
    server = cluster.workers[0].keys[0, "b"].slices[0].server
    store = cluster.servers[server].stores[0]
    store.apply = lambda batch: [dense(held.value) + total for held, total in batch]

    def push(turn: int, size: int, dtype: str) -> list[np.ndarray]:
        sent = [w.push(0, {"b": np.full(size, turn, dtype)}) for w in cluster.workers]
        cluster.net.run()
        for worker, tickets in zip(cluster.workers, sent, strict=True):
            worker.wait(tickets)
        pulls = [w.pull(0, ["b"]) for w in cluster.workers]
        cluster.net.run()
        return [p.values()["b"] for p in pulls]

    for turn in range(1, times + 1):
        push(turn, 3, "float32")
    dropped = cluster.workers[0].drop(0, ["b"])
    cluster.net.run()
    cluster.workers[0].wait(dropped)
    for w in cluster.workers:
        w.register_key(0, "b", (size,), np.dtype(dtype))
    stored = cluster.workers[0].put(0, {"b": np.ones(size, dtype)})
    cluster.net.run()
    cluster.workers[0].wait(stored)
    for turn in range(1, 4):
        total = 1 + WORKERS * turn * (turn + 1) / 2
        assert [v.tolist() for v in push(turn, size, dtype)] == [[total] * size] * WORKERS
    refused = [w.push(0, {"b": np.ones(4, dtype)}) for w in cluster.workers]
    cluster.net.run()
    for worker, tickets in zip(cluster.workers, refused, strict=True):
        with pytest.raises(MXNetError, match=f"expected {size * np.dtype(dtype).itemsize}"):
            worker.wait(tickets)


def test_strangers_are_not_served() -> None:
    cluster = Cluster(0)
    van = cluster.net.van()
    customer = Customer(van, timeout=1.0)
    van.on_message = lambda link, message: customer.on_message(message)
    link = van.connect(cluster.server_vans[0].listen("", 0), 1.0)
    ticket = customer.send_request(Peer("server 0", link=link), "pull", {"op": "pull", "store": 0, "parts": []})
    cluster.net.run()
    with pytest.raises(MXNetError, match="introduce yourself"):
        customer.wait([ticket])


def test_who_waits_for_long_is_told_for_whom(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(0)
    notes: list[str] = []
    van = cluster.worker_vans[1]
    take = van.on_message
    van.on_message = lambda link, m: notes.append(m.meta["text"]) if m.kind == NOTICE else take(link, m)
    cluster.workers[1].push(0, {"b": gradient(1, 1, "b")})
    cluster.net.run()
    for kv in cluster.servers:
        kv.send_wait_notices()
    cluster.net.run()
    assert notes == []
    monkeypatch.setattr("dualmx.ps.server.WAIT_NOTICE_SECONDS", -1.0)
    for kv in cluster.servers:
        kv.send_wait_notices()
    cluster.net.run()
    assert notes == ["round 1 of key 'b' still lacks the push of worker 0, 2"]


def test_a_worker_that_comes_back_goes_on_after_its_own_pushes() -> None:
    """Not after those of others, who are ahead of it or behind."""
    cluster = Cluster(0, sync=False)
    for kv in cluster.servers:
        kv.stores[0].apply = lambda batch: [dense(held.value) + total for held, total in batch]
    ones = {key: np.ones(shape, np.float32) for key, shape in SHAPES.items()}

    def push(worker: KVWorker, count: int) -> None:
        tickets = [t for _ in range(count) for t in worker.push(0, ones)]
        cluster.net.run()
        worker.wait(tickets)

    for rank, count in ((0, 2), (1, 5), (2, 1)):
        push(cluster.workers[rank], count)
    cluster.net.kill(cluster.worker_vans[0])
    van = cluster.net.van()
    customer = Customer(van, timeout=1.0)
    van.on_message = lambda link, message: customer.on_message(message)
    peers = [Peer(f"server {i}", link=van.connect(v.listen("", 0), 1.0)) for i, v in enumerate(cluster.server_vans)]
    back = KVWorker(customer, peers, bound=10, rank=0, life=1)
    back.is_restarted = True
    for kv in cluster.servers:
        kv.lost_workers.clear()
    greetings = back.ask_all("hello", back.introduction)
    cluster.net.run()
    opening = back.open(0, False, "open")
    cluster.net.run()
    back.wait(greetings)
    opening.wait()
    for key, shape in SHAPES.items():
        back.register_key(0, key, shape, np.dtype(np.float32))
    assert {key: back.rounds[0, key] for key in SHAPES} == dict.fromkeys(SHAPES, 2)
    push(back, 3)
    pull = back.pull(0, ["w"])
    cluster.net.run()
    assert set(pull.values()["w"].ravel().tolist()) == {1.0 + 2 + 5 + 1 + 3}
