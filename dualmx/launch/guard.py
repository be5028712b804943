"""Script run by the launcher: no process outlives the launcher, even if the launcher is killed.

guard.py run SIGNAL PARENT COMMAND...  become COMMAND; the kernel sends SIGNAL when process PARENT ends
guard.py keep                          read "+GROUP" and "-GROUP" lines; at EOF stop the remaining process groups
guard.py agent stdin                   run the command that a JSON line on stdin describes, until stdin ends
guard.py agent rank                    the same with the description in DUALMX_LAUNCH, which lists all processes of
                                       an MPI or Slurm job; the rank chooses one

The agent runs on other hosts and needs nothing installed there. It writes frames, one a line: RS, process name, US,
kind, US, text. Kinds: s host and pid, o stdout line, e stderr line, x exit status (negative for a signal), p heartbeat.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

PR_SET_PDEATHSIG = 1
RANKS = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
TERM_SECONDS = 2.0
PING_SECONDS = 10.0


def die_with_parent(number: int) -> None:
    """Ask the system for a signal when the parent of this process ends."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)
    except (ImportError, OSError, AttributeError):
        pass  # no Linux: the keeper alone has to do


def run(number: int, parent: int, command: list[str]) -> None:
    """Become `command`."""
    die_with_parent(number)
    if os.getppid() != parent:
        sys.exit(1)
    try:
        os.execvp(command[0], command)
    except OSError as e:
        sys.exit(f"cannot run {command[0]!r}: {e.strerror}")


def stop(groups: set[int], timeout: float) -> None:
    """End process groups: politely, then not."""
    left = set(groups)
    for number, seconds in ((signal.SIGTERM, timeout), (signal.SIGKILL, 0.0)):
        for group in list(left):
            try:
                os.killpg(group, signal.SIGCONT)
                os.killpg(group, number)
            except OSError:
                left.discard(group)
        until = time.monotonic() + seconds
        while left and time.monotonic() < until:
            time.sleep(0.02)
            left = {g for g in left if exists(g)}


def exists(group: int) -> bool:
    """Whether a process of the group is left."""
    try:
        os.killpg(group, 0)
    except OSError:
        return False
    return True


def outlive_launcher(timeout: float = 1.0) -> None:
    """Outlive the launcher, and end what it left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    stop(groups, timeout)


def start_keeper() -> int:
    """Fork a process that keeps; returns the file on which it listens."""
    listens, tells = os.pipe()
    if os.fork():
        os.close(listens)
        os.set_inheritable(tells, False)
        return tells
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for source, target in ((listens, 0), (null, 1), (null, 2)):
        os.dup2(source, target)
    os.closerange(3, 256)
    sys.stdin = os.fdopen(0)
    outlive_launcher()
    os._exit(0)


def defaults() -> dict[str, str]:
    """Default environment of a process on this host: huge pages for the C library's allocations."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        known = name == "glibc" and tuple(int(x) for x in version.split(".")[:2]) >= (2, 35)
    except (AttributeError, ValueError, OSError):
        known = False
    return {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"} if known else {}


def rank_env(role: str, rank: int) -> dict[str, str]:
    """Return the variables that give a process of the job its rank."""
    env = {"DMLC_ROLE": role, "DMLC_TASK_ID": str(rank)}
    return env if role == "scheduler" else {**env, f"DMLC_{role.upper()}_ID": str(rank)}


def described(where: str) -> dict[str, Any]:
    """The description of the command to run: its name, environment, folder, program and arguments."""
    import json

    rank = 0
    if where == "stdin":
        tasks = json.loads(sys.stdin.readline())
    else:
        tasks = json.loads(os.environ.pop("DUALMX_LAUNCH"))
        rank = next((int(os.environ[name]) for name in RANKS if name in os.environ), -1)
    if not 0 <= rank < len(tasks["ranks"]):
        sys.exit(f"process {rank} of {len(tasks['ranks'])}: not started by mpirun or srun as the launcher asked")
    role, number = tasks["ranks"][rank]
    env = {**tasks["env"], **rank_env(role, number), **tasks["roles"].get(role, {})}
    return {**tasks, "name": f"{role} {number}", "env": env}


def agent(where: str) -> int:
    """Run a command for a launcher on another host; returns its exit status."""
    import socket
    import subprocess

    die_with_parent(signal.SIGTERM)
    task = described(where)
    say = frame_writer(task["name"])
    keeper = start_keeper()
    try:
        os.chdir(task["folder"])
        child = subprocess.Popen(
            task["command"], env={**defaults(), **os.environ, **task["env"]}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            preexec_fn=lambda: die_with_parent(signal.SIGKILL),
        )  # fmt: skip
    except OSError as e:
        say("e", f"cannot run {task['command'][0]!r} in {task['folder']!r}: {e.strerror}")
        say("x", "1")
        return 1
    group = child.pid
    os.write(keeper, b"+%d\n" % group)
    say("s", f"{socket.gethostname()} {group}")
    relay_output(child, say, where == "stdin")
    os.write(keeper, b"-%d\n" % group)
    if where == "rank":
        time.sleep(0.1)  # mpirun may tear a line that follows others closely
    say("x", str(child.returncode))
    if where == "rank":
        return 0  # else mpirun and srun would end the others, which may still have something to say
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def frame_writer(name: str) -> Callable[[str, str], None]:
    """Return a function that writes frames of a kind about the process `name` to the launcher."""

    def say(kind: str, text: str) -> None:
        frame = f"\x1e{name}\x1f{kind}\x1f{text}\n".encode(errors="replace")
        try:
            while frame:
                frame = frame[os.write(1, frame) :]
        except OSError:
            pass  # nobody listens any more

    return say


def relay_output(child: Any, say: Callable[[str, str], None], listens: bool) -> None:
    """Pass on what a command writes until it ends, or a signal, or the end of stdin if that is listened to, ends it.

    Nothing of its process group is left then.
    """
    import threading

    group = child.pid
    over: list[bool] = []  # a signal handler must not take locks, as an Event's would

    def copy(kind: str, source: Any) -> None:
        for line in source:
            say(kind, line.rstrip(b"\n").decode(errors="replace"))

    def listen() -> None:
        while os.read(0, 4096):
            pass
        over.append(True)

    def ping() -> None:
        while not over:  # a connection that broke unseen is noticed when something is sent
            time.sleep(PING_SECONDS)
            say("p", "")

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: over.append(True))
    readers = [threading.Thread(target=copy, args=a, daemon=True) for a in (("o", child.stdout), ("e", child.stderr))]
    talk = [threading.Thread(target=t, daemon=True) for t in ((listen, ping) if listens else ())]
    for thread in readers + talk:
        thread.start()
    while child.poll() is None and not over:
        time.sleep(0.02)
    stopped = child.poll() is None
    if stopped:
        stopping = threading.Thread(target=stop, args=({group}, TERM_SECONDS))
        stopping.start()
        child.wait()
        stopping.join()
    stop({group}, 0.0)  # what it left behind
    for thread in readers:
        thread.join(1.0)


if __name__ == "__main__":
    if sys.argv[1] == "keep":
        outlive_launcher()
    elif sys.argv[1] == "agent":
        status = agent(sys.argv[2])
        sys.stdout.flush()
        os._exit(status)
    else:
        run(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
