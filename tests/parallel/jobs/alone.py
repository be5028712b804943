"""One of two processes without a launcher; the second one dies or stops, the first one must be told."""

from __future__ import annotations

import os
import signal
import sys
import time

import dualmx as mx

coordinator, rank, end = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
mx.parallel.init(coordinator, 2, rank)
for step in range(10**6):
    began = time.monotonic()
    try:
        total = mx.parallel.all_reduce(mx.nd.full((100,), float(step)))
    except mx.base.MXNetError as e:
        print(f"told after {time.monotonic() - began:.1f} s: {e}", flush=True)
        try:
            mx.parallel.all_reduce(mx.nd.ones((1,)))
        except mx.base.MXNetError as again:
            print(f"again: {again}", flush=True)
        os._exit(7)
    assert total.asnumpy()[0] == 2 * step
    if step == 50 and not end:
        break
    if rank == 1 and step == 50:
        os.kill(os.getpid(), end)
        signal.pause()
print("finished", flush=True)
