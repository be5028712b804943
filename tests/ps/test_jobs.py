"""Whole jobs: real processes, sockets and signals."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dualmx.core.net import free_port
from tests import jobs

JOBS = Path(__file__).parent / "jobs"
CHECKS = (
    "described", "values", "types", "repeated_keys_and_commands", "broadcast", "errors", "training",
    "changes_reach_the_servers", "changes_of_schedules_reach_the_servers", "states", "compression", "module",
    "asynchronous",
)  # fmt: skip


def launch(*arguments: object, env: jobs.Env | None = None, counts: tuple[int, int] = (2, 2)) -> list[str]:
    """What a job of Python's processes says."""
    done = jobs.run(*jobs.launcher(*counts), jobs.PYTHON, *arguments, env=env)
    return (done.stdout + done.stderr).splitlines()


@pytest.mark.slow
def test_stores_trainers_and_modules_do_what_one_process_does(tmp_path: Path) -> None:
    """Both workers run all checks of `jobs/stores.py`, and end with the same bits."""
    lines = launch("-W", "error", JOBS / "stores.py", tmp_path, env={"MXNET_KVSTORE_BIGARRAY_BOUND": "8"})
    assert not {f"[worker {rank}] held: {name}" for rank in (0, 1) for name in CHECKS} - set(lines)
    for name in ("sgd-True", "sgd-False", "adam-True", "lamb-True", "module-None"):
        one, two = (np.load(tmp_path / f"{name}-{rank}.npz") for rank in (0, 1))
        with one, two:
            assert len(one.files) and all(one[k].tobytes() == two[k].tobytes() for k in one.files), name


class Hand:
    """A job started by hand, process by process, as the MXNet documentation tells."""

    def __init__(self, kind: str, folder: Path, workers: int = 2, port: int = 0, **env: str):
        self.folder, self.workers = folder, workers
        self.env: dict[str, str | None] = {
            "DUALMX_SECRET": None,
            "DMLC_PS_ROOT_URI": jobs.HOST,
            "DMLC_PS_ROOT_PORT": str(port or free_port(jobs.HOST)),
            "DMLC_NUM_WORKER": str(workers),
            "DMLC_NUM_SERVER": "1",
            "XDG_CONFIG_HOME": str(folder),
            **env,
        }
        self.kind = kind
        self.processes = {name: self.start(name) for name in ("scheduler", "server")}
        self.processes |= {f"worker {i}": self.start(f"worker {i}") for i in range(workers)}

    def start(self, name: str) -> jobs.Process:
        role, _, rank = name.partition(" ")
        env = {**self.env, "DMLC_ROLE": role, **({"DMLC_TASK_ID": rank} if rank else {})}
        return jobs.start(jobs.PYTHON, JOBS / "rounds.py", self.kind, self.folder, env=env)

    def round(self, rank: int) -> int:
        try:
            return int((self.folder / f"{rank}.round").read_text() or 0)
        except OSError:
            return 0

    def wait_for_rounds(self, more: int = 3, ranks: tuple[int, ...] = (0, 1)) -> None:
        goals = {r: self.round(r) + more for r in ranks}

        def reached() -> bool:
            ended = [(n, p.stdout.read()) for n, p in self.processes.items() if p.poll()]  # type: ignore[union-attr]
            assert not ended, ended
            return all(self.round(r) >= goal for r, goal in goals.items())

        jobs.wait_for(reached)

    def output(self, name: str, seconds: float = 60.0) -> str:
        return jobs.finish(self.processes[name], seconds)[0]

    def end(self) -> None:
        jobs.end(*self.processes.values())


@pytest.fixture
def hand(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Hand]:
    kind, _, silence = request.param.partition(", silent for ")
    job = Hand(kind, tmp_path, PS_HEARTBEAT_TIMEOUT=silence or "3")
    try:
        job.wait_for_rounds()
        yield job
    finally:
        job.end()


# Silence would be noticed after minutes: the ends of connections are what tells, at once.
@pytest.mark.parametrize("hand", ["dist_sync, silent for 600"], indirect=True)
def test_a_killed_worker_is_named_by_the_survivors_when_its_connections_end(hand: Hand) -> None:
    hand.processes["worker 1"].kill()
    said = hand.output("worker 0", 60)
    reason = re.search(r"failed at [\d.]+: (.*)", said)[1]  # type: ignore[index]
    assert re.search(r"round \d+.* at server 0: round \d+ of key 'w' .* worker 1 died: ", reason), reason
    assert "no sign of life" not in reason and reason.endswith("dead: 1")
    assert hand.processes["worker 0"].returncode == 3
    for name in ("server", "scheduler"):
        hand.output(name, 60)
        assert hand.processes[name].returncode == 0


