"""Record which hooks MXNet 1.9.1 calls in the cases of `hooks_*_cases.py`, into `hooks.json`.

Run with a Python that has MXNet: `python tests/goldens/record_hooks.py` from the repository root.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

import mxnet as mx  # pyright: ignore[reportMissingImports]

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from hooks_spy import pack  # noqa: E402

AREAS = ("optimizer", "gluon", "module", "custom")


def main() -> None:
    """Record everything."""
    found = {}
    for area in AREAS:
        cases = importlib.import_module(f"hooks_{area}_cases").cases()
        runs = {name: run(mx).calls for name, run in cases}
        found[area] = pack(runs)
        print(f"{area}: {len(runs)} runs, {sum(map(len, runs.values()))} calls")
    with open(os.path.join(HERE, "hooks.json"), "w", encoding="utf-8") as f:
        json.dump(found, f, indent=0)
        f.write("\n")


if __name__ == "__main__":
    main()
