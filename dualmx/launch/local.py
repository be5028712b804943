"""Local launcher: all processes on this host."""

from __future__ import annotations

from collections.abc import Sequence

from .plan import JobPlan
from .process import JobMember, ProcessSpec


def check(plan: JobPlan) -> None:
    """Nothing but the program can be missing on this host; it is looked for before each start."""


def starts(plan: JobPlan, members: Sequence[JobMember]) -> list[ProcessSpec]:
    """Return how the servers and workers are started: as children of the launcher."""
    return [ProcessSpec([m], plan.command, plan.env_here(m.role, m.rank)) for m in members]


def remove(plan: JobPlan, folder: str) -> None:
    """Do nothing: the job made folders on this host only."""


__all__ = ["check", "remove", "starts"]
