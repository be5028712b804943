"""Training by `hvd.elastic` in real processes that are killed, stopped, started again, and added."""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import dualmx as mx
import dualmx.horovod as hvd
from tests import jobs
from tests.horovod.jobs import regrouped

SAMPLES, EPOCHS = 3000, 2
ELASTIC = ("--on-worker-death", "elastic")


class Running:
    """A job of the launcher, and the processes that are added to it by hand."""

    def __init__(self, folder: Path, workers: int, *options: str, script: str = "tests/horovod/jobs/regrouped.py"):
        self.folder = folder
        self.command = [jobs.PYTHON, script, folder, SAMPLES, EPOCHS]
        self.said = (folder / "said").open("w+")
        self.started = [self.start(*jobs.launcher(workers, 0, *ELASTIC, *options))]

    def start(self, *launch: str, env: jobs.Env | None = None) -> jobs.Process:
        return jobs.start(*launch, *self.command, env=env, stdout=self.said)

    def add(self, pid: int) -> None:
        """Start one more process by hand, with the environment of another one."""
        self.started.append(self.start(env={**jobs.environment(pid), "DMLC_TASK_ID": None}))

    def places(self) -> dict[int, tuple[int, int, int]]:
        """`(rank, size, step)` of the processes that live, by process id."""
        found = {}
        for file in self.folder.glob("*.at"):
            if Path(f"/proc/{file.stem}").exists():
                rank, size, step = map(int, file.read_text().split())
                found[int(file.stem)] = (rank, size, step)
        return found

    def wait(self, done: Callable[[dict[int, tuple[int, int, int]]], bool], seconds: float = 120) -> dict[int, int]:
        """Wait until the places are as they should be; returns process ids by rank."""

        def ready() -> bool:
            assert self.started[0].poll() is None, self.text()
            return done(self.places())

        jobs.wait_for(ready, seconds, lambda: f"{self.places()}\n{self.text()}")
        return {rank: pid for pid, (rank, _, _) in self.places().items()}

    def wait_for_size(self, size: int, more: int = 3) -> dict[int, int]:
        """Wait until a group of so many processes has made some steps."""
        first = max((step for _, _, step in self.places().values()), default=0)
        return self.wait(
            lambda places: (
                len(places) >= size
                and sum(s == size and step >= first + more for _, s, step in places.values()) == size
                and {rank for rank, s, _ in places.values() if s == size} == set(range(size))
            )
        )

    def text(self) -> str:
        return (self.folder / "said").read_text()[-8000:]

    def finish(self, processes: int) -> list[list[int]]:
        """Let the job end at full speed; check its result, and return sizes of the groups that each process was in."""
        (self.folder / "go").touch()
        for process in self.started:
            assert process.wait(120) == 0, self.text()
        found = re.findall(r"finished of (\d+) after (\d+) steps, groups of \[(.*?)\]", self.text())
        assert len(found) == processes and {int(size) for size, _, _ in found} == {processes}, self.text()
        ends = [np.load(file) for file in self.folder.glob("*.npy")]
        assert len(ends) == processes and all(end.tobytes() == ends[0].tobytes() for end in ends)
        (steps,) = {int(steps) for _, steps, _ in found}
        assert_after(steps, ends[0])
        return sorted([int(n) for n in sizes.split(",") if n] for _, _, sizes in found)

    def end(self) -> None:
        jobs.end(*self.started)
        self.said.close()


def assert_after(steps: int, weights: np.ndarray) -> None:
    """The weights are those of one process that has made all steps alone."""
    hvd.init()
    mx.random.seed(7)
    net, trainer = regrouped.made()
    for _ in range(steps):
        regrouped.step(net, trainer)
    alone = np.concatenate([p.data().asnumpy().reshape(-1) for p in net.collect_params().values()])
    hvd.shutdown()
    np.testing.assert_allclose(weights, alone, rtol=1e-4, atol=1e-5)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    started: list[Running] = []

    def begin(*args: object, **more: str) -> Running:
        started.append(Running(tmp_path, *args, **more))  # type: ignore[arg-type]
        return started[-1]

    yield begin
    for job in started:
        job.end()


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 2])
def test_others_go_on_from_the_last_commit_and_the_one_that_was_killed_returns(
    rank: int, start: Callable[..., Running]
) -> None:
    job = start(3)
    pids = job.wait_for_size(3)
    os.kill(pids[rank], signal.SIGKILL)
    left = job.wait_for_size(2, 1)
    assert set(left.values()) == set(pids.values()) - {pids[rank]}
    again = job.wait_for_size(3)
    assert again[0] == left[0] and again[1] == left[1] and again[2] not in pids.values()
    assert job.finish(3) == [[], [2, 3], [2, 3]]
    assert "goes back to the last commit" in job.text() and "died" in job.text()


