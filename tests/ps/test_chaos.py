"""Any process of a job may be killed at any moment, the launcher too: no accepted update is lost, no bit differs."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests import jobs
from tests.ps.test_restarts import JOB, weights

ROUNDS = 400
KILLS, SECONDS = int(os.environ.get("CHAOS_KILLS", "12")), float(os.environ.get("CHAOS_SECONDS", "240"))
NAMES = ("scheduler 0", "server 0", "server 1", "worker 0", "worker 1", "launcher")


class Chaos:
    """A job whose processes are killed; if it is the launcher, the same command is run again.

    Args:
        folder: for its files, and the journals.
        keeps: what the servers and the scheduler write outlives the launcher.
    """

    def __init__(self, folder: Path, keeps: bool = True):
        folder.mkdir()
        self.folder, self.keeps = folder, keeps
        self.said: list[str] = []
        self.runs = 0
        self.limit(1)
        self.launch()

    def launch(self) -> None:
        self.runs += 1
        journal = self.folder / ("journal" if self.keeps else f"journal{self.runs}")
        waits = ["--on-worker-death", "wait", "--on-server-death", "wait", "--restarts", "1000"]
        command = [*jobs.launcher(2, 2, *waits), jobs.PYTHON, JOB, self.folder, ROUNDS]
        env = {"MXNET_KVSTORE_BIGARRAY_BOUND": "100", "DUALMX_JOURNAL": str(journal)}
        with open(self.folder / "said", "a") as out:
            self.launcher = jobs.start(*command, env=env, stdout=out)

    def limit(self, rounds: int) -> None:
        (self.folder / "new").write_text(str(rounds))
        (self.folder / "new").replace(self.folder / "limit")

    def round(self) -> int:
        try:
            return min(int((self.folder / f"{rank}.round").read_text() or 0) for rank in range(2))
        except OSError:
            return 0

    def go_on(self, more: int, until: float) -> bool:
        """Do some more rounds; False if that takes longer."""
        goal = self.round() + more
        self.limit(goal)
        while self.round() < goal and time.monotonic() < until:
            assert self.launcher.poll() is None, self.output()
            time.sleep(0.01)
        return time.monotonic() < until

    def kill(self, name: str) -> None:
        if name == "launcher":
            children = jobs.members(self.launcher.pid).values()
            self.launcher.kill()
            self.launcher.wait()
            jobs.wait_for(lambda: not any(map(jobs.alive, children)))
            self.launch()
            return
        pid = jobs.members(self.launcher.pid).get(name)
        if pid is not None:  # it may be about to be started again
            os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        jobs.end(self.launcher)

    def output(self) -> str:
        return (self.folder / "said").read_text()[-3000:]

    def end(self) -> list[bytes]:
        """Go on to the end; returns the weights of both workers, which are the same."""
        self.limit(ROUNDS + 1)
        assert self.launcher.wait(timeout=150) == 0, self.output()
        first, second = (weights(self.folder, rank) for rank in range(2))
        assert first == second
        return first


def quiet(folder: Path) -> list[bytes]:
    job = Chaos(folder)
    try:
        return job.end()
    finally:
        job.close()


@pytest.mark.slow
def test_whatever_is_killed_no_bit_differs(tmp_path: Path) -> None:
    expected = quiet(tmp_path / "quiet")
    rng = random.Random(os.environ.get("CHAOS_SEED", "1"))
    job = Chaos(tmp_path / "chaos")
    names = [*rng.sample(NAMES, len(NAMES)), *(rng.choice(NAMES) for _ in range(KILLS - len(NAMES)))]
    killed = []
    try:
        until = time.monotonic() + SECONDS
        for name in names:
            # Sometimes the next one dies before the last one is back.
            if (not killed or rng.random() < 0.7) and not job.go_on(rng.randrange(1, 4), until):
                break
            time.sleep(rng.random() * 0.05)
            job.kill(name)
            killed.append(name)
        assert job.end() == expected, killed
        assert len(killed) >= 3 and not list((tmp_path / "chaos" / "journal").iterdir()), killed
    finally:
        job.close()


@pytest.mark.slow
def test_control_without_the_journals_of_the_launcher_before(tmp_path: Path) -> None:
    job = Chaos(tmp_path / "lost", keeps=False)
    try:
        assert job.go_on(3, time.monotonic() + 60)
        job.kill("launcher")
        for rank in range(2):
            (job.folder / f"{rank}.round").unlink()
        assert job.go_on(1, time.monotonic() + 60) and job.round() == 1  # it began anew
    finally:
        job.close()
