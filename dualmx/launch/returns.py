"""What the launcher does about a process that died: start another one in its place, or let the job go on without it."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace

from .plan import Plan
from .process import Keeper, Member, Process, describe_exit


class Returns:
    """The policies of a job.

    Args:
        plan: of the job; its environment is completed by the policies and, where servers return, a journal.
        keeper: of the launcher's processes.
    """

    def __init__(self, plan: Plan, keeper: Keeper):
        self._keeper, self._policy, self._left = keeper, plan.policy, plan.restarts
        self._without: set[str] = set()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        env = {f"DUALMX_ON_{role.upper()}_DEATH": policy for role, policy in plan.policy.items()}
        if plan.policy.get("server") == "wait" and "DUALMX_JOURNAL" not in plan.env:
            self._folder = tempfile.TemporaryDirectory(prefix="dualmx-journal-", ignore_cleanup_errors=True)
            env["DUALMX_JOURNAL"] = self._folder.name
        plan.env = {**env, **plan.env}

    def forgiven(self, member: Member) -> bool:
        """Whether the job goes on without a member that failed."""
        return member.name in self._without

    def replace(self, processes: list[Process]) -> None:
        """Start again those that have failed and may come back; note those that the job does without."""
        for i, process in enumerate(processes):
            member = process.members[0]
            if not process.poll() or len(process.members) > 1 or process.start.framed or member.stopped:
                continue
            policy = self._policy.get(member.role, "fail")
            how = f"dualmx-launch: {member.name} {describe_exit(process.code or 0)}"
            if policy == "continue" and member.name not in self._without:
                others = [p.members[0] for p in processes if p.members[0].role == member.role and p.code is None]
                if others:
                    self._without.add(member.name)
                    print(f"{how}; the job goes on without it", file=sys.stderr, flush=True)
            elif policy == "wait" and self._left > 0:
                self._left -= 1
                print(f"{how}; it is started again, {self._left} restarts left", file=sys.stderr, flush=True)
                again = Member(member.role, member.rank)
                processes[i] = Process(replace(process.start, members=[again]), self._keeper)

    def close(self) -> None:
        """Remove the journal."""
        if self._folder is not None:
            self._folder.cleanup()


__all__ = ["Returns"]
