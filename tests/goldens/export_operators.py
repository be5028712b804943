"""Write the calls whose results `record.py` records: one of every operator, in every dtype.

Run with a Python that has dualmx, from the repository root: `python tests/goldens/export_operators.py calls.npz`.
"""

from __future__ import annotations

import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from tests.op.fronts import is_random  # noqa: E402
from tests.op.golden_replay import DTYPES, chosen_samples, inputs_in  # noqa: E402


def plain(value: object) -> object:
    """A parameter as JSON holds it."""
    if isinstance(value, np.generic):
        return value.item()
    return [plain(v) for v in value] if isinstance(value, tuple) else value


def main(path: str) -> None:
    """Write the inputs and parameters of every call."""
    arrays, calls = {}, []
    for sample in chosen_samples():
        for dtype in DTYPES:
            given = inputs_in(sample, dtype)
            if given is None:
                continue
            for i, a in enumerate(given):
                arrays[f"{len(calls)}|{i}"] = a
            params = {k: plain(v) for k, v in sample.params.items()}
            calls.append([str(sample), sample.op, dtype, sample.train, is_random(sample), len(given), params])
    np.savez_compressed(path, calls=np.frombuffer(json.dumps(calls).encode(), np.uint8), **arrays)
    print(len(calls), "calls")


if __name__ == "__main__":
    main(sys.argv[1])
