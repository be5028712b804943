"""Ray launcher: one task per process on the nodes of a cluster."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import ArgumentError
from .hostfile import place
from .plan import JobPlan
from .process import JobMember, ProcessSpec, agent_command

DRIVER = Path(__file__).with_name("ray_driver.py")


def check(plan: JobPlan) -> None:
    """Look for Ray.

    Raises:
        ArgumentError: Ray is not installed, or options that it has no use for.
    """
    if importlib.util.find_spec("ray") is None:
        raise ArgumentError("--launcher ray: the package 'ray' is not installed here: pip install ray")
    if plan.folder:
        raise ArgumentError("--sync-dst-dir: not with --launcher ray; use a shared folder")


def starts(plan: JobPlan, members: Sequence[JobMember]) -> list[ProcessSpec]:
    """Return Ray's driver; it reads from stdin what to start, so that `ps` shows none of it."""
    places = place(plan.hosts, plan.servers, plan.workers) if plan.hosts else {}
    tasks = []
    for m in members:
        host = places.get((m.role, m.rank))
        text = plan.tasks([(m.role, m.rank)])
        tasks.append({"text": text, "node": host.name if host else "", "cpus": 1 if m.role == "worker" else 0})
    text = json.dumps({"agent": agent_command("stdin"), "tasks": tasks})
    command = [sys.executable, "-P", str(DRIVER)]  # -P: this folder's ray.py is not the package
    return [ProcessSpec(list(members), command, os.environ, text, framed=True, name="ray", timeout=8.0)]


def remove(plan: JobPlan, folder: str) -> None:
    """Do nothing: the job made folders on this host only."""


__all__ = ["check", "remove", "starts"]