@pytest.mark.slow
def test_the_last_one_goes_on_alone(start: Callable[..., Running]) -> None:
    job = start(3, "--restarts", "0")
    pids = job.wait_for_size(3)
    for rank in (0, 2):
        os.kill(pids[rank], signal.SIGKILL)
    assert job.wait_for_size(1) == {0: pids[1]}
    assert job.finish(1) == [[1]] and "the job goes on without it" in job.text()


@pytest.mark.slow
def test_one_that_was_stopped_comes_after_those_who_went_on(start: Callable[..., Running]) -> None:
    job = start(3)
    pids = job.wait_for_size(3)
    os.kill(pids[0], signal.SIGSTOP)
    job.wait_for_size(2, 10)
    assert "no sign of life" in job.text()
    os.kill(pids[0], signal.SIGCONT)
    again = job.wait_for_size(3)
    assert (again[0], again[1]) == (pids[1], pids[2])
    assert job.finish(3).count([2, 3]) == 2


@pytest.mark.slow
def test_a_process_beyond_the_first_number_joins(start: Callable[..., Running]) -> None:
    """They exchange values in the midst of compiled programs as well."""
    job = start(1, "--env", "REGROUPED_NORM:sync")
    pids = job.wait_for_size(1)
    job.add(pids[0])
    two = job.wait_for_size(2)
    assert two[0] == pids[0] and "goes back" not in job.text()
    os.kill(two[1], signal.SIGKILL)
    job.wait_for_size(1)
    job.add(pids[0])
    job.wait_for_size(2)
    assert job.started.pop(1).wait(10) == -signal.SIGKILL
    assert job.finish(2) == [[], [2, 1, 2]]


@pytest.mark.slow
def test_too_few_wait_and_too_many_are_spare(start: Callable[..., Running]) -> None:
    job = start(2, "--min-np", "2", "--max-np", "2")
    pids = job.wait_for_size(2)
    job.add(pids[0])
    time.sleep(3)
    assert job.wait_for_size(2) == pids
    os.kill(pids[1], signal.SIGKILL)  # the spare one, or the one that is started again, takes its place
    again = job.wait_for_size(2)
    assert again[0] == pids[0] and again[1] != pids[1]
    assert job.finish(2) == [[], [2]]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_processes_are_killed_at_any_moment(seed: int, start: Callable[..., Running]) -> None:
    rng = random.Random(seed)
    job = start(3)
    job.wait_for_size(3, 1)
    for _ in range(7):
        workers = [pid for name, pid in jobs.members(job.started[0].pid).items() if name.startswith("worker")]
        victim = rng.choice(workers)
        if job.places().keys() - {victim}:  # else there would be nobody who knows what was committed
            os.kill(victim, signal.SIGKILL)
        time.sleep(rng.uniform(0, 4))
    job.wait_for_size(3)
    sizes = job.finish(3)
    assert all(last == 3 for *_, last in filter(None, sizes))


@pytest.mark.slow
def test_without_an_elastic_job_the_loss_is_an_error_that_says_so() -> None:
    command = [*jobs.launcher(2), jobs.PYTHON, "tests/horovod/jobs/broken.py"]
    done = jobs.run(*command, status=128 + signal.SIGKILL)
    for name in ("first", "in place", "begun", "object", "barrier", "run"):
        assert re.search(rf"{name}: lost: .*process 1 died", done.stdout), name
    assert "the job is not elastic; start it by dualmx-launch -s 0 --on-worker-death elastic" in done.stdout


@pytest.mark.slow
def test_example() -> None:
    script = ["examples/coming_from/horovod_elastic.py", "--epochs", "1"]
    done = jobs.run(*jobs.launcher(2, 0, *ELASTIC), jobs.PYTHON, *script)
    said = re.findall(r"epoch 0: process (\d) of 2, accuracy ([\d.]+)", done.stdout)
    assert {rank for rank, _ in said} == {"0", "1"}
    assert all(float(accuracy) > 0.7 for _, accuracy in said)
