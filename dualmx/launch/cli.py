"""The command `dualmx-launch`."""

from __future__ import annotations

import argparse
import os
import re
import secrets
import shlex
import sys
from collections.abc import Sequence

from ..core.errors import ArgumentError, MXNetError
from ..core.knobs import ATTEMPT, CLUSTER, INTERFACE, MAX_WORKERS, MIN_WORKERS, ON_SERVER_DEATH, ON_WORKER_DEATH, SECRET
from .hostfile import read_hosts
from .job_scripts import NEXT_STEPS, SCRIPT_FORMATS, commands
from .plan import JobPlan
from .supervisor import run


def variables(given: Sequence[str]) -> dict[str, str]:
    """Read `KEY:VALUE`, `KEY=VALUE`, or `NAME` of a variable of this process.

    Raises:
        ArgumentError: a NAME that is not set, or no name.
    """
    out = {}
    for one in given:
        cut = min((i for i in (one.find(":"), one.find("=")) if i >= 0), default=-1)
        if not re.fullmatch(r"[A-Za-z_]\w*", one[:cut] if cut >= 0 else one, re.ASCII):
            raise ArgumentError(f"--env {one!r}: expected NAME:VALUE, NAME=VALUE or NAME, of letters, digits and _")
        if cut > 0:
            out[one[:cut]] = one[cut + 1 :]
        elif one in os.environ:
            out[one] = os.environ[one]
        else:
            raise ArgumentError(f"--env {one}: not set here; give a value by --env {one}:VALUE")
    return out


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(
        prog="dualmx-launch",
        description="Start a distributed job: a scheduler, servers, and workers that run a command.",
        epilog="example: dualmx-launch -n 2 -s 2 --launcher local python examples/train_mnist.py --kv-store dist_sync",
    )
    p.add_argument("-n", "--num-workers", type=int, required=True, help="number of workers")
    p.add_argument(
        "-s", "--num-servers", type=int, help="number of servers (default: as many as workers); 0 for collectives alone"
    )
    p.add_argument(
        "--launcher",
        "--cluster",
        choices=CLUSTER.choices,
        help="how processes are started (default: ssh with -H, else local)",
    )
    p.add_argument(
        "--dry-run", action="store_true",
        help="print what would be run, or what the system is given: a script for sge, JSON for kubernetes and yarn",
    )  # fmt: skip
    p.add_argument("--image", default="", help="image of the containers (kubernetes)")
    p.add_argument("-H", "--hostfile", help="file with a host of the job in each line: host, host:port, host slots=n")
    p.add_argument(
        "--with", dest="program", default="", metavar="PROGRAM", help="called instead of ssh, mpirun or srun"
    )
    p.add_argument("--host-ip", default="", metavar="IP", help="address of this host, where the scheduler listens")
    p.add_argument(
        "--network-interface", default="", metavar="NAME",
        help="interface of all hosts by which the processes reach each other; several with commas: the first one there",
    )  # fmt: skip
    p.add_argument("-p", "--port", type=int, default=0, help="port of the scheduler (default: a free one)")
    p.add_argument("--sync-dst-dir", help="folder on the hosts to which the working folder is copied")
    p.add_argument(
        "--on-worker-death", choices=ON_WORKER_DEATH.choices,
        help="end the job, start the worker again and wait for it, go on without it, or go on without it while it is "
        "started again and others may join (default: fail)",
    )  # fmt: skip
    p.add_argument(
        "--on-server-death", choices=ON_SERVER_DEATH.choices,
        help="end the job, or start the server or scheduler again from its journal (default: fail)",
    )  # fmt: skip
    p.add_argument(
        "--min-np", type=int, default=0, metavar="N",
        help="workers without servers that go on by themselves, at least: fewer wait for those that are started again; "
        "implies --on-worker-death elastic",
    )  # fmt: skip
    p.add_argument(
        "--max-np", type=int, default=0, metavar="N",
        help="the same, at most: others that join wait until one is gone (default: any number)",
    )  # fmt: skip
    p.add_argument("--restarts", type=int, default=10, help="most processes that are started again (default: 10)")
    p.add_argument(
        "--p3",
        action="store_true",
        help="accepted as by MXNet: sets DMLC_PS_VAN_TYPE=p3; arrays travel in slices anyway, by priority",
    )
    p.add_argument("--env", action="append", default=[], metavar="KEY:VALUE", help="variable for all processes")
    p.add_argument("--env-server", action="append", default=[], metavar="KEY:VALUE", help="variable for servers")
    p.add_argument("--env-worker", action="append", default=[], metavar="KEY:VALUE", help="variable for workers")
    p.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        help="program and arguments, the same for all processes; or one text in quotes, for the shell",
    )
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status of the job."""
    p = parser()
    options = p.parse_args(argv)
    try:
        options.launcher = options.launcher or ("ssh" if options.hostfile and not CLUSTER.is_set() else CLUSTER.read())
    except ArgumentError as e:
        p.error(str(e))
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if len(command) == 1 and re.search(r"\s", command[0]) and not os.path.exists(command[0]):
        command = ["sh", "-c", command[0]]  # a command line in quotes, as MXNet's launcher takes it
    servers = options.num_workers if options.num_servers is None else options.num_servers
    if not command:
        p.error("expected a command to run")
    if options.num_workers < 1 or servers < 0:
        p.error("expected at least one worker (-n), and a number of servers (-s) of 0 or more")
    if options.launcher == "local" and (options.hostfile or options.sync_dst_dir or options.program):
        p.error("-H, --with and --sync-dst-dir go with launchers of several hosts; --launcher local uses this one")
    if options.launcher in SCRIPT_FORMATS and not options.dry_run:
        p.error(
            f"--launcher {options.launcher} is only written down: --dry-run > JOB, then {NEXT_STEPS[options.launcher]}"
        )
    if options.restarts < 0:
        p.error(f"--restarts {options.restarts}: expected 0 or more")
    if not 0 <= options.port < 65536:
        p.error(f"--port {options.port}: expected 1 to 65535, or 0 for a free one")
    limits = {knob.name: str(n) for knob, n in ((MIN_WORKERS, options.min_np), (MAX_WORKERS, options.max_np)) if n}
    if limits and (servers or options.on_worker_death not in (None, "elastic")):
        p.error("--min-np and --max-np go with -s 0 and --on-worker-death elastic")
    if not 0 <= options.min_np <= options.num_workers <= (options.max_np or options.num_workers):
        p.error(
            f"-n {options.num_workers}, --min-np {options.min_np}, --max-np {options.max_np}: expected a number of "
            "workers between the least and the greatest"
        )
    try:
        shared = {INTERFACE.name: options.network_interface} if options.network_interface else {}
        shared |= {"DMLC_PS_VAN_TYPE": "p3"} if options.p3 else {}
        shared |= limits | variables(options.env)
        roles = {"server": variables(options.env_server), "worker": variables(options.env_worker)}
        policy = {
            "worker": options.on_worker_death or ("elastic" if limits else ON_WORKER_DEATH.read()),
            "server": options.on_server_death or ON_SERVER_DEATH.read(),
        }
        attempts = ATTEMPT.integer()
        hosts = read_hosts(options.hostfile) if options.hostfile else ()
    except ArgumentError as e:
        p.error(str(e))
    secret = shared.get("DUALMX_SECRET") or SECRET.read() or secrets.token_hex(32)
    for attempt in range(attempts + 1):
        env = {**shared, "DUALMX_SECRET": secret, "DMLC_NUM_ATTEMPT": str(attempt)}
        plan = JobPlan(
            command, options.num_workers, servers, env, roles, options.launcher, hosts, options.sync_dst_dir or "",
            shlex.split(options.program), options.host_ip, options.port,
            policy, options.restarts, options.image,
        )  # fmt: skip
        try:
            if options.dry_run:
                print(SCRIPT_FORMATS.get(options.launcher, commands)(plan), end="")
                return 0
            code = run(plan)
        except MXNetError as e:
            print(f"dualmx-launch: {e}", file=sys.stderr)
            return 2
        if code in (0, 129, 130, 143) or attempt == attempts:
            return code
        print(f"dualmx-launch: starting the job again, attempt {attempt + 1} of {attempts}", file=sys.stderr)
    return 0
