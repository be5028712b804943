"""A worker that trains 8 rounds and saves a snapshot after 4, or goes on from it; prints the hash of its weights."""

from __future__ import annotations

import hashlib
import sys

import dualmx as mx

FILE, WHAT = sys.argv[1:3]
kv = mx.kv.create("dist_sync")
shapes = {"w": (40, 30), "table": (50, 4), "b": (7,)}
keys = list(shapes)
if WHAT == "go on":
    position = kv.restore_snapshot(FILE)
    assert position == {"batch": 4} and kv.completed_rounds == 4, (position, kv.completed_rounds)
else:
    mx.random.seed(100 + kv.rank)
    kv.init(keys, [mx.nd.ones(s) if k != "table" else mx.nd.ones(s).tostype("row_sparse") for k, s in shapes.items()])
    kv.set_optimizer(mx.optimizer.Adam(learning_rate=0.01, wd=0.1))
out = [mx.nd.zeros(s) for s in shapes.values()]
for turn in range(kv.completed_rounds, 8):
    kv.pull(keys, out=out)
    grads = [o * 0.1 + mx.nd.random.normal(shape=o.shape) for o in out]
    grads[1] = mx.nd.sparse.retain(grads[1].tostype("row_sparse"), mx.nd.array([turn, 40 - turn, 45]))
    kv.push(keys, grads)
    if turn == 3 and WHAT != "go on":
        kv.save_snapshot(FILE, {"batch": turn + 1})
kv.pull(keys, out=out)
print("weights", hashlib.sha256(b"".join(o.asnumpy().tobytes() for o in out)).hexdigest()[:24], flush=True)
