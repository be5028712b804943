"""Record the outputs and gradients of the cases in `edge_cases.py` from MXNet 1.9.1 into `edge.npz`.

Run with a Python that has MXNet: `python tests/goldens/record_edge.py` from the repository root.
"""

from __future__ import annotations

import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(os.path.dirname(HERE)))

from tests.goldens.edge_cases import GROUPS  # noqa: E402
from tests.goldens.record_nn import record  # noqa: E402


def main() -> None:
    """Record every case."""
    store: dict[str, np.ndarray] = {}
    for group, cases in GROUPS.items():
        for case in cases:
            new = record(case)
            assert not new.keys() & store.keys(), case.name
            store.update(new)
        print(group, len(cases))
    np.savez_compressed(os.path.join(HERE, "edge.npz"), **store)


if __name__ == "__main__":
    main()
