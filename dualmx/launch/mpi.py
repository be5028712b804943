"""MPI launcher: `mpirun` starts one process per rank; the programs need not use MPI."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

from ..core.errors import ArgumentError
from . import ssh
from .hostfile import by_host, place
from .plan import JobPlan
from .process import JobMember, ProcessSpec, agent_command


def _program(plan: JobPlan) -> list[str]:
    return list(plan.program) or ["mpirun"]


def _is_open_mpi(plan: JobPlan) -> bool:
    try:
        done = subprocess.run([_program(plan)[0], "--version"], capture_output=True, text=True, timeout=60)
    except OSError:
        return True  # it is only written down what would be started
    return any(name in done.stdout + done.stderr for name in ("Open MPI", "OpenRTE", "PRRTE"))


def check(plan: JobPlan) -> None:
    """Look for `mpirun`, and copy the working folder if asked.

    Raises:
        ArgumentError: no mpirun, or a host file with ports.
    """
    program = _program(plan)[0]
    if shutil.which(program) is None:
        raise ArgumentError(f"--launcher mpi: there is no program {program!r} here; install Open MPI or MPICH")
    if any(h.port for h in plan.hosts):
        raise ArgumentError("--launcher mpi: mpirun takes no ports from a host file; put them into ~/.ssh/config")
    if plan.folder:
        if not plan.hosts:
            raise ArgumentError("--sync-dst-dir: expected a host file (-H)")
        ssh.check(JobPlan(plan.command, 1, 1, env=plan.env, launcher="mpi", hosts=plan.hosts, folder=plan.folder))


def starts(plan: JobPlan, members: Sequence[JobMember]) -> list[ProcessSpec]:
    """Return one `mpirun`; each of its processes finds its description by its number, in a variable."""
    order = list(members)
    where: list[str] = []
    open_mpi = _is_open_mpi(plan)
    if plan.hosts:
        named = {(m.role, m.rank): m for m in members}
        places = place(plan.hosts, plan.servers, plan.workers)
        groups = by_host({member: host for member, host in places.items() if member in named})
        order = [named[member] for _, on_host in groups for member in on_host]
        listed = ",".join(f"{host.name}:{len(on_host)}" for host, on_host in groups)
        where = ["--host", listed] if open_mpi else ["-hosts", listed]
    # Threads of a process may use all cores; more processes than cores are no mistake here.
    options = ["--bind-to", "none", "--oversubscribe", "-x", "DUALMX_LAUNCH"] if open_mpi else []
    tasks = plan.tasks([(m.role, m.rank) for m in order])
    command = [*_program(plan), "-np", str(len(order)), *where, *options, *agent_command("rank")]
    env = {**os.environ, "DUALMX_LAUNCH": tasks}
    return [ProcessSpec(order, command, env, framed=True, name="mpirun", timeout=8.0)]


def remove(plan: JobPlan, folder: str) -> None:
    """Do nothing: the job made folders on this host only."""


__all__ = ["check", "remove", "starts"]
