"""All processes of a job on this host."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType

from .process import Keeper, Process, describe_exit

GRACE = 10.0  # seconds that the others have to end by themselves after a failure, or when all workers are done
POLITE = 2.0  # seconds between asking a process to end and killing it


class Interrupted(BaseException):
    """The launcher was asked to end.

    Attributes:
        number: the signal.
    """

    def __init__(self, number: int):
        super().__init__(number)
        self.number = number


@dataclass
class Plan:
    """What is started.

    Attributes:
        command: the program and its arguments.
        workers, servers: how many of each.
        env: added to the environment of all, `role_env` to those of a role.
    """

    command: Sequence[str]
    workers: int
    servers: int
    env: Mapping[str, str] = field(default_factory=dict)
    role_env: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def free_port() -> int:
    """A port of the loopback address that nobody uses now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def _environment(plan: Plan, role: str, rank: int, port: int) -> dict[str, str]:
    job = {
        "DMLC_ROLE": role,
        "DMLC_PS_ROOT_URI": "127.0.0.1",
        "DMLC_PS_ROOT_PORT": str(port),
        "DMLC_NUM_WORKER": str(plan.workers),
        "DMLC_NUM_SERVER": str(plan.servers),
        "DMLC_TASK_ID": str(rank),
        "DMLC_JOB_CLUSTER": "local",
        "DMLC_NODE_HOST": "127.0.0.1",
        "PYTHONUNBUFFERED": "1",
    }
    if role != "scheduler":
        job[f"DMLC_{role.upper()}_ID"] = str(rank)
    inherited = {k: v for k, v in os.environ.items() if k != "PORT"}  # one port would not do for all servers
    return {**inherited, **job, **plan.env, **plan.role_env.get(role, {})}


def run(plan: Plan) -> int:
    """Run a job to its end; returns its exit status: that of the first process that failed, 128 + n for signal n."""
    handled = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Interrupted(number)

    before = {number: signal.signal(number, interrupt) for number in handled}
    keeper = Keeper()
    processes: list[Process] = []
    try:
        port = free_port()
        roles = [("scheduler", 0)]
        roles += [("server", i) for i in range(plan.servers)] + [("worker", i) for i in range(plan.workers)]
        for role, rank in roles:
            processes.append(Process(role, rank, plan.command, _environment(plan, role, rank, port), keeper))
        first = _watch(processes)
        for number in handled:
            signal.signal(number, signal.SIG_IGN)
        _end(processes)
        if first is None:
            return 0
        for p in processes:
            p.finish_output()
        sys.stdout.flush()
        print(report(first, processes), file=sys.stderr, flush=True)
        code = first.poll() or 0
        return code if code >= 0 else 128 - code
    except Interrupted as e:
        for number in handled:
            signal.signal(number, signal.SIG_IGN)
        _end(processes)
        print(f"dualmx-launch: ended by {signal.Signals(e.number).name}; all processes are stopped", file=sys.stderr)
        return 128 + e.number
    finally:
        keeper.close()
        for number, old in before.items():
            signal.signal(number, old)


def _watch(processes: Sequence[Process]) -> Process | None:
    """Wait for the end of the job; returns the process that failed first, if one did."""
    first: Process | None = None
    until: float | None = None
    while True:
        codes = [(p, p.poll()) for p in processes]
        failed = [p for p, code in codes if code]
        if failed and first is None:
            first = min(failed, key=lambda p: (p.poll() or 0) >= 0)  # of several at once, the one that was killed
        running = [p for p, code in codes if code is None]
        if not running:
            return first
        if first is not None or all(p.role != "worker" for p in running):
            until = until or time.monotonic() + GRACE
            if time.monotonic() > until:
                return first
        time.sleep(0.02)


def _end(processes: Sequence[Process]) -> None:
    """Stop what still runs."""
    for number, patience in ((signal.SIGTERM, POLITE), (signal.SIGKILL, 5.0)):
        running = [p for p in processes if p.poll() is None]
        for p in running:
            p.stopped = True
            p.signal(signal.SIGCONT)
            p.signal(number)
        until = time.monotonic() + patience
        while any(p.poll() is None for p in running) and time.monotonic() < until:
            time.sleep(0.02)


def report(first: Process, processes: Sequence[Process]) -> str:
    """One page about a failed job: who failed first, what it said last, what became of the others."""
    rule = "-" * 78
    out = [
        rule,
        f"dualmx-launch: the job failed: {first.name} (process {first.pid}) {describe_exit(first.poll() or 0)}",
    ]
    out[-1] += f" after {first.ended or 0:.1f} s"
    for p in [first, *(p for p in processes if p is not first and p.poll() and not p.stopped)][:4]:
        out.append(f"last lines of {p.name}" + ("" if p is first else f", which {describe_exit(p.poll() or 0)}") + ":")
        out += [f"    {line[:200]}" for line in p.lines] or ["    (it wrote nothing)"]
    others = [p for p in processes if p is not first]
    words = [f"{p.name} " + ("was stopped" if p.stopped else describe_exit(p.poll() or 0)) for p in others]
    out += ["the others: " + ", ".join(words[:20]) + (", …" if len(words) > 20 else ""), rule]
    return "\n".join(out)


__all__ = ["Plan", "report", "run"]
