"""Record the runs of `metric_cases.py` from MXNet 1.9.1 into `metric.json`.

Run with a Python that has MXNet: `python tests/goldens/record_metric.py` from the repository root.
"""

from __future__ import annotations

import json
import os
import sys

import mxnet as mx  # pyright: ignore[reportMissingImports]

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from metric_cases import CASES, run  # noqa: E402


def main() -> None:
    """Record everything."""
    found = {case.name: run(mx, case) for case in CASES}
    with open(os.path.join(HERE, "metric.json"), "w", encoding="utf-8") as f:
        json.dump(found, f, indent=0, default=float)
        f.write("\n")
    print(f"{len(found)} runs")


if __name__ == "__main__":
    main()
