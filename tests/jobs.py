"""Processes that tests start: jobs of the launcher, processes side by side, single ones.

They hear nothing of a job that the tests themselves may run in. Each starts a group of processes, which is ended with
it. What they say is printed: pytest shows it for tests that fail.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from dualmx.core.net import free_port

ROOT = Path(__file__).parents[1]
HOST = "127.0.0.1"
PYTHON = sys.executable
LAUNCH = (PYTHON, "-m", "dualmx.launch")
OUTER_JOB = ("DMLC_", "JAX_", "OMPI_", "PMI", "SLURM_", "MASTER_", "XLA_FLAGS", "RANK", "WORLD_SIZE")  # of another job
ENV = {k: v for k, v in os.environ.items() if not k.startswith(OUTER_JOB)}
ENV.pop("PYTHONDONTWRITEBYTECODE", None)  # or every process of a fresh clone compiles all modules of dualmx
ENV |= {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}

Env = Mapping[str, str | None]
Process = subprocess.Popen[str]
Done = subprocess.CompletedProcess[str]


def free_address() -> str:
    """An address at which nobody listens."""
    return f"{HOST}:{free_port(HOST)}"


def launcher(workers: int, servers: int = 0, *options: str) -> list[str]:
    """The command of a launcher, which that of the job's processes follows."""
    return [*LAUNCH, "-n", str(workers), "-s", str(servers), "--launcher", "local", *options]


def start(*command: object, env: Env | None = None, cwd: Path = ROOT, **pipes: Any) -> Process:
    """Start a process with `ENV` changed by `env`, where None removes a variable; to be ended by `end`.

    Both of its outputs are one pipe, if `pipes` do not say otherwise as those of `subprocess.Popen` do.
    """
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **pipes}
    changed = {k: v for k, v in {**ENV, **(env or {})}.items() if v is not None}
    return subprocess.Popen(
        list(map(str, command)), env=changed, cwd=cwd, text=True, errors="replace", start_new_session=True, **pipes
    )


def _kill(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def end(*processes: Process) -> None:
    """End processes and those that they have started."""
    for process in processes:
        _kill(process)
    for process in processes:
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


@contextlib.contextmanager
def running(*command: object, env: Env | None = None, cwd: Path = ROOT, **pipes: Any) -> Iterator[Process]:
    """A process that is ended at the end of the block, as `start` starts it."""
    process = start(*command, env=env, cwd=cwd, **pipes)
    try:
        yield process
    finally:
        end(process)


def finish(process: Process, seconds: float = 60.0, given: str | None = None) -> tuple[str, str]:
    """Wait for the end of a process; returns its output and its error output, if that is a pipe of its own."""
    late = False
    try:
        said = process.communicate(given, timeout=seconds)
    except subprocess.TimeoutExpired:
        late = True
        _kill(process)
        said = process.communicate(timeout=30)
    out, err = (text or "" for text in said)
    print(f"$ {shlex.join(map(str, process.args))}\n{out}{err}[{process.returncode}]")  # type: ignore[arg-type]
    assert not late, f"not over after {seconds} s"
    return out, err


def run(
    *command: object,
    status: int | None = 0,
    seconds: float = 240.0,
    env: Env | None = None,
    cwd: Path = ROOT,
    given: str | None = None,
) -> Done:
    """Run a process to its end, which is with this status, or with any if that is None."""
    stdin = {} if given is None else {"stdin": subprocess.PIPE}
    with running(*command, env=env, cwd=cwd, stderr=subprocess.PIPE, **stdin) as process:
        out, err = finish(process, seconds, given)
    assert status in (None, process.returncode), f"ended with status {process.returncode}, expected {status}"
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def run_together(
    commands: Sequence[Sequence[object]], envs: Sequence[Env] | None = None, seconds: float = 150.0
) -> list[str]:
    """Run processes at once to their good ends; returns what each said on both of its outputs."""
    processes: list[Process] = []
    try:
        for command, env in zip(commands, envs or [{}] * len(commands), strict=True):
            processes.append(start(*command, env=env))
        with ThreadPoolExecutor(len(processes)) as pool:  # a full pipe would stop the others
            said = [out for out, _ in pool.map(lambda p: finish(p, seconds), processes)]
    finally:
        end(*processes)
    assert not any(p.returncode for p in processes), [p.returncode for p in processes]
    return said


def wait_for(
    condition: Callable[[], object], seconds: float = 60.0, what: Callable[[], object] = lambda: "in vain"
) -> None:
    """Wait until a condition holds; says `what` where it does not in time."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, what()
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """True for a process that has not ended, waited for or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def environment(pid: int) -> dict[str, str]:
    """The variables that a process was started with."""
    lines = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return dict(line.split("=", 1) for line in lines if "=" in line)


def members(launcher: int) -> dict[str, int]:
    """Ids of the processes that a launcher has started, by role and rank."""
    found = {}
    for task in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((task / "stat").read_text().rpartition(")")[2].split()[1])
            env = environment(int(task.name)) if parent == launcher else {}
        except (OSError, ValueError):
            continue
        if "DMLC_ROLE" in env:
            found[f"{env['DMLC_ROLE']} {env['DMLC_TASK_ID']}"] = int(task.name)
    return found
