"""Tables that are pushed and pulled by rows: sums, what is asked for, faults, and whole jobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualmx.core.errors import FormatError, MXNetError
from dualmx.ps.customer import Customer, Peer
from dualmx.ps.journal import Journal
from dualmx.ps.row_requests import pull_rows, push_rows
from dualmx.ps.server import KVServer, Record
from dualmx.ps.sharding import slice_key
from dualmx.ps.sparse_rows import IndexedSlices, MutableTable, TableSnapshot, checked_ids, dense, sum_pushes
from dualmx.ps.store import Shard, Store
from dualmx.ps.van.frame import Message
from dualmx.ps.van.simulator import SimNetwork
from dualmx.ps.worker import KVWorker
from tests import jobs

WORKERS, SERVERS, ROWS, WIDTH = 2, 2, 40, 3


def rows(ids: list[int], size: int = 30, dtype: str = "float32") -> IndexedSlices:
    values = np.arange(len(ids) * WIDTH, dtype=dtype).reshape(-1, WIDTH) + 1
    return IndexedSlices(np.array(ids, np.int64), values, size)


def test_rows_are_a_slice_with_zeros_elsewhere() -> None:
    some = rows([2, 5])
    whole = dense(some).reshape(-1, WIDTH)
    assert whole[2].tolist() == [1, 2, 3] and whole[5].tolist() == [4, 5, 6] and whole.sum() == 21
    assert (some.pick(np.array([5, 0, 2])) == whole[[5, 0, 2]]).all()
    assert rows([]).pick(np.array([1])).tolist() == [[0, 0, 0]]
    total = sum_pushes([some, rows([0, 5]), rows([])])
    assert total.ids.tolist() == [0, 2, 5] and (dense(total) == dense(some) + dense(rows([0, 5]))).all()
    half = sum_pushes([IndexedSlices(np.array([1]), np.full((1, WIDTH), v, np.float16), 30) for v in (2048, 1, 1)])
    assert half.dtype == np.float16 and (half.values == 2050).all()  # added in float32


def test_a_table_remembers_the_rows_before_its_last_change() -> None:
    memory = np.arange(30, dtype=np.float32)
    table = MutableTable(lambda: memory, 30, memory.dtype, WIDTH)
    first = table.dense()
    table.begin_update(np.array([1, 4]), keep=True)
    memory.reshape(-1, WIDTH)[[1, 4]] = -1
    before = table.previous()
    assert isinstance(before, TableSnapshot) and (before.dense() == np.arange(30)).all()
    assert (before.pick(np.array([4, 9])) == np.arange(30).reshape(-1, WIDTH)[[4, 9]]).all()
    assert (table.pick(np.array([4])) == -1).all() and (first == np.arange(30)).all()


def test_slices_of_tables_consist_of_whole_rows() -> None:
    slices = slice_key("table", 1000 * 7, 4, servers=3, bound=8, width=7)
    assert [s.server for s in slices] == [0, 1, 2] and all(s.start % 7 == 0 for s in slices)
    big = slice_key("table", 4_000_000 * 16, 4, servers=2, bound=8, width=16)
    assert len(big) > 50 and all(s.start % 16 == 0 for s in big) and len({s.stop - s.start for s in big[:-2]}) <= 2


@pytest.mark.parametrize("ids", [[-1], [3, 3], [5, 2], [10]])
def test_row_numbers_are_checked(ids: list[int]) -> None:
    with pytest.raises(FormatError, match=r"expected ascending ones in \[0, 10\)"):
        checked_ids(np.array(ids, np.int64).data.cast("B"), len(ids), 10, "push")


class Lazy:
    """Momentum of the rows that a gradient has, where they lie."""

    def __init__(self) -> None:
        self.memory: dict[Any, np.ndarray] = {}
        self.momenta: dict[Any, np.ndarray] = {}

    def __call__(self, op: str, store: Store, number: int, message: Message) -> Record:
        store.apply = lambda batch: [self.update(store, held, total) for held, total in batch]
        return {}, []

    def update(self, store: Store, held: Shard, total: IndexedSlices) -> MutableTable:
        slot = held.key, held.number
        table = held.value
        if not isinstance(table, MutableTable):
            memory = self.memory[slot] = dense(held.value).copy()
            self.momenta.setdefault(slot, np.zeros_like(memory))
            table = MutableTable(lambda: memory, held.value.size, memory.dtype, WIDTH)
        table.begin_update(total.ids, store.keep_previous)
        w, m = (a[slot].reshape(-1, WIDTH) for a in (self.memory, self.momenta))
        m[total.ids] = m[total.ids] * np.float32(0.9) - total.values * np.float32(0.1)
        w[total.ids] += m[total.ids]
        return table

    def records(self, number: int) -> Iterator[Record]:
        yield {"op": "optimizer", "store": number}, []


def gradient(rank: int, turn: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng([rank, turn])
    ids = np.unique(draw.integers(0, ROWS, draw.integers(0, 6)))
    return ids, draw.standard_normal((len(ids), WIDTH)).astype(np.float32)


def expected(turns: int) -> np.ndarray:
    w, m = np.ones((ROWS, WIDTH), np.float32), np.zeros((ROWS, WIDTH), np.float32)
    for turn in range(turns):
        total = sum_pushes([IndexedSlices(*gradient(rank, turn), ROWS * WIDTH) for rank in range(WORKERS)])
        m[total.ids] = m[total.ids] * np.float32(0.9) - total.values * np.float32(0.1)
        w[total.ids] += m[total.ids]
    return w


class Cluster:
    """Workers and servers on one simulated network."""

    def __init__(self, seed: int, folder: Path):
        self.net, self.folder = SimNetwork(seed), folder
        self.servers = [self.server(rank) for rank in range(SERVERS)]
        self.workers: list[KVWorker] = []
        for rank in range(WORKERS):
            van = self.net.van()
            customer = Customer(van, timeout=1.0)
            van.on_message = lambda link, message, customer=customer: customer.on_message(message)
            van.on_down = lambda link, reason: None
            worker = KVWorker(customer, [Peer(f"server {i}") for i in range(SERVERS)], bound=10, rank=rank)
            self.workers.append(worker)
            self.connect()
            self.wait(worker, worker.open(0, True, "open")._tickets)
            worker.register_key(0, "t", (ROWS, WIDTH), np.dtype(np.float32))
        first = self.workers[0]
        self.wait(first, first.put(0, {"t": np.ones((ROWS, WIDTH), np.float32)}, tables=["t"]))
        self.wait(first, first.ask_all("optimizer", {"op": "optimizer", "store": 0}))

    def server(self, rank: int) -> KVServer:
        van = self.net.van()
        kv = KVServer(van, WORKERS, Lazy(), Journal(self.folder, rank), returns=True)
        van.on_message, van.on_down = kv.on_message, lambda link, reason: None
        kv.restore()
        return kv

    def connect(self) -> None:
        for worker in self.workers:
            for peer, kv in zip(worker.servers, self.servers, strict=True):
                van: Any = worker._customer._van
                if peer.link not in self.net.links():
                    worker._customer.reconnect(peer, van.connect(kv._van.listen("", 0), 1.0), worker.introduction)
        self.net.run()

    def wait(self, worker: KVWorker, tickets: Any) -> None:
        self.net.run()
        worker.wait(tickets)

    def restart(self, rank: int) -> None:
        van: Any = self.servers[rank]._van
        self.net.kill(van)
        self.servers[rank]._journal.close()  # type: ignore[union-attr]
        self.servers[rank] = self.server(rank)
        self.connect()

    def rows(self, worker: KVWorker, ids: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        received = pull_rows(worker, 0, {"t": ids})
        self.net.run()
        return received()["t"]


@pytest.mark.parametrize("seed", range(8))
def test_faults_change_no_bit_of_a_table(seed: int, tmp_path: Path) -> None:
    cluster, turns = Cluster(seed, tmp_path), 8
    cluster.net.duplicate = 0.3
    for turn in range(turns):
        sent = [(w, push_rows(w, 0, {"t": gradient(r, turn)})) for r, w in enumerate(cluster.workers)]
        if (turn + seed) % 3 == 0:
            cluster.net.step()
            cluster.restart(turn % SERVERS)
        for worker, queued in sent:
            cluster.wait(worker, queued.requests_after_flush())
        ids = np.array([0, 7, 20, 39])
        at, values = cluster.rows(cluster.workers[turn % WORKERS], ids)
        assert (at == ids).all() and values.tobytes() == expected(turn + 1)[ids].tobytes()
    whole = cluster.workers[0].pull(0, ["t"])
    cluster.net.run()
    assert whole.values()["t"].tobytes() == expected(turns).tobytes()
    at, values = cluster.rows(cluster.workers[1], None)
    assert (at == np.arange(ROWS)).all() and values.tobytes() == expected(turns).tobytes()


def test_the_journal_is_what_keeps_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: without records of what was pushed, a restarted server has other rows."""
    monkeypatch.setattr(KVServer, "_write_closed", lambda self, number, closed: None)
    with pytest.raises((AssertionError, MXNetError)):
        test_faults_change_no_bit_of_a_table(0, tmp_path)


