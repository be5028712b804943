"""Record the cases of `gluon_cases.py` from MXNet 1.9.1: arrays into `gluon.npz`, names into `gluon.json`.

Run with a Python that has MXNet: `python tests/goldens/record_gluon.py` from the repository root.
"""

from __future__ import annotations

import json
import os
import sys

import mxnet as mx  # pyright: ignore[reportMissingImports]
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from gluon_cases import LAYERS, LOSSES, naming, run_layer, run_loss  # noqa: E402


def main() -> None:
    """Record every case."""
    arrays: dict[str, np.ndarray] = {}
    facts: dict[str, object] = {"naming": naming(mx)}
    for table, run in ((LAYERS, run_layer), (LOSSES, run_loss)):
        for name in table:
            found, about = run(mx, name)
            arrays.update({f"{name}|{k}": v for k, v in found.items()})
            facts[name] = about
    np.savez_compressed(os.path.join(HERE, "gluon.npz"), **arrays)
    with open(os.path.join(HERE, "gluon.json"), "w") as f:
        json.dump(facts, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