@pytest.mark.parametrize("hand", ["dist_sync, silent for 600"], indirect=True)
def test_a_killed_server_is_named_by_all_workers(hand: Hand) -> None:
    hand.processes["server"].kill()
    for name in ("worker 0", "worker 1"):
        said = hand.output(name, 60)
        reason = re.search(r"failed at [\d.]+: (.*)", said)[1]  # type: ignore[index]
        assert re.search(r"round \d+, at server 0: server 0 died: ", reason), reason
        assert "no sign of life" not in reason
    assert "server 0 died" in hand.output("scheduler", 60)


@pytest.mark.slow
@pytest.mark.parametrize("gone", ["worker 1", "server"])
@pytest.mark.parametrize("hand", ["dist_mixed, silent for 600"], indirect=True)
def test_both_halves_of_a_mixed_store_name_who_was_killed(hand: Hand, gone: str) -> None:
    hand.processes[gone].kill()
    said = hand.output("worker 0", 60)
    reason = re.search(r"failed at [\d.]+: (.*)", said)[1]  # type: ignore[index]
    assert re.search("server 0 died: " if gone == "server" else "(process|worker) 1 died: ", reason), reason
    assert "no sign of life" not in reason and reason.endswith("dead: 1")
    assert hand.processes["worker 0"].returncode == 3


@pytest.mark.slow
@pytest.mark.parametrize("hand", ["dist_sync"], indirect=True)
def test_a_stopped_worker_is_dead_after_the_timeout(hand: Hand) -> None:
    hand.processes["worker 1"].send_signal(signal.SIGSTOP)
    said = hand.output("worker 0")
    reason = re.search(r"failed at [\d.]+: (.*)", said)[1]  # type: ignore[index]
    silent = re.search(r"worker 1 died: no sign of life for ([\d.]+) s", reason)
    assert silent and float(silent[1]) >= 3.0, reason


@pytest.mark.slow
@pytest.mark.parametrize("hand", ["dist_sync"], indirect=True)
def test_training_goes_on_without_the_scheduler_and_ends_well(hand: Hand) -> None:
    hand.processes["scheduler"].kill()
    hand.processes.pop("scheduler").communicate()
    hand.wait_for_rounds(10)
    (hand.folder / "stop").touch()
    for name in ("worker 0", "worker 1", "server"):
        hand.output(name)
    assert hand.processes["worker 0"].returncode in (0, 3)  # 3: the other one has stopped a round earlier
    assert hand.processes["server"].returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("hand", ["dist_async"], indirect=True)
def test_asynchronous_workers_do_not_need_each_other(hand: Hand) -> None:
    hand.processes["worker 1"].send_signal(signal.SIGSTOP)
    hand.wait_for_rounds(50, (0,))
    hand.processes["worker 1"].kill()
    hand.processes.pop("worker 1").communicate()
    hand.wait_for_rounds(50, (0,))
    (hand.folder / "stop").touch()
    hand.output("worker 0")
    assert hand.processes["worker 0"].returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("hand", ["dist_ssp:4"], indirect=True)
def test_workers_stop_when_they_are_too_far_ahead_of_a_stopped_one(hand: Hand) -> None:
    for _ in range(2):
        hand.processes["worker 1"].send_signal(signal.SIGSTOP)
        jobs.wait_for(lambda: hand.round(0) - hand.round(1) >= 4)
        time.sleep(1.0)
        assert 4 <= hand.round(0) - hand.round(1) <= 5  # its last push may have been on its way
        hand.processes["worker 1"].send_signal(signal.SIGCONT)
        hand.wait_for_rounds(20)
    (hand.folder / "stop").touch()
    for name in ("worker 0", "worker 1"):  # one that has left holds nobody
        hand.output(name)
        assert hand.processes[name].returncode == 0


def test_a_store_needs_a_job() -> None:
    code = "import dualmx as mx; mx.kv.create('dist_sync')"
    done = jobs.run(jobs.PYTHON, "-c", code, status=1)
    assert "in no distributed job" in done.stderr and "dualmx-launch -n 2" in done.stderr


