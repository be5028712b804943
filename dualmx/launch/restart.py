"""Restart policy: replace a process that died, or let the job continue without it."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence

from ..core.errors import ArgumentError
from ..core.knobs import JOURNAL
from .plan import JobPlan
from .process import JobMember, Process, ProcessKeeper, ProcessSpec, describe_exit

RETRY_SECONDS = 1.0  # seconds until one that could not even be started is tried again
OUTLIVED_SECONDS = (
    1.0  # seconds that a process must end behind the scheduler to have outlived it, since ends are seen in turn
)

Starts = Callable[[Sequence[JobMember]], Sequence[ProcessSpec]]


class RestartPolicy:
    """The policies of a job.

    Args:
        plan: of the job; its environment is completed by the policies and, where servers return, a journal.
    """

    def __init__(self, plan: JobPlan):
        self._policy, self._restarts_left = plan.policy, plan.restarts
        self._settled: set[JobMember] = set()  # failed, but the job goes on
        self._waiting: list[tuple[float, JobMember]] = []
        self._restarted: set[JobMember] = set()  # were started in the place of others
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        env = {f"DUALMX_ON_{role.upper()}_DEATH": policy for role, policy in plan.policy.items()}
        given = plan.env.get(JOURNAL.name) or JOURNAL.read()
        here = plan.launcher in ("local", "ssh")
        if not given and (plan.policy.get("server") == "wait" or (self._waits and here)):
            if not here:
                raise ArgumentError(
                    f"--on-server-death wait with --launcher {plan.launcher}: a server may come back on another host; "
                    "give a folder that all hosts see by --env DUALMX_JOURNAL:FOLDER"
                )
            self._folder = tempfile.TemporaryDirectory(prefix="dualmx-journal-", ignore_cleanup_errors=True)
            env["DUALMX_JOURNAL"] = self._folder.name
        plan.env = {**env, **plan.env}

    @property
    def journal(self) -> str:
        """Folder for the members' journals, here and on their hosts; empty if they have one or need none."""
        return self._folder.name if self._folder is not None else ""

    def tolerates(self, member: JobMember) -> bool:
        """Return whether the job continues after a member failed, without it or with a replacement."""
        return member in self._settled

    @property
    def pending(self) -> bool:
        """Whether a process is scheduled for a restart."""
        return bool(self._waiting)

    @property
    def _waits(self) -> bool:
        return "wait" in self._policy.values()

    def over(self, members: Sequence[JobMember]) -> bool:
        """Whether the job has ended, so that nothing is restarted."""
        if self._policy.get("worker") == "elastic" or not self._waits:
            return self._policy.get("worker") == "elastic" and _job_succeeded(members)
        return _ended_well(members, "worker") or (_job_succeeded(members) and _ended_well(members, "scheduler"))

    def late(self, members: Sequence[JobMember]) -> bool:
        """Whether only processes run that were started in the place of others, and the job is over."""
        running = [m for m in members if m.code is None]
        return self.over(members) and all(m in self._restarted for m in running)

    def decide(self, failed: Sequence[JobMember], members: Sequence[JobMember]) -> None:
        """Settle what becomes of those of `members` that have failed."""
        over = self.over(members)
        if over:
            self._waiting = []
        for member in failed:
            if member in self._settled or member.stopped:
                continue
            killed = self._waits and (member.code or 0) < 0
            if killed and over:
                self._settled.add(member)  # it had nothing left to do
            elif not over:
                self._decide(member, members)
            elif member in self._restarted or self._outlived(member, members):  # it came too late to find the others
                self._settled.add(member)

    def _outlived(self, member: JobMember, members: Sequence[JobMember]) -> bool:
        """Whether an elastic job went on without a member, as one that was stopped for long: its scheduler had ended.

        The scheduler waits for all workers but those.
        """
        if self._policy.get(member.role) != "elastic" or member.ended is None:
            return False
        ends = [m.begun + m.ended for m in members if m.role == "scheduler" and m.code == 0 and m.ended is not None]
        return bool(ends) and member.begun + member.ended > max(ends) + OUTLIVED_SECONDS

    def start_due(self, starts: Starts, keeper: ProcessKeeper) -> list[Process]:
        """Restart the processes that are due, as the launcher starts members."""
        now = time.monotonic()
        ready = [member for at, member in self._waiting if at <= now]
        self._waiting = [(at, member) for at, member in self._waiting if at > now]
        due = [JobMember(member.role, member.rank) for member in ready]
        self._restarted.update(due)
        return [Process(start, keeper) for start in starts(due)] if due else []

    def _decide(self, member: JobMember, members: Sequence[JobMember]) -> None:
        # The scheduler goes by the servers' policy: what they both serve by is written down.
        policy = self._policy.get("server" if member.role == "scheduler" else member.role, "fail")
        at = f" ({member.where})" if " on " in member.where else ""
        how = f"dualmx-launch: {member.name}{at} {describe_exit(member.code or 0)}"
        others = any(m.role == member.role and m.code is None for m in members)
        if policy in ("wait", "elastic") and self._restarts_left > 0:
            self._restarts_left -= 1
            self._settled.add(member)
            self._waiting.append((time.monotonic() + (0.0 if member.where else RETRY_SECONDS), member))
            print(f"{how}; it is started again, {self._restarts_left} restarts left", file=sys.stderr, flush=True)
        elif policy in ("continue", "elastic") and others:
            self._settled.add(member)
            print(f"{how}; the job goes on without it", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Remove the journal."""
        if self._folder is not None:
            self._folder.cleanup()


def _ended_well(members: Sequence[JobMember], role: str) -> bool:
    """Whether all processes of a role, those that were started last, have ended in good order."""
    return all(m.code == 0 for m in {m.name: m for m in members}.values() if m.role == role)


def _job_succeeded(members: Sequence[JobMember]) -> bool:
    """Whether the workers have ended in good order, and the scheduler after them."""
    ended = {m.role for m in members if m.code == 0}
    return {"worker", "scheduler"} <= ended


__all__ = ["RestartPolicy"]
