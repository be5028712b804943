"""ssh launcher: one connection per process; the process ends with its connection."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..core.errors import ArgumentError, MXNetError
from ..core.knobs import INTERFACE
from ..core.net import is_loopback
from .hostfile import Host, place
from .plan import JobPlan, place_scheduler
from .preflight import HostConnections, format_problems, probe_command, probing
from .process import JobMember, ProcessSpec, agent_command

CONNECT_SECONDS = 15  # until a host counts as unreachable
COPY_SECONDS = 600
# Never ask for passwords; notice within half a minute that a host is gone.
_OPTIONS = ("-T", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_SECONDS}", "-o", "ServerAliveInterval=10")


def _program(plan: JobPlan) -> list[str]:
    return list(plan.program) or ["ssh"]


def to_host(plan: JobPlan, host: Host, command: str) -> list[str]:
    """Command that runs the shell command `command` on `host`."""
    port = ["-p", str(host.port)] if host.port else []
    return [*_program(plan), *_OPTIONS, *port, host.name, command]


def distinct(plan: JobPlan) -> dict[str, Host]:
    """The hosts of a plan by name, each once."""
    return {str(h): h for h in plan.hosts}


def questions(plan: JobPlan) -> dict[str, list[str]]:
    """Commands that start a probe on each host."""
    script = "exec " + shlex.join(probe_command())
    return {name: to_host(plan, host, script) for name, host in distinct(plan).items()}


def check(plan: JobPlan) -> None:
    """Check that every host can be used, copy the working folder if requested, find the scheduler's address.

    Raises:
        ArgumentError: no host file, or no ssh here. MXNetError: hosts cannot be used; all of them are listed.
    """
    if not plan.hosts:
        raise ArgumentError(f"--launcher {plan.launcher}: expected a host file (-H)")
    if shutil.which(_program(plan)[0]) is None:
        raise ArgumentError(f"--launcher {plan.launcher}: there is no program {_program(plan)[0]!r} here")
    with probing(questions(plan)) as probes:
        question = {"ask": "facts", "folder": plan.folder or os.getcwd(), "make": bool(plan.folder)}
        facts = probes.ask(question, CONNECT_SECONDS + 15)
        if plan.folder and not probes.problems:
            copy_folder(plan, facts)
        probes.ask({"ask": "program", "name": plan.command[0], "path": plan.env.get("PATH", "")}, CONNECT_SECONDS)
        if not probes.problems:
            _meet(plan, facts, probes)
        if probes.problems:
            raise MXNetError(
                f"nothing was started, for these hosts cannot be used:\n{format_problems(probes.problems)}"
            )


def _meet(plan: JobPlan, facts: Mapping[str, dict[str, Any]], probes: HostConnections) -> None:
    """Find the address by which the hosts reach the scheduler, and let them try."""
    if not plan.uri and not (plan.env.get(INTERFACE.name) or INTERFACE.read()):
        seen = [f["seen"] for f in facts.values() if f["seen"] and _is_own(f["seen"])]
        plan.uri = next((s for s in seen if not is_loopback(s)), seen[0] if seen else "")
    place_scheduler(plan)
    with socket.create_server((plan.uri, plan.port), backlog=256):
        probes.ask({"ask": "reach", "targets": [[plan.uri, plan.port]], "seconds": 5}, CONNECT_SECONDS)


def _is_own(address: str) -> bool:
    try:
        with socket.socket() as s:
            s.bind((address, 0))
        return True
    except OSError:
        return False  # of a gateway between here and there


def copy_folder(plan: JobPlan, facts: Mapping[str, dict[str, Any]]) -> None:
    """Copy the working folder to `plan.folder` on all hosts: by rsync where both ends have it, else by tar.

    Raises:
        ArgumentError: neither rsync nor tar here. MXNetError: it failed for a host.
    """
    here = {program: shutil.which(program) is not None for program in ("rsync", "tar")}

    def copy(host: Host) -> str:
        if here["rsync"] and facts[str(host)]["rsync"]:
            return _attempt(_rsync(plan, host), None)
        return _attempt(to_host(plan, host, f"tar -xzf - -C {shlex.quote(plan.folder)}"), ["tar", *_PACK])

    if not any(here.values()):
        raise ArgumentError("--sync-dst-dir: there is neither 'rsync' nor 'tar' here")
    problems = _on_all(plan, copy)
    if problems:
        raise MXNetError("--sync-dst-dir: " + "; ".join(f"{host}: {why}" for host, why in problems.items()))


_PACK = ("--exclude=./.git", "-czf", "-", ".")


def _rsync(plan: JobPlan, host: Host) -> list[str]:
    shell = [*_program(plan), "-o", "BatchMode=yes", *(["-p", str(host.port)] if host.port else [])]
    name = f"[{host.name}]" if ":" in host.name else host.name
    return ["rsync", "-az", "--exclude=/.git", "-e", shlex.join(shell), "./", f"{name}:{plan.folder}/"]


def _attempt(command: Sequence[str], source: Sequence[str] | None) -> str:
    """Run a command, on the output of `source` if there is one; returns why it failed, or nothing."""
    packing = None if source is None else subprocess.Popen(source, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL if packing is None else packing.stdout, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, errors="replace", timeout=COPY_SECONDS,
        )  # fmt: skip
        said, code = done.stderr, done.returncode
    except subprocess.TimeoutExpired:
        said, code = f"not done within {COPY_SECONDS} s", 1
    if packing is not None:
        if code:
            packing.kill()
        error = packing.communicate()[1].decode(errors="replace")
        said, code = (said, code) if code else (error, packing.returncode)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return "" if code == 0 else (lines[-1] if lines else f"status {code}")


def _on_all(plan: JobPlan, attempt: Callable[[Host], str]) -> dict[str, str]:
    """Call `attempt` for each host, several at a time; returns the reasons of those that failed."""
    hosts = list(distinct(plan).values())
    with ThreadPoolExecutor(min(16, len(hosts))) as threads:
        reasons = list(threads.map(attempt, hosts))
    return {str(h): why for h, why in zip(hosts, reasons, strict=True) if why}


def starts(plan: JobPlan, members: Sequence[JobMember]) -> list[ProcessSpec]:
    """Return one ssh connection for each server and worker; its input goes through stdin, unseen by `ps`."""
    places = place(plan.hosts, plan.servers, plan.workers)
    agent = "exec " + shlex.join(agent_command("stdin"))
    return [
        ProcessSpec(
            [m], to_host(plan, places[m.role, m.rank], agent), os.environ, plan.tasks([(m.role, m.rank)]),
            framed=True, name="ssh", timeout=4.0, login_slot=str(places[m.role, m.rank]),
        )
        for m in members
    ]  # fmt: skip


def remove(plan: JobPlan, folder: str) -> None:
    """Remove a folder on all hosts; on those that do not answer it stays."""
    _on_all(plan, lambda host: _attempt(to_host(plan, host, f"rm -rf {shlex.quote(folder)}"), None))


__all__ = ["check", "distinct", "questions", "remove", "starts"]
