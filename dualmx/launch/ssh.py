"""Processes on other hosts by ssh: one connection each, whose end is the end of the process."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from ..core.errors import ArgumentError, MXNetError
from .hosts import Host, place
from .plan import Plan
from .process import Member, Start, agent_command

SECONDS = 15  # until a host counts as unreachable
# Never ask for passwords; notice within half a minute that a host is gone.
_OPTIONS = ("-T", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={SECONDS}", "-o", "ServerAliveInterval=10")


def _program(plan: Plan) -> list[str]:
    return list(plan.program) or ["ssh"]


def to_host(plan: Plan, host: Host, command: str) -> list[str]:
    """Command that runs the shell command `command` on `host`."""
    port = ["-p", str(host.port)] if host.port else []
    return [*_program(plan), *_OPTIONS, *port, host.name, command]


def check(plan: Plan) -> None:
    """Reach every host, and copy the working folder if asked.

    Raises:
        ArgumentError: no host file, or no ssh here. MXNetError: hosts are unreachable, or lack the folder.
    """
    if not plan.hosts:
        raise ArgumentError("--launcher ssh: expected a host file (-H)")
    if shutil.which(_program(plan)[0]) is None:
        raise ArgumentError(f"--launcher ssh: there is no program {_program(plan)[0]!r} here")
    folder = shlex.quote(plan.folder or os.getcwd())
    first = f"mkdir -p {folder} && " if plan.folder else ""
    problems = on_all(plan, lambda host: _attempt(to_host(plan, host, f"{first}cd {folder}")))
    if problems:
        raise MXNetError(_told(problems))
    if plan.folder:
        copy_folder(plan)


def copy_folder(plan: Plan) -> None:
    """Copy the working folder to `plan.folder` on all hosts, by rsync.

    Raises:
        ArgumentError: no rsync here. MXNetError: it failed for a host.
    """
    if shutil.which("rsync") is None:
        raise ArgumentError("--sync-dst-dir: there is no program 'rsync' here")
    problems = on_all(plan, lambda host: _attempt(_rsync(plan, host), 600))
    if problems:
        raise MXNetError("--sync-dst-dir: " + "; ".join(f"{host}: {why}" for host, why in problems.items()))


def _rsync(plan: Plan, host: Host) -> list[str]:
    shell = [*_program(plan), "-o", "BatchMode=yes", *(["-p", str(host.port)] if host.port else [])]
    name = f"[{host.name}]" if ":" in host.name else host.name
    return ["rsync", "-az", "--exclude=.git", "-e", shlex.join(shell), "./", f"{name}:{plan.folder}/"]


def _attempt(command: list[str], seconds: float = SECONDS + 15) -> str:
    """Run a command; returns why it failed, or nothing."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {seconds:g} s"
    said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return "" if done.returncode == 0 else (said[-1] if said else f"status {done.returncode}")


def on_all(plan: Plan, attempt: object) -> dict[str, str]:
    """Call `attempt(host)` for each host, several at a time; returns the reasons of those that failed."""
    hosts = list({str(h): h for h in plan.hosts}.values())
    with ThreadPoolExecutor(min(16, len(hosts))) as threads:
        reasons = list(threads.map(attempt, hosts))  # type: ignore[arg-type]
    return {str(h): why for h, why in zip(hosts, reasons, strict=True) if why}


def _told(problems: dict[str, str]) -> str:
    lines = "\n".join(f"  {host}: {why}" for host, why in problems.items())
    return (
        f"nothing was started, for these hosts cannot be used:\n{lines}\n"
        "Expected: 'ssh -o BatchMode=yes HOST true' works without a password (ssh-copy-id HOST), and this folder is "
        "there under the same path; if it is not, --sync-dst-dir FOLDER copies it"
    )


def starts(plan: Plan, members: Sequence[Member]) -> list[Start]:
    """Return one ssh connection for each server and worker; what it is told goes through stdin, unseen by `ps`."""
    places = place(plan.hosts, plan.servers, plan.workers)
    agent = "exec " + shlex.join(agent_command("stdin"))
    return [
        Start(
            [m], to_host(plan, places[m.role, m.rank], agent), os.environ,
            plan.tasks([(m.role, m.rank)]), framed=True, name="ssh", patience=4.0,
        )
        for m in members
    ]  # fmt: skip


__all__ = ["check", "copy_folder", "on_all", "starts", "to_host"]
