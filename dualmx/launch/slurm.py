"""Slurm launcher: `srun`, inside an allocation (`sbatch`, `salloc`) or in one of its own."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import ArgumentError
from .hostfile import place
from .plan import JobPlan
from .process import JobMember, ProcessSpec, agent_command


def _program(plan: JobPlan) -> list[str]:
    return list(plan.program) or ["srun"]


def check(plan: JobPlan) -> None:
    """Look for `srun`.

    Raises:
        ArgumentError: no srun, or options that Slurm has no use for.
    """
    program = _program(plan)[0]
    if shutil.which(program) is None:
        raise ArgumentError(f"--launcher slurm: there is no program {program!r} here; start this on a Slurm host")
    if any(h.port for h in plan.hosts):
        raise ArgumentError("--launcher slurm: nodes have no ports; list their names in the host file")
    if plan.folder:
        raise ArgumentError("--sync-dst-dir: not with --launcher slurm; use a shared folder, or sbcast")


def starts(plan: JobPlan, members: Sequence[JobMember]) -> list[ProcessSpec]:
    """Return one `srun`; each of its tasks finds its description by its number, in a variable."""
    tasks = plan.tasks([(m.role, m.rank) for m in members])
    env = {**os.environ, "DUALMX_LAUNCH": tasks}
    options = ["--ntasks", str(len(members)), "--export=ALL", "--input=none", "--mpi=none", "--wait=0"]
    options += ["--kill-on-bad-exit=0", "--overcommit"]
    if len(members) < len(plan.members):
        options.append("--overlap")  # started again: what it had still belongs to the step of the others
    if plan.hosts:
        places = place(plan.hosts, plan.servers, plan.workers)
        where = [places[m.role, m.rank].name for m in members]
        with tempfile.NamedTemporaryFile("w", prefix="dualmx-hosts-", delete=False) as f:
            f.writelines(f"{name}\n" for name in where)
        atexit.register(Path(f.name).unlink, missing_ok=True)
        env["SLURM_HOSTFILE"] = f.name
        options += ["--distribution=arbitrary", f"--nodes={len(set(where))}"]
    command = [*_program(plan), *options, *agent_command("rank")]
    return [ProcessSpec(list(members), command, env, framed=True, name="srun", timeout=8.0)]


def remove(plan: JobPlan, folder: str) -> None:
    """Do nothing: the job made folders on this host only."""


__all__ = ["check", "remove", "starts"]
