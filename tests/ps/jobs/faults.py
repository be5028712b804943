"""A worker of a deterministic job: trains, goes on where its predecessor ended, and saves the result."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import dualmx as mx

FOLDER, ROUNDS = Path(sys.argv[1]), int(sys.argv[2])
KIND = sys.argv[3] if len(sys.argv) > 3 else "dist_sync"
LARGE = KIND.endswith(" large")
KIND = KIND.removesuffix(" large")
shapes: dict[str, tuple[int, ...]] = {"w": (1200, 1024) if LARGE else (40, 30), "b": (7,)}
kv = mx.kv.create(KIND)
keys = list(shapes)
if KIND == "dist_mixed":
    kv.expect_rows("w")
kv.init(keys, [mx.nd.ones(s) for s in shapes.values()])
kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.01, momentum=0.9))
out = [mx.nd.zeros(s) for s in shapes.values()]
for turn in range(kv.completed_rounds, ROUNDS):
    kv.pull(keys, out=out) if KIND == "dist_sync" else kv.pull_changed(keys, out)
    noise = np.random.default_rng([kv.rank, turn])
    every = sum(float(np.abs(o.asnumpy()).sum()) for o in out)
    every /= 1000 if LARGE else 1
    grads = [o * 0.1 + mx.nd.array(noise.standard_normal(o.shape) * every * 1e-3) for o in out]
    if KIND == "dist_mixed":
        ids = np.unique(noise.integers(0, 40, 6))
        grads[0] = mx.nd.sparse.row_sparse_array((grads[0].asnumpy()[ids], ids), shape=(40, 30))
    kv.push(keys, grads)
    (FOLDER / f"{kv.rank}.round").write_text(str(turn + 1))
    time.sleep(0.005)
    while (FOLDER / "limit").exists() and turn + 1 >= int((FOLDER / "limit").read_text() or 0):
        time.sleep(0.01)
kv.pull(keys, out=out)
np.savez(FOLDER / f"{kv.rank}.npz", *(o.asnumpy() for o in out))
print("done, back:", kv.is_recovery, flush=True)
