"""Run as a script by the launcher; makes sure that no process outlives it, even if it is killed outright.

guard.py run PARENT COMMAND...   become COMMAND, to be killed when the process PARENT ends
guard.py keep                    read "+GROUP" and "-GROUP" lines; at their end kill the process groups that are left
"""

import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def run(parent: int, command: list[str]) -> None:
    """Become `command`."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    except (ImportError, OSError, AttributeError):
        pass  # no Linux: the keeper alone has to do
    if os.getppid() != parent:
        sys.exit(1)
    try:
        os.execvp(command[0], command)
    except OSError as e:
        sys.exit(f"cannot run {command[0]!r}: {e.strerror}")


def keep() -> None:
    """Outlive the launcher, and kill what it left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    for group in groups:
        try:
            os.killpg(group, signal.SIGKILL)
        except OSError:
            pass


if __name__ == "__main__":
    if sys.argv[1] == "keep":
        keep()
    else:
        run(int(sys.argv[2]), sys.argv[3:])
