"""`python -m tests.ps.chaos --seeds 0:500 --modes all` runs jobs with faults, and prints a verdict each."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from .cluster import Cluster, Result
from .plan import MODES, plan_of
from .zygote import Zygote


def table(results: dict[str, list[Result]]) -> str:
    """How often which verdict was given in each mode, and how long the runs took."""
    verdicts = ("equal", "named", "late", "unequal", "failed", "unnamed", "hung")
    rows = ["| mode | seeds | faults | " + " | ".join(verdicts) + " | median s | longest s |"]
    rows.append("|---" * (len(verdicts) + 5) + "|")
    for mode, runs in [*results.items(), ("all", [r for one in results.values() for r in one])]:
        counts = " | ".join(str(sum(r.verdict == v for r in runs)) for v in verdicts)
        hits = sum(r.hits for r in runs)
        times = sorted(r.seconds for r in runs)
        rows.append(f"| {mode} | {len(runs)} | {hits} | {counts} | {times[len(times) // 2]:.1f} | {times[-1]:.1f} |")
    return "\n".join(rows)


def main() -> int:
    """Run what the command line asks for; 1 if a promise was not kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.ps.chaos", description=__doc__)
    parser.add_argument("--seeds", default="0:40", help="FIRST:END, or one seed; each belongs to a mode, in turn")
    parser.add_argument("--modes", default="all", help=f"some of {','.join(MODES)}")
    parser.add_argument("--folder", default="", help="keep the files of the runs here")
    parser.add_argument("--patch", action="append", default=[], help="a change of the code, see patches.py")
    parser.add_argument("--until", type=float, default=1e9, help="begin no run after so many seconds")
    parser.add_argument("--show", action="store_true", help="show what is planned, too")
    options = parser.parse_args()
    modes = list(MODES) if options.modes == "all" else options.modes.split(",")
    first, _, end = options.seeds.partition(":")
    seeds = range(int(first), int(end) if end else int(first) + 1)
    results: dict[str, list[Result]] = defaultdict(list)
    began = time.monotonic()
    zygote = Zygote()
    try:
        with tempfile.TemporaryDirectory(prefix="dualmx-chaos-") as scratch:
            for seed in seeds:
                if time.monotonic() - began > options.until:
                    print(f"stopped before seed {seed}", flush=True)
                    break
                plan = plan_of(seed, modes[seed % len(modes)])
                folder = Path(options.folder or scratch) / f"{plan.mode}-{seed}"
                result = Cluster(plan, folder, zygote, tuple(options.patch)).run()
                results[plan.mode].append(result)
                line = "" if result.good else f"  {result.text}\n    happened: {'; '.join(result.happened)}"
                line += f"\n    planned: {plan}" if options.show or not result.good else ""
                head = f"seed {seed:4} {plan.mode:10} {result.verdict:8} {result.seconds:5.1f} s {result.hits} faults"
                print(head + line, flush=True)
    finally:
        zygote.close()
    print(table(dict(sorted(results.items()))))
    return int(not all(r.good for runs in results.values() for r in runs))


if __name__ == "__main__":
    sys.exit(main())
