"""Processes of a job change to compiled programs at one round of their store, those that come back too."""

from __future__ import annotations

import ast
import threading
from pathlib import Path
from typing import Any

import pytest

from dualmx import nd
from dualmx.compile import job_rounds as module
from dualmx.compile.events import counters
from dualmx.compile.job_rounds import JobRounds
from dualmx.compile.promotion import ProgramSizes, Promotion
from dualmx.compile.tiers import current_tier
from tests import jobs
from tests.conftest import forget_programs

SETTINGS = (
    "DUALMX_TIER",
    "DUALMX_PROMOTE_AT",
    "DMLC_PS_ROOT_URI",
    "DMLC_ROLE",
    "DUALMX_ON_WORKER_DEATH",
    "MXNET_ENFORCE_DETERMINISM",
)

WORKER = """
import hashlib, os, signal, sys
import numpy as np
import dualmx as mx
from dualmx.compile.events import counters
from dualmx.kvstore import dist

STORE, ON_KVSTORE, DIES_AT, FORGETS = sys.argv[1], *map(int, sys.argv[2:5])
store = mx.kv.create(STORE)
mx.random.seed(1)
net = mx.gluon.nn.HybridSequential()
net.add(mx.gluon.nn.Dense(8, "tanh", in_units=5), mx.gluon.nn.Dense(3, in_units=8))
net.initialize()
net.hybridize()
settings = {"learning_rate": 0.1, "momentum": 0.9}
trainer = mx.gluon.Trainer(net.collect_params(), "sgd", settings, kvstore=store, update_on_kvstore=bool(ON_KVSTORE))
x = mx.nd.array(np.sin(np.arange(40) + store.rank).reshape(8, 5))
begins = getattr(store, "completed_rounds", 0)
if FORGETS and begins:  # the control: rounds before the death are not known
    class Forgetful(type(dist.job_rounds)):
        next_change = property(lambda self: 0, lambda self, value: None)
        def advance(self, number, flush):
            super().advance(number - begins, flush)
    dist.job_rounds.__class__, dist.job_rounds.number = Forgetful, 0
said = []
for step in range(begins, 8):
    before = counters.numpy_runs
    with mx.autograd.record():
        loss = (net(x * (step + 1)) ** 2).sum()
    loss.backward()
    if step == DIES_AT and store.rank == 1 and not begins:
        os.kill(os.getpid(), signal.SIGKILL)
    trainer.step(16)
    mx.nd.waitall()
    runs = counters.numpy_runs - before
    weights = [p.data().asnumpy().tobytes() for p in net.collect_params().values()]
    if store.rank == 0:
        [net(x * step).asnumpy() for _ in range(5)]  # it evaluates, the others do not
    said.append((step, runs > 0, hashlib.sha256(b"".join(weights)).hexdigest()))
print("worker", store.rank, said, flush=True)
"""
Said = dict[int, list[tuple[int, bool, str]]]


def train(
    folder: Path, *options: str, on_kvstore: bool = True, dies_at: int = -1, forgets: bool = False, **env: str
) -> Said:
    """What two workers tell of each step: whether they ran anything uncompiled, and a hash of the weights."""
    script = folder / "worker.py"
    script.write_text(WORKER)
    settings: dict[str, str | None] = {**dict.fromkeys(SETTINGS), "DUALMX_PROMOTE_AT": "4", **env}
    arguments = ("dist_sync", int(on_kvstore), dies_at, int(forgets))
    done = jobs.run(*jobs.launcher(2, 1, *options), jobs.PYTHON, script, *arguments, env=settings)
    found: Said = {}
    for line in done.stdout.splitlines():
        rank, _, said = line.partition("] worker ")[2].partition(" ")
        if said:
            found[int(rank)] = ast.literal_eval(said)
    assert found.keys() == {0, 1}
    return found


@pytest.mark.parametrize("on_kvstore", [True, False])
def test_workers_change_at_the_same_round(tmp_path: Path, on_kvstore: bool) -> None:
    said = train(tmp_path, on_kvstore=on_kvstore)
    assert said[0] == said[1]
    assert [uncompiled for _, uncompiled, _ in said[0]] == [True] * 3 + [False] * 5


WAITS = ("--on-worker-death", "wait")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Said:
    """What the workers tell if none of them dies."""
    return train(tmp_path_factory.mktemp("undisturbed"))


@pytest.mark.slow
@pytest.mark.parametrize("dies_at", [2, 3, 5])
def test_a_worker_that_comes_back_knows_the_round(tmp_path: Path, undisturbed: Said, dies_at: int) -> None:
    """Before the change, at it, and after it; the weights are those of a job in which nobody died."""
    expected = undisturbed
    said = train(tmp_path, *WAITS, DUALMX_TIER="auto", dies_at=dies_at)
    assert said[0] == expected[0]
    assert said[1] == expected[1][dies_at:]


@pytest.mark.slow
def test_control_with_rounds_that_are_counted_anew(tmp_path: Path, undisturbed: Said) -> None:
    expected = undisturbed
    said = train(tmp_path, *WAITS, DUALMX_TIER="auto", dies_at=5, forgets=True)
    assert said[1][0][1] and not expected[1][5][1]
    assert said[0][-1][2] != expected[0][-1][2]


