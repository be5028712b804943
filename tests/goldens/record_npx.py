"""Record the cases of `npx_cases.py` from MXNet 1.9.1 into `npx.npz`.

Run with a Python that has MXNet: `python tests/goldens/record_npx.py` from the repository root.
"""

from __future__ import annotations

import os
import sys

import mxnet as mx  # pyright: ignore[reportMissingImports]
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import npx_cases  # noqa: E402


def main() -> None:
    """Record every case."""
    mx.npx.set_np()
    arrays = {f"{name}|{key}": a for name in npx_cases.CASES for key, a in npx_cases.run(mx, name).items()}
    np.savez_compressed(os.path.join(HERE, "npx.npz"), **arrays)


if __name__ == "__main__":
    main()
