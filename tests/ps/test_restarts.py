"""Jobs whose processes are killed and started again by the launcher, with real processes and signals."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from tests import jobs

JOB = Path(__file__).parent / "jobs" / "faults.py"
ROUNDS = 120
WAITS = ("--on-worker-death", "wait", "--on-server-death", "wait")


def run(
    folder: Path,
    seed: int | None,
    *options: str,
    workers: int = 2,
    kind: str = "dist_sync",
    only: str = "",
    tcp: str = "0",
) -> tuple[list[str], list[str], int]:
    """Run the job, killing and stopping processes from `seed` on; returns what was done, its output, its status.

    Args:
        kind: the store. only: the role of the processes that are killed and stopped. tcp: "1" for arrays by it.
    """
    folder.mkdir()
    env = {"MXNET_KVSTORE_BIGARRAY_BOUND": "100", "DUALMX_TCP": tcp}
    command = [*jobs.launcher(workers, 2, *options), jobs.PYTHON, JOB, folder, ROUNDS, kind]
    done: list[str] = []
    rng = random.Random(seed)
    until = time.monotonic() + 150

    def least() -> int:
        try:
            return min(int((folder / f"{r}.round").read_text() or 0) for r in range(workers))
        except OSError:
            return 0

    with jobs.running(*command, env=env) as launcher:
        for goal in (20, 60, 100) if seed is not None else ():
            while least() < goal and launcher.poll() is None and time.monotonic() < until:
                time.sleep(0.01)
            running = {name: pid for name, pid in jobs.members(launcher.pid).items() if name.startswith(only)}
            if not running:
                break
            name = rng.choice(sorted(running)) if done else rng.choice(["server 0", "server 1"])
            how = rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP]) if done else signal.SIGKILL
            done.append(f"{how.name} {name}")
            os.kill(running[name], how)
            if how == signal.SIGSTOP:
                time.sleep(0.5)
                os.kill(running[name], signal.SIGCONT)
        output, _ = jobs.finish(launcher, max(until - time.monotonic(), 1))
    return done, output.splitlines(), launcher.returncode


def weights(folder: Path, rank: int) -> list[bytes]:
    with np.load(folder / f"{rank}.npz") as f:
        return [f[k].tobytes() for k in f.files]


@pytest.mark.slow
def test_killed_servers_and_workers_come_back_and_no_bit_differs(tmp_path: Path) -> None:
    assert run(tmp_path / "quiet", None, *WAITS)[2] == 0
    expected = weights(tmp_path / "quiet", 0)
    for seed in (4,):
        done, output, code = run(tmp_path / str(seed), seed, *WAITS)
        assert code == 0 and len(done) == 3, (done, output[-30:])
        assert any("it is started again" in line for line in output)
        assert all(weights(tmp_path / str(seed), rank) == expected for rank in range(2)), done


@pytest.mark.slow
@pytest.mark.parametrize("tcp", ["0", "1"])
def test_killed_servers_of_large_arrays_come_back_and_no_bit_differs(tmp_path: Path, tcp: str) -> None:
    """Slices are received into place, or seen where the servers have them."""
    assert run(tmp_path / "quiet", None, *WAITS, kind="dist_sync large", tcp=tcp)[2] == 0
    expected = weights(tmp_path / "quiet", 0)
    done, output, code = run(tmp_path / "job", 5, *WAITS, kind="dist_sync large", tcp=tcp)
    assert code == 0 and len(done) == 3, (done, output[-30:])
    assert all(weights(tmp_path / "job", rank) == expected for rank in range(2)), done


@pytest.mark.slow
def test_killed_servers_of_a_mixed_store_come_back_and_no_bit_differs(tmp_path: Path) -> None:
    assert run(tmp_path / "quiet", None, kind="dist_mixed")[2] == 0
    expected = weights(tmp_path / "quiet", 0)
    waits = ("--on-server-death", "wait")
    done, output, code = run(tmp_path / "job", 3, *waits, kind="dist_mixed", only="server")
    assert code == 0 and len(done) == 3, (done, output[-30:])
    assert all(weights(tmp_path / "job", rank) == expected for rank in range(2)), done


@pytest.mark.slow
def test_the_job_goes_on_without_a_worker(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    command = [*jobs.launcher(2, 2, "--on-worker-death", "continue"), jobs.PYTHON, JOB, folder, 100]
    with jobs.running(*command) as launcher:
        jobs.wait_for((folder / "0.round").exists)
        os.kill(jobs.members(launcher.pid)["worker 1"], signal.SIGKILL)
        output, _ = jobs.finish(launcher)
    assert launcher.returncode == 0
    assert "worker 1 was killed by signal 9 (SIGKILL); the job goes on without it" in output
    assert "[worker 0] done" in output
