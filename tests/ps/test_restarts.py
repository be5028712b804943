"""Jobs whose processes are killed and started again by the launcher, with real processes and signals."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
JOB = Path(__file__).parent / "jobs" / "faults.py"
ROUNDS = 120


def members(launcher: int) -> dict[str, int]:
    """Process ids of the processes that a launcher has started."""
    found = {}
    for task in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((task / "stat").read_text().rpartition(")")[2].split()[1])
            env = dict(x.split("=", 1) for x in (task / "environ").read_text().split("\0") if "=" in x)
        except (OSError, ValueError):
            continue
        if parent == launcher and "DMLC_ROLE" in env:
            found[f"{env['DMLC_ROLE']} {env['DMLC_TASK_ID']}"] = int(task.name)
    return found


def run(
    folder: Path, seed: int | None, *options: str, workers: int = 2, kind: str = "dist_sync", only: str = ""
) -> tuple[list[str], list[str], int]:
    """Run the job, killing and stopping processes from `seed` on; returns what was done, its output, its status.

    Args:
        kind: the store. only: the role of the processes that are killed and stopped.
    """
    folder.mkdir()
    command = [sys.executable, "-m", "dualmx.launch", "-n", str(workers), "-s", "2", *options]
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT), "MXNET_KVSTORE_BIGARRAY_BOUND": "100"}
    launcher = subprocess.Popen(
        [*command, sys.executable, str(JOB), str(folder), str(ROUNDS), kind], env=env, cwd=ROOT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    done: list[str] = []
    rng = random.Random(seed)
    until = time.monotonic() + 90

    def least() -> int:
        try:
            return min(int((folder / f"{r}.round").read_text() or 0) for r in range(workers))
        except OSError:
            return 0

    try:
        for goal in (20, 60, 100) if seed is not None else ():
            while least() < goal and launcher.poll() is None and time.monotonic() < until:
                time.sleep(0.01)
            running = {name: pid for name, pid in members(launcher.pid).items() if name.startswith(only)}
            if not running:
                break
            name = rng.choice(sorted(running)) if done else rng.choice(["server 0", "server 1"])
            how = rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP]) if done else signal.SIGKILL
            done.append(f"{how.name} {name}")
            os.kill(running[name], how)
            if how == signal.SIGSTOP:
                time.sleep(0.5)
                os.kill(running[name], signal.SIGCONT)
        output = launcher.communicate(timeout=max(until - time.monotonic(), 1))[0]
        return done, output.splitlines(), launcher.returncode
    finally:
        launcher.kill()
        launcher.communicate()


def weights(folder: Path, rank: int) -> list[bytes]:
    with np.load(folder / f"{rank}.npz") as f:
        return [f[k].tobytes() for k in f.files]


@pytest.mark.slow
def test_killed_servers_and_workers_come_back_and_no_bit_differs(tmp_path: Path) -> None:
    assert run(tmp_path / "quiet", None)[2] == 0
    expected = weights(tmp_path / "quiet", 0)
    for seed in (4,):
        waits = ("--on-worker-death", "wait", "--on-server-death", "wait")
        done, output, code = run(tmp_path / str(seed), seed, *waits)
        assert code == 0 and len(done) == 3, (done, output[-30:])
        assert any("it is started again" in line for line in output)
        assert all(weights(tmp_path / str(seed), rank) == expected for rank in range(2)), done


@pytest.mark.slow
@pytest.mark.parametrize("tcp", ["0", "1"])
def test_killed_servers_of_large_arrays_come_back_and_no_bit_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tcp: str
) -> None:
    monkeypatch.setenv("DUALMX_TCP", tcp)  # slices are received into place, or seen where the servers have them
    assert run(tmp_path / "quiet", None, kind="dist_sync large")[2] == 0
    expected = weights(tmp_path / "quiet", 0)
    waits = ("--on-worker-death", "wait", "--on-server-death", "wait")
    done, output, code = run(tmp_path / "job", 5, *waits, kind="dist_sync large")
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
    command = [sys.executable, "-m", "dualmx.launch", "-n", "2", "-s", "2", "--on-worker-death", "continue"]
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    launcher = subprocess.Popen(
        [*command, sys.executable, str(JOB), str(folder), "100"], env=env, cwd=ROOT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while not (folder / "0.round").exists() and time.monotonic() < until:
            time.sleep(0.01)
        os.kill(members(launcher.pid)["worker 1"], signal.SIGKILL)
        output = launcher.communicate(timeout=60)[0]
    finally:
        launcher.kill()
        launcher.communicate()
    assert launcher.returncode == 0, output[-3000:]
    assert "worker 1 was killed by signal 9 (SIGKILL); the job goes on without it" in output
    assert "[worker 0] done" in output
