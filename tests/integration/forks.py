"""Runs Python code in forks of a process that has imported dualmx, each of which begins as a new process does.

Reads a JSON string of code from every line of its input; answers with the exit status and what the code has printed.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import tempfile

import dualmx  # noqa: F401

SECONDS = 240


def _fork_for_each_line() -> str:
    """Answer until there is no input any more; returns in the forked processes only, with the code to run."""
    for line in sys.stdin:
        with tempfile.TemporaryFile() as said:
            child = os.fork()
            if child == 0:
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.dup2(said.fileno(), 1)
                os.dup2(said.fileno(), 2)
                signal.alarm(SECONDS)  # ends it
                return json.loads(line)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            said.seek(0)
            print(json.dumps([status, said.read().decode(errors="replace")]), flush=True)
    sys.exit()


if __name__ == "__main__":
    gc.freeze()
    code = _fork_for_each_line()
    exec(compile(code, "<page>", "exec"), {"__name__": "__main__"})