@pytest.mark.slow
def test_a_role_that_does_not_exist_is_an_error() -> None:
    done = jobs.run(jobs.PYTHON, "-c", "import dualmx", env={"DMLC_ROLE": "boss"}, status=1)
    assert "DMLC_ROLE='boss': expected one of worker, server, scheduler" in done.stderr


def test_a_server_says_what_it_lacks_and_runs_nothing_of_the_script() -> None:
    code = "import dualmx; print('never')"
    done = jobs.run(jobs.PYTHON, "-c", code, env={"DMLC_ROLE": "server"}, status=1)
    assert "never" not in done.stdout
    assert "dualmx server: a distributed job needs the environment variables DMLC_PS_ROOT_URI" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dist_sync", "dist_async"])
def test_the_digits_are_learnt_by_two_workers(kind: str) -> None:
    epochs, rate = ("2", "0.1") if kind == "dist_sync" else ("4", "0.02")  # accuracies after 2 are from 0.78 to 0.87
    example = ["examples/train_mnist.py", "--kv-store", kind, "--network", "mlp"]
    lines = launch(*example, "--epochs", epochs, "--lr", rate)
    final = [line for line in lines if "Final accuracy" in line]
    assert len(final) == 1 and final[0].startswith("[worker 0]")
    assert float(re.search(r"accuracy: ([\d.]+)", final[0])[1]) > 0.8  # type: ignore[index]


def spread(*arguments: str, counts: tuple[int, int] | None = None, fixed: str = "1") -> set[str]:
    """The hashes that the workers of a job of twelve devices print, or those of one process."""
    command = [JOBS / "spread.py", *arguments]
    devices = "--xla_force_host_platform_device_count=12"
    env = {"MXNET_ENFORCE_DETERMINISM": fixed, "MXNET_KVSTORE_BIGARRAY_BOUND": "50", "XLA_FLAGS": devices}
    if counts is not None:
        lines = launch(*command, env=env, counts=counts)
    else:
        lines = jobs.run(jobs.PYTHON, *command, env=env).stdout.splitlines()
    return {line[line.index("weights") :] for line in lines if "weights" in line}


@pytest.mark.slow
def test_weights_do_not_depend_on_how_devices_are_spread() -> None:
    """One process and jobs of 1 to 4 workers and 1 to 3 servers: the same bits after each step."""
    expected = spread("device", "sgd")
    assert len(expected) == 4
    for counts in ((1, 2), (2, 3), (3, 1), (4, 3)):
        assert spread("dist_sync", "sgd", counts=counts) == expected, counts
    for optimizer in ("adam", "nadam", "lars"):  # of other arrays, of names
        assert spread("dist_sync", optimizer, counts=(4, 2)) == spread("device", optimizer)
    assert spread("dist_sync", "sgd", counts=(3, 2), fixed="0") != expected  # the control


@pytest.mark.slow
def test_a_snapshot_goes_on_with_another_number_of_servers(tmp_path: Path) -> None:
    """Weights, a table, states, random numbers and the position: the bits of the job that was not interrupted."""

    def weights(what: str, servers: int, file: Path) -> set[str]:
        command = ["-W", "error", JOBS / "snapshots.py", file, what]
        lines = launch(*command, env={"MXNET_KVSTORE_BIGARRAY_BOUND": "50"}, counts=(2, servers))
        return {line[line.index("weights") :] for line in lines if "weights" in line}

    file = tmp_path / "snapshot"
    expected = weights("begin", 2, file)
    assert len(expected) == 1
    assert weights("go on", 3, file) == expected
    with np.load(file) as parts:
        held = {name: parts[name] for name in parts.files if name != "states"}
    control = tmp_path / "control"
    with open(control, "wb") as f:
        np.savez(f, **held)  # without the optimizer's states
    assert weights("go on", 3, control) != expected


