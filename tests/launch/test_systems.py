"""Open MPI and Slurm between pretended hosts: a real mpirun over ssh, a real Slurm of two nodes."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import jobs
from tests.jobs import wait_for
from tests.launch.cluster import SEARCH, Cluster, why_not

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(why_not()), reason=why_not() or "works")]
PYTHON = [sys.executable, "-S"]
SLURM = ("srun", "sinfo", "slurmctld", "slurmd", "munged")


class System:
    """A launcher on a cluster, and what it needs to run there."""

    def __init__(self, name: str, cluster: Cluster, **env: str):
        self.name, self.cluster = name, cluster
        self.env = {"PATH": SEARCH, **env}
        self.env.pop("DUALMX_SECRET", None)

    def command(self, *arguments: str) -> list[str]:
        launch = [
            sys.executable,
            "-m",
            "dualmx.launch",
            "--launcher",
            self.name,
            "-H",
            str(self.cluster.folder / "hosts"),
        ]
        return self.cluster.on("head", [*launch, *arguments])

    def launch(self, *arguments: str) -> jobs.Done:
        return jobs.run(*self.command(*arguments), env=self.env, status=None, seconds=120)


def mpi(cluster: Cluster) -> Iterator[System]:
    if shutil.which("mpirun", path=SEARCH) is None:
        pytest.skip("no mpirun here")
    yield System(
        "mpi", cluster, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
        OMPI_MCA_plm_rsh_agent=f"ssh -F {cluster.folder}/ssh_config", OMPI_MCA_oob_tcp_if_include="10.77.1.0/24",
    )  # fmt: skip


def slurm(cluster: Cluster) -> Iterator[System]:
    missing = [p for p in SLURM if shutil.which(p, path=SEARCH) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    with tempfile.TemporaryDirectory(prefix="dmx-", ignore_cleanup_errors=True) as folder:  # short: sockets are in it
        yield System("slurm", cluster, SLURM_CONF=str(nodes_up(cluster, Path(folder))))


def nodes_up(cluster: Cluster, folder: Path) -> Path:
    """Start Slurm's daemons, all with their files in `folder`; returns its configuration."""
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o400)
    names = cluster.names
    nodes = "".join(f"NodeName={n} NodeAddr={cluster.address(n)} CPUs=4 State=UNKNOWN\n" for n in names[1:])
    (folder / "slurm.conf").write_text(
        f"ClusterName=pretended\nSlurmctldHost=head({cluster.address('head')})\nSlurmUser=root\nSlurmdUser=root\n"
        f"AuthType=auth/munge\nAuthInfo=socket={folder}/munge.sock\nCredType=cred/munge\n"
        f"StateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/spool-%n\nSlurmctldPidFile={folder}/ctld.pid\n"
        f"SlurmdPidFile={folder}/%n.pid\nSlurmctldLogFile={folder}/ctld.log\nSlurmdLogFile={folder}/%n.log\n"
        "ProctrackType=proctrack/pgid\nTaskPlugin=task/none\nSwitchType=switch/none\nMpiDefault=none\nReturnToService=2\n"
        "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nSlurmdParameters=config_overrides\nKillWait=2\n"
        f"{nodes}PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES\n"
    )
    (folder / "state").mkdir()
    conf = {"SLURM_CONF": str(folder / "slurm.conf")}
    files = [f"--{k}={folder}/munge.{v}" for k, v in (("socket", "sock"), ("key-file", "key"), ("pid-file", "pid"))]
    files += [f"--{k}={folder}/munge.{v}" for k, v in (("log-file", "log"), ("seed-file", "seed"))]
    daemons = [("head", ["munged", "-F", "--force", *files]), ("head", ["slurmctld", "-D"])]
    daemons += [(n, ["slurmd", "-D", "-N", n]) for n in names[1:]]
    for name, command in daemons:
        command[0] = shutil.which(command[0], path=SEARCH) or command[0]
        cluster.serve(name, command, conf)
        if name == "head":
            time.sleep(0.5)
    idle = cluster.on("head", ["sinfo", "-h", "-t", "idle", "-o", "%D"])
    wait_for(
        lambda: jobs.run(*idle, env=conf, status=None).stdout.strip() == "2",
        30,
        lambda: "".join(p.read_text()[-2000:] for p in folder.glob("*.log")),
    )
    return folder / "slurm.conf"


