"""Record the runs of `optimizer_cases.py` from MXNet 1.9.1 into `optimizer.npz`, and its state files as bytes there.

Run with a Python that has MXNet: `python tests/goldens/record_optimizer.py` from the repository root.
"""

from __future__ import annotations

import os
import sys

import mxnet as mx  # pyright: ignore[reportMissingImports]
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from optimizer_cases import CASES, STATE_FILES, run, trained_updater  # noqa: E402


def states() -> dict[str, np.ndarray]:
    """State files with the optimizer inside, as byte vectors."""
    found = {}
    for name, params in STATE_FILES.items():
        updater = trained_updater(mx, name, **params)
        if name == "sgd":
            updater.optimizer.lr_scheduler = mx.lr_scheduler.FactorScheduler(2, 0.5, base_lr=0.1)
        found[f"states:{name}"] = np.frombuffer(updater.get_states(dump_optimizer=True), np.uint8)
    return found


def main() -> None:
    """Record everything."""
    found = {case.name: run(mx, case) for case in CASES}
    np.savez_compressed(os.path.join(HERE, "optimizer.npz"), **found, **states())
    print(f"{len(found)} runs")


if __name__ == "__main__":
    main()
