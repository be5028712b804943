"""Launchers of several hosts, each with the real program where this machine can run it, and with a stand-in that
passes on nothing but what the real one passes on."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dualmx.core.errors import ArgumentError
from dualmx.launch.hostfile import Host
from dualmx.launch.plan import JobPlan
from dualmx.launch.supervisor import LAUNCHERS
from tests import jobs
from tests.launch.test_local import SLEEPERS

SECRET = "a-secret-that-nobody-may-see"

FAKES = {
    "ssh": """
        def main(argv):
            at = 0
            while argv[at].startswith("-"):
                at += 2 if argv[at] in ("-o", "-p", "-i") else 1
            host, command = argv[at], " ".join(argv[at + 1 :])
            if host == "unreachable":
                print("ssh: connect to host unreachable port 22: No route to host", file=sys.stderr)
                sys.exit(255)
            env = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LOG")}
            os.chdir("/")
            os.execvpe("sh", ["sh", "-c", command], {**env, "SSH_HOST": host})
    """,
    "mpirun": """
        def main(argv):
            if argv == ["--version"]:
                print("mpirun (Open MPI) 4.1.4")
                return
            count, at, passed, hosts = 0, 0, [], ""
            while argv[at].startswith("-"):
                if argv[at] == "-np": count = int(argv[at + 1])
                if argv[at] == "-x": passed.append(argv[at + 1])
                if argv[at] == "--host": hosts = argv[at + 1]
                at += 1 if argv[at] in ("--oversubscribe",) else 2
            where = [h for one in hosts.split(",") if one for h in [one.split(":")[0]] * int(one.split(":")[1])]
            start(count, argv[at:], passed, "OMPI_COMM_WORLD_RANK", where)
    """,
    "srun": """
        def main(argv):
            count, at = 0, 0
            while argv[at].startswith("-"):
                if argv[at] == "--ntasks": count = int(argv[at + 1])
                at += 1 if "=" in argv[at] or argv[at] in ("--overcommit",) else 2
            hosts = os.environ.get("SLURM_HOSTFILE")
            where = open(hosts).read().split() if hosts else []
            start(count, argv[at:], list(os.environ), "SLURM_PROCID", where)
    """,
}
FAKE_HEAD = """#!{python} -S
import os, signal, subprocess, sys
with open(os.environ["LOG"], "a") as log:
    log.write(repr(sys.argv) + chr(10))
def start(count, command, passed, rank, hosts):
    env = {{k: v for k, v in os.environ.items() if k in ("PATH", "HOME") or k in passed}}
    children = [
        subprocess.Popen(command, env={{**env, rank: str(i), "SSH_HOST": (hosts or [""] * count)[i]}}, stdin=subprocess.DEVNULL)
        for i in range(count)
    ]
    def end(number, frame):
        for c in children:
            c.terminate()
    signal.signal(signal.SIGTERM, end)
    sys.exit(max(c.wait() for c in children))
