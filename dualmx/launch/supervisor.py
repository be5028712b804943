"""Supervisor: start the processes of a job, watch them, stop all of them, report what failed."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from types import FrameType
from typing import Protocol

from ..core.encryption import check_encryption
from ..core.errors import ArgumentError, MXNetError
from ..core.job_status import registered_job
from ..core.knobs import ENCRYPT
from ..core.open_files import limit, opened, raise_limit, remedy
from . import local, mpi, ray, slurm, ssh
from .plan import JobPlan, place_scheduler
from .process import JobMember, Process, ProcessKeeper, ProcessSpec, describe_exit
from .restart import RestartPolicy, Starts

END_SECONDS = 10.0  # seconds that the others have to end by themselves after a failure, or when all workers are done
MAX_LINE_LENGTH = 400  # most characters of a line in the report
MAX_LOGINS, LOGIN_SECONDS = (
    8,
    30.0,
)  # most processes of a lane that start at a time, and for how many seconds the next one waits
SPARE_FILES = 48  # files that a process opens for other things


class Launcher(Protocol):
    """What a module named after a launcher offers."""

    def check(self, plan: JobPlan) -> None:
        """Raise `ArgumentError` or `MXNetError` if the plan cannot be carried out; copy files if requested."""

    def starts(self, plan: JobPlan, members: Sequence[JobMember]) -> list[ProcessSpec]:
        """Return the processes that start servers and workers `members`: all of them at first, later restarts."""
        ...

    def remove(self, plan: JobPlan, folder: str) -> None:
        """Remove a folder that the job made on hosts that do not share this host's files."""


LAUNCHERS: dict[str, Launcher] = {"local": local, "ssh": ssh, "mpi": mpi, "slurm": slurm, "ray": ray}


class Interrupted(BaseException):
    """Raised by signals that end the launcher.

    Attributes:
        number: the signal.
    """

    def __init__(self, number: int):
        super().__init__(number)
        self.number = number


def run(plan: JobPlan) -> int:
    """Run a job to its end; returns its exit status: that of the first process that failed, 128 + n for signal n.

    Raises:
        ArgumentError, MXNetError: it cannot be started.
    """
    handled = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Interrupted(number)

    how = LAUNCHERS[plan.launcher]
    returns = RestartPolicy(plan)
    before = {number: signal.signal(number, interrupt) for number in handled}
    keeper = ProcessKeeper()
    processes: list[Process] = []
    try:
        check_open_files(plan)
        how.check(plan)
        place_scheduler(plan)
        encrypt = plan.env.get(ENCRYPT.name) or ENCRYPT.read()
        check_encryption(plan.uri, encrypt)
        starts = process_specs(
            plan, how, [JobMember("scheduler", 0), *(JobMember(role, rank) for role, rank in plan.members)]
        )
        _require_programs(starts)
        for start in starts:
            _acquire_login_slot(start, processes)
            try:
                processes.append(Process(start, keeper))
            except OSError as e:
                raise MXNetError(f"cannot start {start.name or start.members[0].name}: {e.strerror or e}") from e
        with registered_job(plan.uri, plan.port, plan.env.get("DUALMX_SECRET", ""), " ".join(plan.command), encrypt):
            first = _supervise(plan, processes, returns, keeper, lambda members: process_specs(plan, how, members))
        for number in handled:
            signal.signal(number, signal.SIG_IGN)
        _terminate_all(processes)
        for p in processes:
            p.finish_output()
        sys.stdout.flush()
        if first is None:
            return 0
        print(report(first, processes), file=sys.stderr, flush=True)
        code = first.code or 0
        return code if code >= 0 else 128 - code
    except Interrupted as e:
        for number in handled:
            signal.signal(number, signal.SIG_IGN)
        _terminate_all(processes)
        print(f"dualmx-launch: ended by {signal.Signals(e.number).name}; all processes are stopped", file=sys.stderr)
        return 128 + e.number
    finally:
        keeper.close()
        if processes and returns.journal:
            how.remove(plan, returns.journal)
        returns.close()
        for number, old in before.items():
            signal.signal(number, old)


def check_open_files(plan: JobPlan) -> None:
    """Raise this process's limit of open files, and see that it is enough for the plan before anything is started.

    Raises:
        MXNetError: it is not.
    """
    raise_limit()
    apart = plan.launcher in ("local", "ssh")  # the others start one process here, which starts those of the job
    processes = 1 + (max(len(plan.members), len(plan.hosts)) if apart else 1)
    need = opened() + 3 * processes + SPARE_FILES
    if need > limit():
        raise MXNetError(
            f"nothing was started: the launcher, with up to 3 pipes to each of {processes} processes, would have about "
            f"{need} files open, and a process may have {limit()}. {remedy()}, or start fewer processes"
        )