@pytest.fixture(params=[mpi, slurm], ids=lambda f: f.__name__)
def system(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[System]:
    cluster = Cluster(tmp_path)
    try:
        yield from request.param(cluster)
    finally:
        cluster.close()


def test_ranks_go_where_the_host_file_says(system: System) -> None:
    system.cluster.hosts("one slots=2", "two")
    code = (
        "import os, socket, sys\n"
        "e = os.environ\n"
        "print(socket.gethostname(), e['DMLC_ROLE'], e['DMLC_TASK_ID'], e['DMLC_PS_ROOT_URI'], e.get('A'))\n"
        "sys.stdout.flush()\n"
        "if e['DMLC_ROLE'] + e['DMLC_TASK_ID'] == 'worker2': sys.exit(7)\n"
    )
    done = system.launch("-n", "3", "-s", "2", "--env", "A:x 'y", *PYTHON, "-c", code)
    assert done.returncode == 7, done.stdout + done.stderr
    assert sorted(line for line in done.stdout.splitlines() if "scheduler" not in line) == [
        "[server 0] one server 0 10.77.1.1 x 'y",
        "[server 1] two server 1 10.77.1.1 x 'y",
        "[worker 0] one worker 0 10.77.1.1 x 'y",
        "[worker 1] one worker 1 10.77.1.1 x 'y",
        "[worker 2] two worker 2 10.77.1.1 x 'y",
    ]
    assert re.search(r"the job failed: worker 2 \(process \d+ on two\) exited with status 7", done.stderr)


def test_what_dies_is_started_again_alone(system: System, tmp_path: Path) -> None:
    system.cluster.hosts("one", "two")
    code = (
        "import os, pathlib, signal, socket, time\n"
        "e, folder = os.environ, pathlib.Path(os.environ['FOLDER'])\n"
        "if e['DMLC_ROLE'] == 'worker':\n"
        "    me = folder / e['DMLC_TASK_ID']\n"
        "    with open(me, 'a') as f: f.write(socket.gethostname() + ' ')\n"
        "    if me.name == '1' and me.read_text() == 'two ': os.kill(os.getpid(), signal.SIGKILL)\n"
        "    while not (folder / '1').exists() or (folder / '1').read_text() != 'two two ': time.sleep(0.1)\n"
    )
    marks = tmp_path / "marks"
    marks.mkdir()
    done = system.launch(
        "-n", "2", "-s", "1", "--on-worker-death", "wait", "--env", f"FOLDER:{marks}", *PYTHON, "-c", code
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"worker 1 \(process \d+ on two\) was killed by signal 9 .*it is started again", done.stderr)
    assert {p.name: p.read_text() for p in marks.iterdir()} == {"0": "one ", "1": "two two "}


def test_no_process_is_left_on_any_host(system: System) -> None:
    system.cluster.hosts("one", "two")
    code = (
        "import subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)  # child'])\n"
        "time.sleep(600)  # child\n"
    )

    def left(name: str) -> list[str]:
        return [line for line in system.cluster.processes(name).values() if "# child" in line and "guard" not in line]

    with jobs.running(*system.command("-n", "2", "-s", "2", *PYTHON, "-c", code), env=system.env):
        for name in ("one", "two"):
            wait_for(lambda name=name: len(left(name)) >= 4, 30)
        own = [p for p, line in system.cluster.processes("head").items() if "-m dualmx.launch" in line]
        os.kill(min(own), signal.SIGKILL)
        for name in ("head", "one", "two"):
            wait_for(lambda name=name: not left(name), 10, lambda name=name: left(name))
