"""Elastic jobs: workers die, come back and join, and every sample of an epoch counts once."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx.kvstore.elastic_sampler import ElasticSampler, SamplePool, batch_sizes
from dualmx.ps.elastic_rounds import NEWCOMER, ElasticRounds
from dualmx.ps.elastic_worker import ElasticWorker, RoundRecord
from dualmx.ps.van.frame import REPLY, Message
from tests import jobs

JOB = Path(__file__).parent / "jobs" / "elastic.py"
LENGTH, BATCH, EPOCHS = 2000, 5, 2


class TestSizes:
    @pytest.mark.parametrize("members", [1, 2, 3, 5, 8])
    def test_an_epoch_is_used_up_in_nearly_equal_parts(self, members: int) -> None:
        for batch_size in (1, 2, 7):
            for rows in range(1, 80):
                left = rows
                while left:
                    now = batch_sizes(left, members, batch_size)
                    assert max(now) - min(now) <= 1 and 0 < sum(now) <= left and max(now) <= batch_size
                    left -= sum(now)
                    enough = batch_size > 1 and rows >= members
                    assert min(now) > 0 or not enough, (rows, members, batch_size)


def simulated(seed: int) -> Counter[tuple[int, int]]:
    """How often each (epoch, sample) counts while workers come and go between and in the midst of batches."""
    rng = random.Random(seed)
    attendance, used = ElasticRounds(), Counter()
    alive = {0: 0, 1: 0, 2: 0}  # rank -> last batch that it has ended

    def fresh() -> tuple[SamplePool, ElasticWorker]:
        calls: Any = None, lambda start: Message(REPLY, 0, attendance.page(start)), None
        return SamplePool(41, 3, True, 5), ElasticWorker(0, 3, True, *calls)

    pools = {rank: fresh() for rank in alive}
    new: set[int] = set()
    marks: dict[int, list[Any]] = defaultdict(lambda: ["order", 0, 1])
    names, requests = iter(range(3, 10_000)), iter(range(1, 1 << 60))
    asked: set[int] = set()
    epochs = 4

    def settle() -> None:
        if attendance.try_complete(alive):
            for (rank, _), told in attendance.pop_replies():
                pool, batches = pools[rank]
                over = [RoundRecord(told["batch"] - 1, before, told["used"])] if alive[rank] else []
                if rank in new:
                    new.discard(rank)
                    batches._load_history(told["batch"])
                    epoch, first = batches.marks["order"]
                    over, marks[rank] = batches.after(first - 1), ["order", epoch, first]
                    pool = SamplePool(41, 3, True, 5, epoch)
                else:
                    batches.history += over
                for one in over:
                    pool.mark_used(one.members, one.counted)
                    if pool.epoch > marks[rank][1]:
                        marks[rank] = ["order", pool.epoch, one.number + 1]
                pools[rank] = pool, batches
                asked.discard(rank)
            if attendance.number > 1:
                for rank in pools[attendance.members[0]][1].history[-1].counted:
                    used.update((epoch_then[0], int(r)) for r in shares_then[0][rank])
            here = attendance.members
            epochs_seen = {pools[r][0].epoch for r in here}
            assert len(epochs_seen) == 1 and len({pools[r][0].rows.tobytes() for r in here}) == 1
            epoch_then[0], shares_then[0] = epochs_seen.pop(), pools[here[0]][0].next_shares(here)

    epoch_then, shares_then = [0], [{}]  # type: ignore[var-annotated]
    while epoch_then[0] < epochs:
        before = attendance.members
        event = rng.random()
        if event < 0.03 and len(alive) > 1:
            gone = rng.choice(sorted(alive))  # before or after it has ended its batch
            del alive[gone]
            asked.discard(gone)
        elif event < 0.06 and len(alive) < 6:
            rank = next(names)
            alive[rank], pools[rank] = NEWCOMER, fresh()
            new.add(rank)
        else:
            free = sorted(alive.keys() - asked)
            if free:
                rank = rng.choice(free)
                asked.add(rank)
                alive[rank] = (
                    NEWCOMER if alive[rank] == NEWCOMER and rank not in attendance.members else attendance.number
                )
                attendance.mark([] if rank in new else [marks[rank]])
                attendance.request_round(rank, alive[rank], (rank, next(requests)))
                alive[rank] = max(alive[rank], 0)
        settle()
    return used


def expected() -> Counter[tuple[int, int]]:
    return Counter({(epoch, row): 1 for epoch in range(4) for row in range(41)})


def test_every_sample_counts_once_in_whatever_order_workers_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dualmx.ps.elastic_rounds.PAGE", 3)
    for seed in range(60):
        assert simulated(seed) == expected(), seed


def test_control_without_giving_samples_of_the_dead_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    use = SamplePool.mark_used
    monkeypatch.setattr(SamplePool, "mark_used", lambda self, members, used: use(self, members, members))
    assert sum(simulated(seed) != expected() for seed in range(20)) > 10


class Elastic:
    """An elastic job with a launcher, whose workers are killed, and to which others are added."""

    def __init__(self, folder: Path, *code: str, options: tuple[str, ...] = ()):
        self.folder = folder
        folder.mkdir()
        self.limit(1)
        self.command = [jobs.PYTHON, *(code or (JOB,)), folder, LENGTH, BATCH, EPOCHS]
        launch = jobs.launcher(2, 2, "--on-worker-death", "elastic", *options)
        self.launcher = jobs.start(*launch, *self.command, env={"MXNET_KVSTORE_BIGARRAY_BOUND": "4"})
        self.added: list[jobs.Process] = []

    def limit(self, batches: int) -> None:
        """Let the workers go on until they have done as many batches."""
        (self.folder / "new").write_text(str(batches))
        (self.folder / "new").replace(self.folder / "limit")

    def wait_for(self, *ranks: int, more: int = 2) -> None:
        """Go on, slowly, until these workers have done some more batches."""
        goals = {r: self.batch(r) + more for r in ranks}
        until = time.monotonic() + 150
        while any(self.batch(r) < goal for r, goal in goals.items()):
            assert time.monotonic() < until and self.launcher.poll() is None, self.end()
            self.limit(max(self.batch(r) for r in range(9)) + 1)
            time.sleep(0.2)

    def batch(self, rank: int) -> int:
        try:
            return int((self.folder / f"{rank}.at").read_text() or 0)
        except OSError:
            return 0

    def kill(self, name: str, how: int = signal.SIGKILL) -> None:
        os.kill(jobs.members(self.launcher.pid)[name], how)

    def add(self) -> None:
        """Start one more worker by hand, with the environment that the others have."""
        env = jobs.environment(jobs.members(self.launcher.pid)["worker 0"])
        self.added.append(jobs.start(*self.command, env={**env, "DMLC_TASK_ID": None}))

    def end(self) -> list[str]:
        """Go on to the end; returns what was said."""
        self.limit(1 << 30)
        try:
            said = jobs.finish(self.launcher, 150)[0].splitlines()
            for one in self.added:
                said += jobs.finish(one, 20)[0].splitlines()
                assert one.returncode == 0, said
            return said
        finally:
            jobs.end(self.launcher, *self.added)

    def told(self) -> Iterator[dict[str, Any]]:
        for path in self.folder.glob("*.log"):
            for line in path.read_text().splitlines():
                if line.endswith("}"):  # the last one of a worker that was killed may be torn
                    yield json.loads(line)

    def ledger(self) -> tuple[Counter[tuple[int, int]], np.ndarray, set[int]]:
        """How often each (epoch, sample) counts; the weights that follow from that; how many workers there were."""
        told = list(self.told())
        used = {t["batch"]: t["used"] for t in told if "used" in t}
        weights: dict[int, set[str]] = {}
        for t in (t for t in told if "weights" in t):
            weights.setdefault(t["batch"], set()).add(t["weights"])
        assert all(len(found) == 1 for found in weights.values()), "workers have different weights"
        counted = [t for t in told if "rows" in t and t["me"] in used[t["batch"]]]
        ledger = Counter((t["epoch"], row) for t in counted for row in t["rows"])
        data = np.random.default_rng(0).standard_normal((LENGTH, 3)).astype(np.float32)
        w, m = np.ones((2, 3)), np.zeros((2, 3))
        b, n = np.zeros(2), np.zeros(2)
        for batch in sorted(weights):
            now = [t for t in counted if t["batch"] == batch]
            x = data[[row for t in now for row in t["rows"]]].astype(np.float64)
            y = 2 * (x @ w.T + b) / now[0]["total"]
            m, n = 0.9 * m - 0.1 * y.T @ x, 0.9 * n - 0.1 * y.sum(0)
            w, b = w + m, b + n
        last = np.frombuffer(bytes.fromhex(weights[max(weights)].pop()), np.float32)
        return ledger, last - np.concatenate([w.reshape(-1), b]), {t["members"] for t in told if "members" in t}


def once() -> Counter[tuple[int, int]]:
    return Counter({(epoch, row): 1 for epoch in range(EPOCHS) for row in range(LENGTH)})


@pytest.mark.slow
def test_workers_die_and_join_and_each_sample_counts_once(tmp_path: Path) -> None:
    """Kills in the midst of batches, restarts by the launcher, and a worker beyond the first number."""
    job = Elastic(tmp_path / "job")
    job.wait_for(0, 1)
    job.add()
    job.wait_for(2)
    job.kill("worker 0")  # the first, which speaks for all
    job.wait_for(1, 2, 3)
    job.kill("worker 1")
    job.kill("worker 0")
    said = job.end()
    assert job.launcher.returncode == 0, said[-30:]
    assert sum("is started again" in line for line in said) == 3, said
    assert any("begins, back: True" in line for line in said)
    ledger, error, numbers = job.ledger()
    assert ledger == once()
    assert np.abs(error).max() < 1e-5
    assert {2, 3} <= numbers


@pytest.mark.slow
def test_servers_and_the_scheduler_may_die_as_well(tmp_path: Path) -> None:
    job = Elastic(tmp_path / "job", options=("--on-server-death", "wait"))
    job.wait_for(0, 1)
    job.kill("server 1")
    job.wait_for(0, 1)
    job.kill("worker 1")
    job.kill("server 0")
    job.wait_for(0, 2)
    job.kill("scheduler 0")
    job.wait_for(0, 2)
    said = job.end()
    assert job.launcher.returncode == 0, said[-30:]
    assert sum("is started again" in line for line in said) == 4, said
    ledger, error, _ = job.ledger()
    assert ledger == once() and np.abs(error).max() < 1e-5


@pytest.mark.slow
def test_the_example_learns() -> None:
    launch = jobs.launcher(2, 1, "--on-worker-death", "elastic")
    done = jobs.run(*launch, jobs.PYTHON, "examples/parallel/elastic.py", "--epochs", 2)
    found = re.findall(r"epoch 1: 2000 of 4000 samples here, one of 2 workers, accuracy ([\d.]+)", done.stdout)
    assert len(found) == 2 and min(map(float, found)) > 0.8, done.stdout


def test_one_process_uses_each_sample_once() -> None:
    sampler = ElasticSampler(10, 4, mx.kv.create("local"), seed=3)
    first = [rows.tolist() for rows in sampler]
    assert sorted(sum(first, [])) == list(range(10)) and [len(rows) for rows in first] == [4, 4, 2]
    assert sampler.epoch == 1 and len(sampler) == 3
    assert [rows.tolist() for rows in sampler] != first