def test_a_worker_that_is_a_round_behind_gets_the_rows_before(tmp_path: Path) -> None:
    cluster = Cluster(0, tmp_path)
    for turn in range(2):
        sent = [(w, push_rows(w, 0, {"t": gradient(r, turn)})) for r, w in enumerate(cluster.workers)]
        for worker, queued in sent:
            cluster.wait(worker, queued.requests_after_flush())
    late = cluster.workers[1]
    late.rounds[0, "t"] = 1
    _, values = cluster.rows(late, np.arange(ROWS))
    assert values.tobytes() == expected(1).tobytes()


@pytest.mark.slow
def test_tables_of_real_jobs(tmp_path: Path) -> None:
    """All checks of `jobs/rows.py` hold on both workers, whose tables have the same bits."""
    script = [jobs.PYTHON, "-W", "error", Path(__file__).parent / "jobs" / "rows.py", tmp_path]
    done = jobs.run(*jobs.launcher(2, 2), *script, env={"MXNET_KVSTORE_BIGARRAY_BOUND": "8"})
    for check in ("values", "few_bytes_travel", "updates", "trainers", "modules"):
        assert all(f"[worker {rank}] held: {check}" in done.stdout for rank in (0, 1))
    tables = sorted(p.name[:-6] for p in tmp_path.glob("*-0.npz"))
    for name in tables:
        one, two = (np.load(tmp_path / f"{name}-{rank}.npz") for rank in (0, 1))
        with one, two:
            assert one["arr_0"].tobytes() == two["arr_0"].tobytes(), name
    assert len(tables) >= 12
