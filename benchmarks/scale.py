"""How a scheduler and a server bear many workers, which are connections alone (see `light_peers`).

python -m benchmarks.scale [--workers 8,128,512,1000] [--straggler]

Prints, for each number of workers that start at once: seconds until all have joined and met the server, milliseconds
of a barrier, the server's processor time for a message of a round (push and pull of one key of 1 KiB, and of 64.1 KiB,
which is beyond what is served on the network thread), and seconds until all have left. With `--straggler`, 25 keys of
all workers but one wait for it for 25 s, and the longest time in which the server answered another request is printed.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

from .light_peers import LightJob

KEYS, SMALL, LARGE = 5, 256, 16_400
MESSAGES = 8000  # of which the processor time is measured, at least
WAIT = 25.0  # seconds that a straggler is late


def seconds(work: Callable[[], object]) -> float:
    """Wall time of a call."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def microseconds(job: LightJob, elements: int) -> tuple[float, int]:
    """The server's processor time for a message, and the number of rounds that were made."""
    job.round(1, KEYS, elements)
    used, rounds = job.processor_seconds("server 0"), math.ceil(MESSAGES / (KEYS * job.workers))
    for turn in range(2, 2 + rounds):
        job.round(turn, KEYS, elements)
    spent = job.processor_seconds("server 0") - used
    return spent / (rounds * KEYS * job.workers) * 1e6, rounds + 1


def straggle(job: LightJob, rounds: int) -> float:
    """The longest time in which the server answers while all workers but one wait for that one."""
    last, meta = job.workers - 1, {"op": "open", "store": 0, "sync": True, "slack": None}
    for turn in range(1, rounds + 1):  # of the keys that were not pushed yet
        asked = [one for rank in range(job.workers) for one in job.push(rank, turn, range(KEYS, 25), SMALL)]
        job.answers(asked)
    asked = [one for rank in range(last) for one in job.push(rank, rounds + 1, range(25), SMALL)]
    longest, until = 0.0, time.monotonic() + WAIT
    while time.monotonic() < until:
        longest = max(longest, seconds(lambda: job.answers([job.ask(job.links[last][1], meta)])))
        time.sleep(0.1)
    asked += job.push(last, rounds + 1, range(25), SMALL)
    job.answers(asked)
    return longest


def measure(workers: int, straggler: bool) -> list[float]:
    """The figures of one line."""
    row: list[float] = []
    for elements in (SMALL, LARGE):
        job = LightJob(workers)
        try:
            start = seconds(job.start)
            job.put(25 if straggler else KEYS, elements)
            if not row:
                row = [start, seconds(lambda job=job: job.barrier(1)) * 1e3]
            spent, rounds = microseconds(job, elements)
            row.append(spent)
            if elements == SMALL:
                late = straggle(job, rounds) if straggler else math.nan
            else:
                row += [seconds(job.leave), late]
        finally:
            job.close()
    return row


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--workers", default="8,128,512,1000")
    parser.add_argument("--straggler", action="store_true", help="measure with one that is late, too")
    options = parser.parse_args()
    names = ("workers", "start s", "barrier ms", "1 KiB us", "64 KiB us", "leave s", "late s")
    print(" ".join(f"{name:>10s}" for name in names))
    for workers in map(int, options.workers.split(",")):
        try:
            figures = [f"{figure:10.2f}" for figure in measure(workers, options.straggler)]
            print(f"{workers:10d}", *figures, flush=True)
        except Exception as e:
            print(f"{workers:10d} failed: {type(e).__name__}: {e}", flush=True)


if __name__ == "__main__":
    main()
