"""A worker that pushes and pulls for ever, or until a peer is gone: prints each round and how long an error took."""

from __future__ import annotations

import os
import sys
import time

import dualmx as mx

kind, folder = sys.argv[1:3]
kv = mx.kv.create(kind)
pushed = {"w": mx.nd.ones((1000, 1))}
if kind == "dist_mixed":
    kv.expect_rows("table")
    pushed["table"] = mx.nd.sparse.row_sparse_array((mx.nd.ones((3, 1)), [1, 5, 900]), shape=(1000, 1))
keys, values = list(pushed), list(pushed.values())
out = [mx.nd.zeros((1000, 1)) for _ in keys]
kv.init(keys, out)
if "async" in kind or "ssp" in kind:
    kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.001))
print("pid", os.getpid(), flush=True)
for turn in range(1, 10_000):
    try:
        kv.push(keys, values)
        kv.pull(keys, out=out)
    except mx.MXNetError as e:
        at = time.time()
        while kv.num_dead_node() == 0 and time.time() < at + 50:  # the scheduler tells it apart from the server's error
            time.sleep(0.01)
        print(f"failed at {at:.3f}: {e}; dead: {kv.num_dead_node()}", flush=True)
        sys.exit(3)
    with open(os.path.join(folder, f"{kv.rank}.round"), "w") as f:
        f.write(str(turn))
    time.sleep(0.01)
    if os.path.exists(os.path.join(folder, "stop")):
        break
