"""The ssh launcher between pretended hosts: sshd, networks, processes that are killed, cables that are cut."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests import jobs
from tests.jobs import ROOT, wait_for
from tests.launch.cluster import Cluster, run, why_not

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(why_not()), reason=why_not() or "works")]
PYTHON = [sys.executable, "-S"]
SAYS = (
    "import os, socket\n"
    "e = os.environ\n"
    "print(socket.gethostname(), e['DMLC_ROLE'], e['DMLC_TASK_ID'], e.get('A'), e.get('B'), e['DMLC_PS_ROOT_URI'],"
    " e.get('DUALMX_ENCRYPT'), os.getcwd(), *sorted(os.listdir('.')))\n"
)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    try:
        yield cluster
    finally:
        cluster.close()


@pytest.mark.parametrize("program", ["rsync", "tar"])
def test_ranks_variables_and_files_reach_their_hosts(cluster: Cluster, tmp_path: Path, program: str) -> None:
    """All forms of host files; each host gets a copy of the folder, by rsync, or by tar where there is no rsync."""
    cluster.boot("two", 2222)
    cluster.hosts("one slots=2  # two of the workers", "", "root@10.77.1.3:2222")
    (cluster.home / ".git").mkdir()
    (cluster.home / "part").mkdir()
    (cluster.home / "part" / "run.sh").write_text('#!/bin/sh\nexec "$@"\n')
    (cluster.home / "part" / "run.sh").chmod(0o755)
    (cluster.home / "script.py").write_text(SAYS)
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name in ("ssh", "tar", "gzip", "sh", *(["rsync"] if program == "rsync" else [])):
        (bin_ / name).symlink_to(shutil.which(name) or pytest.skip(f"no {name} here"))
    target = f"{cluster.home}/far/away"
    done = cluster.launch(
        "-n", "3", "-s", "2", "--env", "A:x 'y", "--env-server", "B:of servers", "--env-worker", "B=1",
        "--sync-dst-dir", target, "./part/run.sh", *PYTHON, "script.py", PATH=str(bin_), DUALMX_ENCRYPT="1",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    others = [line for line in done.stdout.splitlines() if not line.startswith("[scheduler] ")]
    there = f"10.77.1.1 1 {target} part script.py"
    assert sorted(others) == [
        f"[server 0] one server 0 x 'y of servers {there}",
        f"[server 1] two server 1 x 'y of servers {there}",
        f"[worker 0] one worker 0 x 'y 1 {there}",
        f"[worker 1] one worker 1 x 'y 1 {there}",
        f"[worker 2] two worker 2 x 'y 1 {there}",
    ]
    assert f"scheduler 0 x 'y None 10.77.1.1 1 {cluster.home} .git part script.py" in done.stdout
    assert not (cluster.home / "far").exists() and (cluster.own_home("one") / "far" / "away" / "script.py").exists()
    for name in ("one", "two"):
        wait_for(lambda name=name: not cluster.processes(name), 5, lambda name=name: cluster.processes(name))


def test_the_first_failure_decides_and_its_host_is_named(cluster: Cluster) -> None:
    cluster.hosts("10.77.1.2", "10.77.1.3")
    code = (
        "import os, sys, time\n"
        "if os.environ['DMLC_ROLE'] + os.environ['DMLC_TASK_ID'] == 'worker1': print('last words'); sys.exit(7)\n"
        "time.sleep(600)\n"
    )
    done = cluster.launch("-n", "2", "-s", "1", *PYTHON, "-c", code)
    assert done.returncode == 7
    assert re.search(r"the job failed: worker 1 \(process \d+ on two\) exited with status 7 after", done.stderr)
    assert "last lines of worker 1:\n    last words" in done.stderr
    assert re.search("the others: .*server 0 was stopped, worker 0 was stopped", done.stderr)
    for name in ("one", "two"):
        wait_for(lambda name=name: not cluster.processes(name), 5, lambda name=name: cluster.processes(name))


def test_all_that_is_wrong_is_listed_before_anything_starts(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, ("head", "good", "keyless", "changed", "other", "bare"))
    try:
        shutil.copy(tmp_path / "stranger.pub", tmp_path / "nobody")
        for name, port, keys in (("keyless", 23, "nobody"), ("other", 23, "authorized")):
            cluster.boot(name, port, keys)
        known = (tmp_path / "known").read_text().splitlines()
        keys = {line.split()[-1]: line.split()[1:] for line in known}
        text = [f"10.77.1.4 {' '.join(keys['good'])}" if line.endswith(" changed") else line for line in known]
        text += [f"[10.77.1.{i}]:23 {' '.join(keys[name])}" for i, name in ((3, "keyless"), (5, "other"))]
        (tmp_path / "known").write_text("\n".join(text) + "\n")
        (cluster.home / "work").mkdir()
        for name in ("good", "changed", "bare"):
            (cluster.own_home(name) / "work").mkdir()
        (cluster.own_home("good") / "work" / "tool").symlink_to("/bin/true")
        cluster.hosts(
            "good", "10.77.1.3:23", "10.77.1.4", "10.77.1.5:23", "bare", "10.77.1.2:24", "10.77.1.99", "nowhere"
        )
        launch = cluster.command("-n", "1", "./tool")
        launch[launch.index("exec") + 2 :] = [
            "sh", "-c", f'cd {cluster.home}/work && exec "$0" "$@"', *launch[launch.index("exec") + 2 :],
        ]  # fmt: skip
        done = jobs.run(*launch, status=2, seconds=60)
        assert not done.stdout
        report = done.stderr.splitlines()
        said = {line.split(": ")[0].strip(): (line, report[i + 1]) for i, line in enumerate(report[:-1])}
        for host, reason, remedy in (
            ("10.77.1.3:23", "Permission denied (publickey", "ssh-copy-id"),
            ("10.77.1.4", "Host key verification failed", "log in once by hand"),
            ("10.77.1.5:23", f"the folder '{cluster.home}/work' cannot be used: No such file", "--sync-dst-dir"),
            ("bare", "there is no program './tool'", "whole path"),
            ("10.77.1.2:24", "Connection refused", "NAME:PORT"),
            ("10.77.1.99", "No route to host", "is it on"),
            ("nowhere", "Could not resolve hostname nowhere", "wrong name"),
        ):
            assert reason in said[host][0] and remedy in said[host][1], (host, done.stderr)
        assert "good" not in said, done.stderr
    finally:
        cluster.close()


def test_a_scheduler_that_hosts_cannot_reach_is_noticed_at_once(cluster: Cluster) -> None:
    cluster.hosts("one", "two")
    run(*cluster.on("head", ["ip", "addr", "add", "10.99.0.1/24", "dev", "lo"]))
    done = cluster.launch("-n", "1", "--host-ip", "10.99.0.1", *PYTHON, "-c", "print('started')")
    assert done.returncode == 2 and "started" not in done.stdout
    assert re.search(r"  one: cannot connect to 10.99.0.1:\d+: Network is unreachable", done.stderr), done.stderr
    assert "--network-interface" in done.stderr


@pytest.mark.parametrize(("store", "servers"), [("dist_sync", "1"), ("collective", "0")])
def test_the_data_take_the_chosen_network(tmp_path: Path, store: str, servers: str) -> None:
    """Logins through one network, gradients through another; the control sends them through the first."""
    cluster = Cluster(tmp_path, networks=2)
    try:
        cluster.hosts("10.77.1.2", "10.77.1.3")
        sent = {}
        for chosen in ([], ["--network-interface", "absent,net2"]):
            before = [cluster.counted("two", k) for k in (1, 2)]
            done = cluster.launch(
                "-n", "2", "-s", servers, *chosen, "--env", f"PYTHONPATH:{ROOT}", "--env", "JAX_PLATFORMS:cpu",
                sys.executable, "-m", "dualmx.cli", "bandwidth", "--kv-store", store, "--sizes", "4MB", "--rounds", "3",
                "--json",
            )  # fmt: skip
            assert done.returncode == 0 and '"error": 0.0' in done.stdout, done.stdout + done.stderr
            sent[bool(chosen)] = [cluster.counted("two", k) - b for k, b in zip((1, 2), before, strict=True)]
        assert sent[False][0] > 16e6 and sent[False][1] < 1e5, sent
        assert sent[True][1] > 16e6 and sent[True][0] < 1e6, sent
    finally:
        cluster.close()


SLEEPERS = (
    "import os, pathlib, subprocess, sys, time\n"
    "subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)'])\n"
    "time.sleep(600)\n"
)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=lambda n: n.name)
def test_no_process_is_left_on_any_host(cluster: Cluster, number: signal.Signals) -> None:
    cluster.hosts("one", "two")
    launcher = cluster.start("-n", "2", "-s", "2", *PYTHON, "-c", SLEEPERS)
    try:
        for name in ("one", "two"):
            wait_for(partial(sleeping, cluster, name, 4), 30, cluster.log)
        os.kill(launcher_in(cluster), number)
        for name in ("head", "one", "two"):
            wait_for(lambda name=name: not cluster.processes(name), 5, lambda name=name: cluster.processes(name))
        assert launcher.wait(5) == (-9 if number == signal.SIGKILL else 130)
    finally:
        jobs.end(launcher)


def sleeping(cluster: Cluster, name: str, count: int) -> bool:
    """Whether so many processes of the job sleep on a host."""
    return sum("-c import" in line and "guard" not in line for line in cluster.processes(name).values()) >= count


def launcher_in(cluster: Cluster) -> int:
    """Process id of the launcher."""
    return min(pid for pid, line in cluster.processes("head").items() if "-m dualmx.launch" in line)


def test_a_host_that_is_cut_off_ends_the_job_and_its_own_processes(cluster: Cluster) -> None:
    cluster.hosts("one", "two")
    for name in ("one", "two"):  # seconds instead of a quarter of an hour until the system gives a connection up
        run(*cluster.on(name, ["sh", "-c", "echo 3 > /proc/sys/net/ipv4/tcp_retries2"]))
    launcher = cluster.start("-n", "2", "-s", "1", *PYTHON, "-c", SLEEPERS)
    try:
        wait_for(partial(sleeping, cluster, "two", 2), 30, cluster.log)
        cluster.unplug("two")
        assert launcher.wait(70) == 255
        assert re.search(r"worker 1 \(process \d+ on two\) exited with status 255", cluster.log()), cluster.log()
        assert "not responding" in cluster.log()
        for name in ("one", "two"):
            wait_for(lambda name=name: not cluster.processes(name), 30, lambda name=name: cluster.processes(name))
    finally:
        jobs.end(launcher)


def test_many_processes_on_one_host(cluster: Cluster) -> None:
    """More than an ssh daemon lets log in at a time."""
    cluster.hosts("one")
    done = cluster.launch("-n", "22", "-s", "2", *PYTHON, "-c", SAYS)
    assert done.returncode == 0, done.stderr
    assert sum("] one worker" in line for line in done.stdout.splitlines()) == 22


def test_killed_processes_are_started_again_on_their_hosts(cluster: Cluster) -> None:
    """A worker and a server die on other hosts; others take their places, and no bit differs from a quiet run."""
    cluster.hosts("one", "two")
    job = ROOT / "tests" / "ps" / "jobs" / "faults.py"
    env = ["--env", f"PYTHONPATH:{ROOT}", "--env", "JAX_PLATFORMS:cpu", "--env", "MXNET_KVSTORE_BIGARRAY_BOUND:100"]
    waits = ["--on-worker-death", "wait", "--on-server-death", "wait"]
    weights = {}
    (cluster.folder / "t").mkdir()
    for folder, victims in ((cluster.folder / "quiet", ()), (cluster.folder / "killed", ("server 1", "worker 0"))):
        folder.mkdir()
        command = [*waits, *env, sys.executable, str(job), str(folder), "60"]
        launcher = cluster.start("-n", "2", "-s", "2", *command, TMPDIR=str(cluster.folder / "t"))
        try:
            for turn, victim in enumerate(victims):
                wait_for(partial(reached, folder, 15 * (turn + 1)), 60, cluster.log)
                os.kill(member(cluster, victim), signal.SIGKILL)
            assert launcher.wait(90) == 0, cluster.log()
        finally:
            launcher.kill()
            launcher.wait()
        for victim in victims:
            assert re.search(rf"{victim} \(process \d+ on \w+\) was killed by signal 9.*started again", cluster.log())
        with np.load(folder / "0.npz") as f:
            weights[folder.name] = [f[k].tobytes() for k in f.files]
    assert weights["quiet"] == weights["killed"]
    assert not list((cluster.folder / "t").iterdir()), "journals are removed from the hosts"


def rounds(folder: Path) -> int:
    """How many rounds both workers have made."""
    try:
        return min(int((folder / f"{rank}.round").read_text() or 0) for rank in range(2))
    except OSError:
        return 0


def reached(folder: Path, goal: int) -> bool:
    """Whether both workers have made so many rounds."""
    return rounds(folder) >= goal


def member(cluster: Cluster, name: str) -> int:
    """Process id of a member of the job."""
    role, _, rank = name.partition(" ")
    for host in cluster.names:
        for pid, line in cluster.processes(host).items():
            env = Path(f"/proc/{pid}/environ").read_text().split("\0")
            if f"DMLC_ROLE={role}" in env and f"DMLC_TASK_ID={rank}" in env and "faults.py" in line:
                return pid
    raise AssertionError(f"no {name}")


def test_diagnosis_of_hosts(cluster: Cluster) -> None:
    """Who reaches whom, whose clock is wrong, what differs; a blocked way is named by both of its ends."""
    cluster.hosts("one", "two", "10.77.1.3:24")
    for name, other in (("one", "10.77.1.3"), ("two", "10.77.1.2")):
        run(*cluster.on(name, ["ip", "route", "add", "unreachable", f"{other}/32"]))
    diagnose = [sys.executable, "-m", "dualmx.cli", "diagnose", "--hosts", str(cluster.folder / "hosts")]
    diagnose += ["--with", f"ssh -F {cluster.folder}/ssh_config"]

    def asked(*options: str, status: int) -> jobs.Done:
        command = cluster.on("head", [*diagnose, *options])
        return jobs.run(*command, env={"PS_VERBOSE": "1"}, cwd=cluster.home, status=status, seconds=60)

    done = asked("--json", status=1)
    found = json.loads(done.stdout)
    assert list(found["hosts"]) == ["here", "one", "two"] and found["hosts"]["two"]["host"] == "two"
    assert all(abs(found["hosts"][name]["skew"][0]) < 0.5 for name in ("one", "two"))
    ways = {(a, b): isinstance(ms, float) for a, row in found["matrix"].items() for b, ms in row.items()}
    blocked = {("one", "two"), ("two", "one")}
    assert len(ways) == 6 and {way for way, works in ways.items() if not works} == blocked, found["matrix"]
    assert "cannot connect to two (" in found["problems"]["one"] and "two" in found["problems"]
    assert "Connection refused" in found["problems"]["10.77.1.3:24"]
    text = asked(status=1).stdout
    assert re.search(r"^one +[\d.]+ +- +blocked$", text, re.M), text
    assert "variables here:\n  PS_VERBOSE=1\n" in text and "problems:\n  10.77.1.3:24: " in text

    for name, other in (("one", "10.77.1.3"), ("two", "10.77.1.2")):
        run(*cluster.on(name, ["ip", "route", "del", "unreachable", f"{other}/32"]))
    cluster.hosts("one", "two")
    assert "no problems found" in asked("--network-interface", "net1", status=0).stdout


def test_a_cut_cable_is_an_error_on_both_sides_within_seconds(tmp_path: Path) -> None:
    """Logins stay, the network of the data is cut: for a second, which changes nothing, and then for good."""
    cluster = Cluster(tmp_path, networks=2)
    cluster.hosts("one", "two")
    job = ROOT / "tests" / "ps" / "jobs" / "rounds.py"
    env = ["--network-interface", "net2", "--env", f"PYTHONPATH:{ROOT}", "--env", "JAX_PLATFORMS:cpu"]
    launcher = cluster.start("-n", "2", "-s", "1", *env, sys.executable, str(job), "dist_sync", str(tmp_path))
    try:
        wait_for(partial(reached, tmp_path, 20), 60, cluster.log)
        cluster.unplug("two", 2)
        time.sleep(1.0)
        cluster.unplug("two", 2, back=True)
        wait_for(partial(reached, tmp_path, rounds(tmp_path) + 20), 20, cluster.log)
        cluster.unplug("two", 2)
        assert launcher.wait(40) == 3, cluster.log()
        assert re.search(r"\[worker 0\] failed at .*worker 1 died: no sign of life for", cluster.log()), cluster.log()
        assert re.search(r"\[worker 1\] failed at .*server 0 died: no sign of life for", cluster.log()), cluster.log()
    finally:
        jobs.end(launcher)
        cluster.close()
