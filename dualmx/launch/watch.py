"""Running a job: start its processes, watch them, end all of them, and tell what went wrong."""

from __future__ import annotations

import importlib
import signal
import sys
import time
from collections.abc import Sequence
from types import FrameType
from typing import Protocol, cast

from ..core.running import noted
from .plan import Plan, place_scheduler
from .process import Keeper, Member, Process, Start, describe_exit
from .returns import Returns

GRACE = 10.0  # seconds that the others have to end by themselves after a failure, or when all workers are done
LAUNCHERS = ("local", "ssh", "mpi", "slurm", "ray")


class Launcher(Protocol):
    """What a module named after a launcher offers."""

    def check(self, plan: Plan) -> None:
        """Raise `ArgumentError` or `MXNetError` if the plan cannot be carried out; copy files where that is asked."""

    def starts(self, plan: Plan, members: Sequence[Member]) -> list[Start]:
        """Return how the servers and workers `members` are started."""
        ...


class Interrupted(BaseException):
    """The launcher was asked to end.

    Attributes:
        number: the signal.
    """

    def __init__(self, number: int):
        super().__init__(number)
        self.number = number


def launcher(name: str) -> Launcher:
    """Return a launcher by its name."""
    return cast(Launcher, importlib.import_module(f".{name}", __package__))


def run(plan: Plan) -> int:
    """Run a job to its end; returns its exit status: that of the first process that failed, 128 + n for signal n.

    Raises:
        ArgumentError, MXNetError: it cannot be started.
    """
    handled = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Interrupted(number)

    before = {number: signal.signal(number, interrupt) for number in handled}
    keeper = Keeper()
    processes: list[Process] = []
    returns = Returns(plan, keeper)
    try:
        place_scheduler(plan)
        how = launcher(plan.launcher)
        how.check(plan)
        scheduler = Member("scheduler", 0)
        starts = [Start([scheduler], plan.command, plan.env_here("scheduler", 0))]
        starts += how.starts(plan, [Member(role, rank) for role, rank in plan.seats])
        for start in starts:
            processes.append(Process(start, keeper))
        with noted(plan.uri, plan.port, plan.env.get("DUALMX_SECRET", ""), " ".join(plan.command)):
            first = _watch(processes, returns)
        for number in handled:
            signal.signal(number, signal.SIG_IGN)
        _end(processes)
        if first is None:
            return 0
        for p in processes:
            p.finish_output()
        sys.stdout.flush()
        print(report(first, processes), file=sys.stderr, flush=True)
        code = first.code or 0
        return code if code >= 0 else 128 - code
    except Interrupted as e:
        for number in handled:
            signal.signal(number, signal.SIG_IGN)
        _end(processes)
        print(f"dualmx-launch: ended by {signal.Signals(e.number).name}; all processes are stopped", file=sys.stderr)
        return 128 + e.number
    finally:
        keeper.close()
        returns.close()
        for number, old in before.items():
            signal.signal(number, old)


def _watch(processes: list[Process], returns: Returns) -> Member | None:
    """Wait for the end of the job; returns the member that failed first, if one did and the job needs it."""
    first: Member | None = None
    until: float | None = None
    while True:
        if first is None:
            returns.replace(processes)
        members = [m for p in processes for m in p.members]
        alive = [p for p in processes if p.poll() is None]
        failed = [m for m in members if m.code and not returns.forgiven(m)]
        if failed and first is None:
            # Of several at once, the one that was killed.
            first = min(failed, key=lambda m: ((m.code or 0) >= 0, m.ended or 0.0))
        if not alive:
            return first
        if first is not None or all(m.role != "worker" or m.code is not None for m in members):
            until = until or time.monotonic() + GRACE
            if time.monotonic() > until:
                return first
        time.sleep(0.02)


def _end(processes: Sequence[Process]) -> None:
    """Stop what still runs."""
    for number, least in ((signal.SIGTERM, 0.0), (signal.SIGKILL, 5.0)):
        running = [p for p in processes if p.poll() is None]
        for p in running:
            for m in p.members:
                m.stopped = m.stopped or m.code is None
            p.signal(signal.SIGCONT)
            p.signal(number)
        until = time.monotonic() + max([least, *(p.patience for p in running)])
        while any(p.poll() is None for p in running) and time.monotonic() < until:
            time.sleep(0.02)


def report(first: Member, processes: Sequence[Process]) -> str:
    """One page about a failed job: who failed first, what it said last, what became of the others."""
    rule = "-" * 78
    members = [m for p in processes for m in p.members]
    own = next((p for p in processes if first in p.members and p.code and not first.where and len(p.members) > 1), None)
    if own is not None:  # it failed before it could start them
        out = [rule, f"dualmx-launch: the job failed: {own.name} {describe_exit(own.code or 0)}"]
        out += [f"last lines of {own.name}:", *(f"    {line[:200]}" for line in own.lines)]
    else:
        at = f" ({first.where})" if first.where else ""
        out = [rule, f"dualmx-launch: the job failed: {first.name}{at} {describe_exit(first.code or 0)}"]
        out[-1] += f" after {first.ended or 0:.1f} s"
    told = [first, *(m for m in members if m is not first and m.code and not m.stopped)][:4]
    for m in told if own is None else []:
        out.append(f"last lines of {m.name}" + ("" if m is first else f", which {describe_exit(m.code or 0)}") + ":")
        out += [f"    {line[:200]}" for line in m.lines] or ["    (it wrote nothing)"]
    others = [m for m in members if m is not first]
    words = [f"{m.name} " + ("was stopped" if m.stopped else describe_exit(m.code or 0)) for m in others]
    out += ["the others: " + ", ".join(words[:20]) + (", …" if len(words) > 20 else ""), rule]
    return "\n".join(out)


__all__ = ["LAUNCHERS", "Launcher", "launcher", "report", "run"]