@pytest.mark.slow
def test_jobs_whose_workers_may_come_back_compile_from_the_start(tmp_path: Path) -> None:
    expected = train(tmp_path, *WAITS)
    assert not any(uncompiled for _, uncompiled, _ in expected[0])
    said = train(tmp_path, *WAITS, dies_at=5)
    assert said == {0: expected[0], 1: expected[1][5:]}


@pytest.mark.parametrize(
    ("given", "tier"),
    [
        ({}, "auto"),
        ({"DUALMX_ON_WORKER_DEATH": "elastic"}, "auto"),
        ({"DUALMX_ON_WORKER_DEATH": "wait"}, "xla"),
        ({"DUALMX_ON_WORKER_DEATH": "wait", "DUALMX_TIER": "auto"}, "auto"),
        ({"MXNET_ENFORCE_DETERMINISM": "1"}, "xla"),
        ({"DMLC_ROLE": "server"}, "xla"),
        ({"DMLC_ROLE": "server", "DUALMX_TIER": "auto"}, "xla"),
        ({"DMLC_ROLE": "server", "DUALMX_TIER": "numpy"}, "numpy"),
    ],
)
def test_the_tier_follows_from_the_job(monkeypatch: pytest.MonkeyPatch, given: dict[str, str], tier: str) -> None:
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    assert current_tier() == "auto"
    monkeypatch.setenv("DMLC_PS_ROOT_URI", "127.0.0.1")
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert current_tier() == tier


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> JobRounds:
    """The rounds of a job whose programs are compiled from round 4 on."""
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DMLC_PS_ROOT_URI", "127.0.0.1")
    monkeypatch.setenv("DUALMX_PROMOTE_AT", "4")
    fresh = JobRounds()
    for user in ("promotion", "tiers", "job_rounds"):
        monkeypatch.setattr(f"dualmx.compile.{user}.job_rounds", fresh)
    assert module.job_rounds is fresh
    return fresh


def _flush() -> None:
    """Nothing is recorded."""


class _Compilation:
    """One that is over."""

    def __init__(self) -> None:
        self.program: Any = object()

    def run(self) -> None:
        pass

    def result(self) -> Any:
        return self.program


def test_programs_count_their_runs_until_there_is_a_round(rounds: JobRounds) -> None:
    promotion, done = Promotion(3, 1e6, ProgramSizes()), _Compilation()
    assert promotion.next_run(lambda: done) is None
    assert promotion.first_use == "run 3"
    rounds.advance(1, _flush)
    assert promotion.first_use == "round 4 of the job"
    assert [promotion.next_run(lambda: done) for _ in range(4)] == [None] * 4  # of an evaluation
    rounds.advance(2, _flush)
    assert promotion.next_run(lambda: done) is None and current_tier() == "auto"
    tiers: list[str] = []
    rounds.advance(3, lambda: tiers.append(current_tier()))
    rounds.advance(4, lambda: tiers.append(current_tier()))
    assert tiers == ["auto"]  # what was recorded before the change runs as before, once
    assert promotion.next_run(lambda: done) is done.program and current_tier() == "xla"


def test_rounds_are_those_of_the_thread_that_pushes(rounds: JobRounds) -> None:
    """Another one, which prepares data, is ahead by more or less, as it happens."""
    rounds.advance(3, _flush)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append((current_tier(), rounds.progress(9, 2))))
    thread.start()
    thread.join()
    assert found == [("auto", (9, 2))]
    assert (current_tier(), rounds.progress(9, 2)) == ("xla", (4, 4))


def test_processes_that_join_in_another_way_compile_what_they_run_next(rounds: JobRounds) -> None:
    promotion, done = Promotion(9, 1e6, ProgramSizes()), _Compilation()
    assert promotion.next_run(lambda: done) is None
    rounds.is_joined = True
    assert promotion.next_run(lambda: done) is done.program and current_tier() == "xla"


def ragged(sizes: list[int]) -> list[tuple[int, int]]:
    """How many programs run uncompiled, and how many are compiled, for sums of so many numbers."""
    found = []
    for n in sizes:
        before = counters.numpy_runs, counters.compiles
        assert (nd.ones((n,)) * 3 + 1).sum().asscalar() == 4 * n
        found.append((counters.numpy_runs - before[0], counters.compiles - before[1]))
    return found


@pytest.mark.parametrize("deaths", [None, "elastic", "wait"])
def test_sizes_that_follow_the_data_are_not_compiled_from_that_round_on(
    rounds: JobRounds, deaths: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dualmx.compile.promotion._known_sizes", {})
    if deaths:
        monkeypatch.setenv("DUALMX_ON_WORKER_DEATH", deaths)
        monkeypatch.setenv("DUALMX_TIER", "auto")
    forget_programs()
    rounds.advance(9, _flush)
    monkeypatch.delenv("DUALMX_PROMOTE_AT")
    rounds.advance(50, _flush)
    few, more = ragged(list(range(100, 107))), ragged(list(range(200, 210)))
    assert few == [(0, 1)] * 7  # few sizes are worth it
    assert more == ([(0, 1)] * 10 if deaths == "wait" else [(1, 0)] * 10)
    if deaths != "wait":
        assert ragged([200] * 3) == [(1, 0)] * 3  # it counts its runs
        assert ragged([100]) == [(0, 0)]
