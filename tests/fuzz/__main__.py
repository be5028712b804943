"""`python -m tests.fuzz`: damaged inputs for readers, as many as are asked for, and a table of what became of them."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor

from .child import damaged_input
from .corpus import scratch
from .readers import READERS
from .run import HEAD, Outcome, run


def main() -> int:
    """Run the command line; returns 1 if a reader has a fault."""
    p = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    p.add_argument("--inputs", type=int, default=2000, help="inputs for each reader")
    p.add_argument("--first", type=int, default=0, help="number of the first one")
    p.add_argument("--reader", default="all", help=f"one or more with commas between, or all: {', '.join(READERS)}")
    p.add_argument("--seed", type=int, default=0, help="of the damage")
    p.add_argument("--processes", type=int, default=2)
    p.add_argument("--show", type=int, default=3, help="faults of each reader that are shown")
    p.add_argument("--save", type=int, metavar="NUMBER", help="write this input of the reader to standard output")
    o = p.parse_args()
    names = list(READERS) if o.reader == "all" else o.reader.split(",")
    if o.save is not None:
        import tempfile
        from pathlib import Path

        with tempfile.TemporaryDirectory(dir=scratch()) as folder:
            good = READERS[names[0]].corpus(Path(folder))
            sys.stdout.buffer.write(damaged_input(READERS[names[0]], good, o.seed, o.save))
        return 0
    print(HEAD, flush=True)

    def one(name: str) -> Outcome:
        found = run(name, o.first, o.first + o.inputs, o.seed)
        print(found.row(), flush=True)
        return found

    with ThreadPoolExecutor(o.processes) as pool:
        outcomes = list(pool.map(one, names))
    for outcome in outcomes:
        for number, kind, text in outcome.faults[: o.show]:
            print(f"\n{outcome.reader} {number} {kind}: {text}", file=sys.stderr)
    return int(any(outcome.faults for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