"""  # noqa: E501


class Remote:
    """How to call the launcher with one of the programs."""

    def __init__(self, name: str, folder: Path, options: list[str], env: dict[str, str]):
        self.name, self.folder, self.options, self.env = name, folder, options, env

    def command(self, *arguments: str) -> list[str]:
        return [*jobs.LAUNCH, "--launcher", self.name, *self.options, *arguments]

    def log(self) -> str:
        log = self.folder / "log"
        return log.read_text() if log.exists() else ""


def fake(name: str, folder: Path) -> Remote:
    program = {"ssh": "ssh", "mpi": "mpirun", "slurm": "srun"}[name]
    path = folder / "bin" / program
    path.parent.mkdir()
    text = FAKE_HEAD.format(python=sys.executable) + textwrap.dedent(FAKES[program]) + "\nmain(sys.argv[1:])\n"
    path.write_text(text)
    path.chmod(0o700)
    (folder / "hosts").write_text("one slots=2\ntwo\n")
    env = {"PATH": f"{path.parent}:{os.environ['PATH']}", "LOG": str(folder / "log")}
    return Remote(name, folder, ["-H", str(folder / "hosts"), "--host-ip", "127.0.0.1"], env)


def real_ssh(folder: Path) -> Iterator[Remote]:
    sshd = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if sshd is None or shutil.which("ssh") is None:
        pytest.skip("no sshd here")
    for key in ("host", "own"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)], check=True)
    port = 20000 + os.getpid() % 20000
    config = folder / "config"
    config.write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/own.pub\n"
        f"PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"
    )
    Path("/run/sshd").mkdir(exist_ok=True) if os.getuid() == 0 else None
    with jobs.running(sshd, "-D", "-f", config, "-E", folder / "sshd.log") as daemon:
        (folder / "hosts").write_text(f"127.0.0.1:{port}\n")
        ssh = f"ssh -i {folder}/own -o UserKnownHostsFile={folder}/known -o StrictHostKeyChecking=no -o LogLevel=ERROR"
        until = time.monotonic() + 10
        while subprocess.run([*ssh.split(), "-p", str(port), "127.0.0.1", "true"], capture_output=True).returncode:
            if time.monotonic() > until or daemon.poll() is not None:
                pytest.skip(f"sshd does not work here: {(folder / 'sshd.log').read_text()[-300:]}")
            time.sleep(0.1)
        yield Remote("ssh", folder, ["-H", str(folder / "hosts"), "--with", ssh], {})


def real_mpi(folder: Path) -> Iterator[Remote]:
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if shutil.which("mpirun") is None:
        pytest.skip("no mpirun here")
    if jobs.run("mpirun", "-np", 1, "true", env=allowed, status=None).returncode:
        pytest.skip("mpirun does not work here")
    yield Remote("mpi", folder, ["--host-ip", "127.0.0.1"], allowed)


def real_slurm(folder: Path) -> Iterator[Remote]:
    if shutil.which("srun") is None:
        pytest.skip("no srun here")
    idle = jobs.run("sinfo", "-h", "-t", "idle", "-o", "%D", status=None)
    if not idle.stdout.strip():
        pytest.skip("no Slurm node is idle")
    yield Remote("slurm", folder, ["--host-ip", "127.0.0.1"], {})


def real_ray(folder: Path) -> Iterator[Remote]:
    if importlib.util.find_spec("ray") is None or "RAY_ADDRESS" not in os.environ:
        pytest.skip("no Ray cluster here (RAY_ADDRESS)")
    yield Remote("ray", folder, ["--host-ip", "127.0.0.1"], {})


KINDS = ["ssh-fake", "mpi-fake", "slurm-fake", "ssh-real", "mpi-real", "slurm-real", "ray-real"]


@pytest.fixture(params=KINDS)
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Remote]:
    name, _, kind = request.param.partition("-")
    if kind == "fake":
        yield fake(name, tmp_path)
    else:
        yield from {"ssh": real_ssh, "mpi": real_mpi, "slurm": real_slurm, "ray": real_ray}[name](tmp_path)


SAYS = (
    "import os, sys\n"
    "e = os.environ\n"
    "print(e['DMLC_ROLE'], e['DMLC_TASK_ID'], e['DMLC_NUM_WORKER'], e['DMLC_NUM_SERVER'], e['DMLC_JOB_CLUSTER'],"
    " e['DUALMX_SECRET'], e.get('A'), e.get('B'), e.get('PS_VERBOSE'), e.get('AWS_SECRET_ACCESS_KEY'),"
    " 'DUALMX_LAUNCH' in e, e.get('SSH_HOST', ''))\n"
    "sys.stdout.flush()\n"
    "if e['DMLC_ROLE'] + e['DMLC_TASK_ID'] == 'worker1': print('last words', file=sys.stderr); sys.exit(7)\n"
)


@pytest.mark.slow
def test_every_process_is_told_what_it_is_and_a_failure_is_reported(remote: Remote) -> None:
    options = ["-n", "2", "-s", "1", "--env", "A:x y'z", "--env-worker", "B:1"]
    env = {**remote.env, "DUALMX_SECRET": SECRET, "PS_VERBOSE": "1", "AWS_SECRET_ACCESS_KEY": "aws"}
    done = jobs.run(*remote.command(*options, jobs.PYTHON, "-S", "-c", SAYS), env=env, status=7, seconds=90)
    lines = sorted(line for line in done.stdout.splitlines() if " 2 1 " in line and "scheduler" not in line)
    kept = "aws" if remote.name != "ssh" and not remote.log() else None
    for line in lines:
        assert f"2 1 {remote.name} {SECRET} x y'z" in line and " 1 " in line and " False" in line
        assert kept or remote.name == "slurm" or "None False" in line, "variables of others stay here"
    assert [line.split("]")[0] for line in lines] == ["[server 0", "[worker 0", "[worker 1"]
    if remote.log():
        assert [line.split()[-1] for line in lines] == ["one", "one", "one"]
    report = done.stderr[done.stderr.index("-----") :]
    assert "the job failed: worker 1 (process " in report and "exited with status 7 after" in report
    assert "    last words\n" in report and SECRET not in report.replace(f"{remote.name} {SECRET}", "")
    assert SECRET not in remote.log() and "x y" not in remote.log()


@pytest.mark.slow
@pytest.mark.parametrize("remote", [k for k in KINDS if k not in ("mpi-fake", "slurm-fake")], indirect=True)
def test_no_process_outlives_a_killed_launcher(remote: Remote, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    pids.mkdir()
    command = remote.command("-n", "1", "-s", "1", "--env", f"FOLDER:{pids}", sys.executable, "-S", "-c", SLEEPERS)
    with jobs.running(*command, env=remote.env) as process:

        def all_run() -> bool:
            assert process.poll() is None
            return len(list(pids.iterdir())) >= 6

        jobs.wait_for(all_run)
        found = [int(p.name) for p in pids.iterdir()]
        process.send_signal(signal.SIGKILL)
        jobs.wait_for(lambda: not any(map(jobs.alive, found)))


@pytest.mark.parametrize("remote", ["ray-real"], indirect=True)
def test_a_dead_task_is_started_again_alone(remote: Remote, tmp_path: Path) -> None:
    code = (
        "import os, pathlib, signal\n"
        "me = pathlib.Path(os.environ['FOLDER'], os.environ['DMLC_ROLE'] + os.environ['DMLC_TASK_ID'])\n"
        "with open(me, 'a') as f: f.write('x')\n"
        "if me.name == 'worker1' and me.read_text() == 'x': os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    options = ["-n", "2", "-s", "1", "--on-worker-death", "wait", "--env", f"FOLDER:{tmp_path}"]
    command = remote.command(*options, jobs.PYTHON, "-S", "-c", code)
    done = jobs.run(*command, env=remote.env, seconds=90)
    assert "worker 1" in done.stderr and "it is started again" in done.stderr
    assert (tmp_path / "worker1").read_text() == "xx" and (tmp_path / "worker0").read_text() == "x"


@pytest.mark.slow
def test_unreachable_hosts_are_all_named_before_anything_starts(tmp_path: Path) -> None:
    remote = fake("ssh", tmp_path)
    (tmp_path / "hosts").write_text("unreachable\none\nunreachable:23\n")
    command = remote.command("-n", "1", jobs.PYTHON, "-c", "print('started')")
    done = jobs.run(*command, env=remote.env, status=2, seconds=60)
    assert "started" not in done.stdout
    assert "unreachable: ssh: connect to host unreachable port 22: No route to host" in done.stderr
    assert "unreachable:23: " in done.stderr and "is its address right?" in done.stderr and "  one" not in done.stderr


@pytest.mark.skipif(shutil.which("rsync") is None, reason="no rsync here")
def test_the_working_folder_is_copied(tmp_path: Path) -> None:
    remote = fake("ssh", tmp_path)
    source, target = tmp_path / "source", tmp_path / "far" / "target"
    (source / ".git").mkdir(parents=True)
    (source / "script.py").write_text("import os; print('in', os.getcwd())")
    command = remote.command("-n", "1", "-s", "1", "--sync-dst-dir", str(target), jobs.PYTHON, "-S", "script.py")
    done = jobs.run(*command, env=remote.env, cwd=source, seconds=60)
    assert f"[worker 0] in {target}" in done.stdout and f"[scheduler] in {source}" in done.stdout
    assert [p.name for p in target.iterdir()] == ["script.py"]


def test_mpi_places_ranks_as_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remote = fake("mpi", tmp_path)
    for key, value in remote.env.items():
        monkeypatch.setenv(key, value)
    from dualmx.launch.process import JobMember

    plan = JobPlan(["true"], 3, 1, launcher="mpi", hosts=[Host("a", slots=2), Host("b")], uri="10.0.0.9", port=9)
    start = LAUNCHERS["mpi"].starts(plan, [JobMember(*seat) for seat in plan.members])[0]
    assert [m.name for m in start.members] == ["server 0", "worker 0", "worker 1", "worker 2"]
    assert start.command[start.command.index("--host") + 1] == "a:3,b:1"
    assert "10.0.0.9" in start.env["DUALMX_LAUNCH"] and not any("10.0.0.9" in c for c in start.command)


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (JobPlan(["true"], 1, 1, launcher="ssh"), "expected a host file"),
        (JobPlan(["true"], 1, 1, launcher="ssh", hosts=[Host("a")], program=["absent-ssh"]), "no program 'absent-ssh'"),
        (JobPlan(["true"], 1, 1, launcher="mpi", program=["absent-mpirun"]), "no program 'absent-mpirun'"),
        (JobPlan(["true"], 1, 1, launcher="mpi", hosts=[Host("a", 22)], program=["true"]), "takes no ports"),
        (JobPlan(["true"], 1, 1, launcher="slurm", program=["absent-srun"]), "no program 'absent-srun'"),
        (JobPlan(["true"], 1, 1, launcher="slurm", hosts=[Host("a", 22)], program=["true"]), "no ports"),
        (JobPlan(["true"], 1, 1, launcher="slurm", folder="/x", program=["true"]), "--sync-dst-dir"),
    ],
)
def test_what_cannot_be_carried_out_is_refused(plan: JobPlan, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        LAUNCHERS[plan.launcher].check(plan)
