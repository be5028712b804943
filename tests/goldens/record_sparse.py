"""Record storage types and values of MXNet 1.9.1: `python record_sparse.py`, run by a Python that has it.

Writes sparse.json (storage types and shapes of results, "error" where MXNet refuses) and sparse.npz (their values, and
then weights after updates, one behind the other).
"""

from __future__ import annotations

import json
import os
from pathlib import Path

os.environ["MXNET_STORAGE_FALLBACK_LOG_VERBOSE"] = "0"

import mxnet as mx
import numpy as np
from sparse_cases import OPTIMIZERS, calls, updated

HERE = Path(__file__).parent

kinds: dict[str, list] = {}
values: list[np.ndarray] = []
for name, call in calls(mx):
    try:
        found = call()
        values.append(found.asnumpy().ravel())
        kinds[name] = [found.stype, *found.shape]
    except mx.base.MXNetError:
        kinds[name] = ["error"]
for key in OPTIMIZERS:
    values.append(updated(mx, key).ravel())
(HERE / "sparse.json").write_text(json.dumps(kinds, separators=(",", ":")).replace("],", "],\n") + "\n")
np.savez_compressed(HERE / "sparse.npz", np.concatenate(values))