def process_specs(plan: JobPlan, how: Launcher, members: Sequence[JobMember]) -> list[ProcessSpec]:
    """How members are started: the scheduler here, the others by the launcher."""
    here = [m for m in members if m.role == "scheduler"]
    others = [m for m in members if m.role != "scheduler"]
    # Without servers the program need not know of dualmx, which then serves by itself.
    command = plan.command if plan.servers else [sys.executable, "-c", "import dualmx"]
    starts = [ProcessSpec([m], command, plan.env_here(m.role, m.rank)) for m in here]
    return starts + (how.starts(plan, others) if others else [])


def _require_programs(starts: Sequence[ProcessSpec]) -> None:
    """Raise `ArgumentError` unless each program that runs on this host is there."""
    for start in starts:
        name, path = start.command[0], start.env.get("PATH", os.defpath)
        if shutil.which(name, path=path) is None:
            if os.sep in name:
                what = "cannot be executed" if os.path.exists(name) else "does not exist"
                raise ArgumentError(f"the program {name!r} {what} here, in {os.getcwd()!r}")
            raise ArgumentError(f"there is no program {name!r} here, in PATH={path}")


def _acquire_login_slot(start: ProcessSpec, processes: Sequence[Process]) -> None:
    """Wait for a place in the lane: an ssh daemon drops connections when ten at once have not logged in."""
    until = time.monotonic() + LOGIN_SECONDS
    while start.login_slot and time.monotonic() < until:
        same = [p for p in processes if p.start.login_slot == start.login_slot and p.poll() is None]
        if sum(not m.where for p in same for m in p.members) < MAX_LOGINS:
            return
        time.sleep(0.01)


def _supervise(
    plan: JobPlan, processes: list[Process], returns: RestartPolicy, keeper: ProcessKeeper, starts: Starts
) -> JobMember | None:
    """Wait for the end of the job; returns the member that failed first, if one did and the job needs it."""
    first: JobMember | None = None
    until: float | None = None
    while True:
        alive = any([p.poll() is None for p in processes])
        members = [m for p in processes for m in p.members]
        failed = [m for m in members if m.code]  # once: those on other hosts may fail at any time
        if first is None:
            returns.decide(failed, members)
            # Of several at once, the one that was killed.
            failed = [m for m in failed if not returns.tolerates(m)]
            first = min(failed, key=lambda m: ((m.code or 0) >= 0, m.begun + (m.ended or 0.0)), default=None)
        if not alive and not (first is None and returns.pending):
            return first
        if first is None:
            processes += returns.start_due(starts, keeper)
        workers = [m for p in processes for m in p.members if m.role == "worker"]
        done = not (returns.pending or any(m.code is None for m in workers)) or returns.late(members)
        if first is None and not done:
            until = None  # another worker was started in the place of the last one
        else:
            # Without servers there may be a scheduler that nobody has asked for anything.
            now = time.monotonic()
            limit = now + (0.2 if done and not plan.servers else END_SECONDS)
            until = limit if until is None else min(until, limit)
            if now > until:
                return first
        time.sleep(0.02)


def _terminate_all(processes: Sequence[Process]) -> None:
    """Stop what still runs."""
    for number, least in ((signal.SIGTERM, 0.0), (signal.SIGKILL, 5.0)):
        running = [p for p in processes if p.poll() is None]
        for p in running:
            for m in p.members:
                m.stopped = m.stopped or m.code is None
            p.signal(signal.SIGCONT)
            p.signal(number)
        until = time.monotonic() + max([least, *(p.timeout for p in running)])
        while any(p.poll() is None for p in running) and time.monotonic() < until:
            time.sleep(0.02)


def report(first: JobMember, processes: Sequence[Process]) -> str:
    """Return a one-page report of a failed job: who failed first, its last lines, the state of the others."""
    rule = "-" * 78
    members = [m for p in processes for m in p.members]
    own = next((p for p in processes if first in p.members and p.code and not first.where and len(p.members) > 1), None)
    if own is not None:  # it failed before it could start them
        out = [rule, f"dualmx-launch: the job failed: {own.name} {describe_exit(own.code or 0)}"]
        out += [f"last lines of {own.name}:", *(f"    {line[:MAX_LINE_LENGTH]}" for line in own.lines)]
    else:
        at = f" ({first.where})" if first.where else ""
        out = [rule, f"dualmx-launch: the job failed: {first.name}{at} {describe_exit(first.code or 0)}"]
        out[-1] += f" after {first.ended or 0:.1f} s"
    # Of a process that was started again and again, the last one.
    others = [m for m in {m.name: m for m in members}.values() if m.name != first.name]
    shown = [first, *(m for m in others if m.code and not m.stopped)][:4]
    for m in shown if own is None else []:
        out.append(f"last lines of {m.name}" + ("" if m is first else f", which {describe_exit(m.code or 0)}") + ":")
        out += [f"    {line[:MAX_LINE_LENGTH]}" for line in m.lines] or ["    (it wrote nothing)"]
    words = [f"{m.name} " + ("was stopped" if m.stopped else describe_exit(m.code or 0)) for m in others]
    out += ["the others: " + ", ".join(words[:20]) + (", …" if len(words) > 20 else ""), rule]
    return "\n".join(out)


__all__ = ["LAUNCHERS", "Launcher", "process_specs", "report", "run"]