@pytest.mark.slow
@pytest.mark.parametrize("call", ["init_key", "init_shape", "set_optimizer", "whole_arrays"])
def test_workers_that_do_not_do_the_same_are_told_so(call: str) -> None:
    script = f"""
import dualmx as mx
kv = mx.kv.create("dist_sync")
call, other = {call!r}, kv.rank == 1
try:
    key = "b" if other and call == "init_key" else "a"
    kv.init(key, mx.nd.ones((3, 3 if other and call == "init_shape" else 2)))
    another = mx.optimizer.LAMB() if call == "whole_arrays" else mx.optimizer.Adam()
    kv.set_optimizer(another if other else mx.optimizer.SGD())
except mx.MXNetError as e:
    print("told:", e)
"""
    lines = launch("-c", script)
    told = [line for line in lines if "told:" in line]
    assert len(told) == 2, lines
    text = "the workers wait for each other at different places: worker 0 at the barrier after "
    assert all(text in line and "; worker 1 at the barrier after " in line for line in told), told


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_process_cannot_use_its_parents_place_and_does_no_harm_to_it() -> None:
    script = """
import os, sys
import dualmx as mx
kv = mx.kv.create("dist_sync")
kv.init("w", mx.nd.zeros((2,)))
out = mx.nd.zeros((2,))
kv.push("w", mx.nd.ones((2,)))
kv.pull("w", out=out)
child = os.fork()
if child == 0:
    for call in (kv.barrier, lambda: (kv.push("w", out), kv.pull("w", out=out)), lambda: mx.kv.create("dist_sync")):
        try:
            call()
        except mx.MXNetError as e:
            print("told:", e)
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
kv.push("w", mx.nd.ones((2,)) * 2)
kv.pull("w", out=out)
print("sum", out.asnumpy().tolist())
"""
    lines = launch("-W", "ignore", "-c", script, counts=(2, 1))
    told = [line for line in lines if "told:" in line]
    assert len(told) == 6 and all("a forked process cannot use its parent's place" in line for line in told), lines
    assert {f"[worker {rank}] sum [4.0, 4.0]" for rank in (0, 1)} < set(lines)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what other processes have computed")
@pytest.mark.slow
@pytest.mark.parametrize("busy", [True, False])
def test_a_worker_in_a_long_call_that_computes_is_not_dead(busy: bool) -> None:
    """The call holds Python's lock for more than twice the timeout. One that only sleeps looks like a stopped one.

    Other threads of it wait for the lock meanwhile, which makes each use the processor a little.
    """
    script = f"""
import ctypes, threading, time
import dualmx as mx
kv = mx.kv.create("dist_sync")
kv.init("w", mx.nd.zeros((2,)))
out = mx.nd.zeros((2,))
if kv.rank == 1 and {busy}:
    began = time.perf_counter()
    sum(range(10**6))
    sum(range(int(5e6 / (time.perf_counter() - began))))
elif kv.rank == 1:
    def wait():
        while True:
            time.sleep(0.001)
    for _ in range(8):
        threading.Thread(target=wait, daemon=True).start()
    ctypes.PyDLL(None).sleep(5)
try:
    kv.push("w", mx.nd.ones((2,)))
    kv.pull("w", out=out)
    print("sum", out.asnumpy().tolist())
except mx.MXNetError as e:
    print("told:", e)
"""
    lines = launch("-c", script, env={"PS_HEARTBEAT_TIMEOUT": "2"}, counts=(2, 1))
    sums = [line for line in lines if "sum [2.0, 2.0]" in line]
    told = [line for line in lines if "told:" in line and "worker 1 died: no sign of life for 2." in line]
    assert (len(sums), len(told)) == ((2, 0) if busy else (0, 1)), lines


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_processes_of_multiprocessing_take_leave(tmp_path: Path) -> None:
    """What such a process pushes last arrives, and its end is no death."""
    script = tmp_path / "job.py"
    script.write_text("""
import multiprocessing, os
def run(role):
    os.environ["DMLC_ROLE"] = role
    import dualmx as mx
    kv = mx.kv.create("dist_sync")
    kv.init("w", mx.nd.zeros((2,)))
    kv.push("w", mx.nd.ones((2,)))
context = multiprocessing.get_context("fork")
processes = [context.Process(target=run, args=(role,)) for role in ("scheduler", "server", "worker", "worker")]
for p in processes:
    p.start()
for p in processes:
    p.join(60)
print([p.exitcode for p in processes])
""")
    env = {"DMLC_PS_ROOT_URI": jobs.HOST, "DMLC_PS_ROOT_PORT": str(free_port(jobs.HOST))}
    env |= {"DMLC_NUM_WORKER": "2", "DMLC_NUM_SERVER": "1", "XDG_CONFIG_HOME": str(tmp_path)}
    done = jobs.run(jobs.PYTHON, script, env=env)
    assert done.stdout == "[0, 0, 0, 0]\n" and "died" not in done.stderr
