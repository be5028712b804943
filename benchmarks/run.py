"""Measure, print the table, and refresh it inside a Markdown page.

    python -m benchmarks.run --out docs/performance.md --oracle PYTHON_WITH_MXNET --torch PYTHON_WITH_TORCH --data MNIST
    python -m benchmarks.run --only recording,eager

Rows that were not measured this time keep their place: `--json` names the file in which earlier rows are kept.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import sys
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from .harness import Failed, Row, table
from .measures import MEASURES, Options

BETWEEN = re.compile(r"(<!-- measured:begin -->\n).*?(<!-- measured:end -->)", re.S)


def machine() -> str:
    """One line about where the figures were taken."""
    model = platform.processor()
    if Path("/proc/cpuinfo").exists():
        names = re.findall(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
        model = names[0] if names else model
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}, JAX {version('jax')}"


def parse() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(MEASURES), help=f"comma-separated: {', '.join(MEASURES)}")
    parser.add_argument("--networks", default="mlp,lenet,resnet18")
    parser.add_argument("--oracle", default="", help="interpreter with MXNet 1.9.1")
    parser.add_argument("--torch", default="", help="interpreter with PyTorch")
    parser.add_argument("--data", default="", help="folder with MNIST's t10k files")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=1.5, help="length of one turn")
    parser.add_argument("--json", default="benchmarks.json", help="rows are merged into this file")
    parser.add_argument("--out", default="", help="Markdown page whose marked part is replaced")
    return parser.parse_args()


def main() -> None:
    """Run the chosen measures."""
    args = parse()
    networks = tuple(args.networks.split(","))
    options = Options(args.oracle, args.torch, args.rounds, args.seconds, networks, args.data)
    store = Path(args.json)
    kept: dict[str, list[dict]] = json.loads(store.read_text()) if store.exists() else {}
    for name in args.only.split(","):
        print(f"--- {name}", file=sys.stderr, flush=True)
        try:
            rows = MEASURES[name](options)
        except Failed as e:
            print("FAILED", e, file=sys.stderr, flush=True)
            continue
        print(table(rows), flush=True)
        measured = {r.measure: asdict(r) for r in rows}
        kept[name] = list({**{r["measure"]: r for r in kept.get(name, [])}, **measured}.values())
        store.write_text(json.dumps(kept, indent=1, ensure_ascii=False))
    if args.out:
        rows = [Row(**r) for name in MEASURES for r in kept.get(name, [])]
        command = "python -m benchmarks.run " + " ".join(
            f"{flag} {value}"
            for flag, value in (
                ("--out", args.out),
                ("--oracle", args.oracle and "PYTHON"),
                ("--torch", args.torch and "PYTHON"),
                ("--data", args.data and "MNIST"),
            )
            if value
        )
        # The measuring processes themselves make a load of about two.
        load = f"load average {os.getloadavg()[2]:.1f} over the last 15 minutes"
        text = f"{machine()}, {datetime.date.today()}, {load}. Made by `{command}`.\n\n{table(rows)}\n"
        page = Path(args.out)
        page.write_text(BETWEEN.sub(lambda m: m.group(1) + text + m.group(2), page.read_text()))


if __name__ == "__main__":
    main()
