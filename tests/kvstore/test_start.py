"""The start of a job: initial weights are in place on all workers before the first gradients are exchanged."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx.kvstore import dist
from dualmx.kvstore.server_updates import OptimizerRequests
from dualmx.ps import ServerNode
from tests import jobs
from tests.ps.test_members import Running

FIRST = np.array([3.0, -2.0, 0.5], np.float32)


class Threads:
    """Lets each thread be a worker of a job of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self._here = threading.local()
        monkeypatch.setattr(dist, "current_worker", lambda what: self._here.worker)
        monkeypatch.setattr(dist, "_numbers", self)
        monkeypatch.setattr(dist, "set_kvstore_handle", lambda store: None)  # the profiler would keep it

    def __next__(self) -> int:
        self._here.number = getattr(self._here, "number", -1) + 1
        return self._here.number

    def sit(self, worker: Any) -> None:
        self._here.worker, self._here.number = worker, -1


def trained(rank: int, in_store: bool, pause: random.Random) -> tuple[np.ndarray, np.ndarray]:
    """The weights of a worker before and after its first step; it begins with others than the first worker."""
    weight = mx.gluon.Parameter("w", shape=(3,))
    weight.initialize(mx.init.Constant(mx.nd.array(FIRST + 100 * rank)))
    time.sleep(pause.random() * 0.003)
    trainer = mx.gluon.Trainer([weight], "sgd", {"learning_rate": 1.0}, kvstore="dist_sync", update_on_kvstore=in_store)
    before = weight.data().asnumpy()
    time.sleep(pause.random() * 0.003)
    with mx.autograd.record():
        loss = (weight.data() * (rank + 1)).sum()
    loss.backward()
    trainer.step(1)
    return before, weight.data().asnumpy()


def one_job(threads: Threads, seed: int) -> str:
    """Start a job of two workers and a server, and make a step; returns what is wrong."""
    rng = random.Random(seed)
    running, found = Running(2, 1), {}

    def work(rank: int, pause: random.Random) -> None:
        time.sleep(pause.random() * 0.01)
        running.worker(rank)
        running.join(f"worker {rank}")
        threads.sit(running.workers[rank])
        found[rank] = trained(rank, seed % 2 == 0, pause)

    running.scheduler()
    running.go("server 0", lambda: ServerNode(replace(running.job, role="server", task=0), OptimizerRequests()).run())
    for rank in rng.sample(range(2), 2):
        pace = random.Random(rng.random())
        running.go(f"work {rank}", lambda r=rank, p=pace: work(r, p))  # type: ignore[misc]
    running.join("work 0", "work 1")
    errors = [str(e) for name, e in running.errors.items() if name.startswith("work")]
    running.end()
    if errors:
        return errors[0]
    wrong = [r for r, (a, b) in found.items() if (a != FIRST).any() or (b != FIRST - 3).any()]
    return f"workers {wrong}: {found}" if wrong else ""


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Threads]:
    monkeypatch.setenv("DUALMX_DIST_TIMEOUT", "20")
    yield Threads(monkeypatch)


@pytest.mark.parametrize("jobs", [4, pytest.param(200, marks=pytest.mark.slow)])
def test_weights_are_in_place_before_the_first_gradients(jobs: int, threads: Threads) -> None:
    for seed in range(jobs):
        assert one_job(threads, seed) == "", seed


@pytest.mark.slow
def test_control_without_waiting_for_the_first_worker(threads: Threads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dist.DistKVStore, "_setup_barrier", lambda self, what, keys=(): None)
    put = dist.DistKVStore.init

    def late(self: dist.DistKVStore, key: Any, value: Any) -> None:
        time.sleep(0.05 * (self.rank == 0))
        put(self, key, value)

    monkeypatch.setattr(dist.DistKVStore, "init", late)
    assert "is not on this server" in one_job(threads, 1)


SCRIPT = """
import numpy as np, random, sys, time
import dualmx as mx
from tests.kvstore.test_start import FIRST, trained
import os
rank = int(os.environ["DMLC_TASK_ID"])
before, after = trained(rank, sys.argv[1] == "True", random.Random(f"{rank} {sys.argv[2]}"))
assert (before == FIRST).all() and (after == FIRST - 3).all(), (before, after)
print("right")
"""


@pytest.mark.slow
def test_weights_are_in_place_in_real_jobs() -> None:
    for seed in range(10):
        script = [jobs.PYTHON, "-c", SCRIPT, seed % 2 == 0, seed]
        assert jobs.run(*jobs.launcher(2, 1), *script).stdout.count("right") == 2
