"""Record the runs of `module_cases.py` from MXNet 1.9.1 into `module.npz`.

Run with a Python that has MXNet: `python tests/goldens/record_module.py` from the repository root.
"""

from __future__ import annotations

import os
import sys

import mxnet as mx  # pyright: ignore[reportMissingImports]
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from module_cases import CASES  # noqa: E402


def main() -> None:
    """Record everything."""
    found = {f"{name}:{k}": v for name, run in CASES.items() for k, v in run(mx).items()}
    np.savez_compressed(os.path.join(HERE, "module.npz"), **found)
    print(f"{len(CASES)} runs")


if __name__ == "__main__":
    main()
