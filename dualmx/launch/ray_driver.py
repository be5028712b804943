"""Script run by the launcher: starts agents as Ray tasks and forwards their output."""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any


def lines_of(command: list[str], text: str) -> Iterator[bytes]:
    """Run `command` with `text` on its stdin, which stays open; yields the lines it writes."""
    import subprocess

    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert child.stdin is not None and child.stdout is not None
    child.stdin.write(text.encode() + b"\n")
    child.stdin.flush()
    for line in child.stdout:  # noqa: UP028 - Ray sends into the generator, a file takes nothing
        yield line
    child.wait()


def main() -> int:
    """Start what stdin describes, and end with it."""
    ray: Any = importlib.import_module("ray")
    job = json.loads(sys.stdin.readline())
    ray.init(address=os.environ.get("RAY_ADDRESS", "auto"), log_to_driver=False, configure_logging=False)
    cpus = ray.cluster_resources().get("CPU", 0)
    wanted = sum(task["cpus"] for task in job["tasks"])
    if wanted > cpus:
        sys.exit(f"the Ray cluster has {cpus:g} CPUs, of which each worker takes one: {wanted} are wanted")
    running = []
    for task in job["tasks"]:
        options = {"num_cpus": task["cpus"], "num_returns": "streaming", "max_retries": 0}
        where = {"resources": {f"node:{task['node']}": 0.001}} if task["node"] else {"scheduling_strategy": "SPREAD"}
        running.append(ray.remote(lines_of).options(**options, **where).remote(job["agent"], task["text"]))

    broken: list[str] = []

    def copy(lines: Any) -> None:
        try:
            for line in lines:
                os.write(1, ray.get(line))
        except ray.exceptions.RayError as e:
            broken.append(str(e))

    def listen() -> None:
        sys.stdin.read()
        os._exit(1)  # Ray ends the tasks of a driver that is gone

    threading.Thread(target=listen, daemon=True).start()
    threads = [threading.Thread(target=copy, args=(lines,), daemon=True) for lines in running]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if broken:
        print(broken[0], file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)
