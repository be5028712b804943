"""One of several processes that exchange arrays until one of them is gone; argv: address, size, rank, who will go."""

from __future__ import annotations

import sys

import dualmx as mx

where, size, rank, who = sys.argv[1], *map(int, sys.argv[2:])
mx.parallel.init(where, size, rank)
for step in range(10**6):
    try:
        total = mx.parallel.all_reduce(mx.nd.full((100 if step % 2 else 100_000,), float(step)))
    except mx.base.MXNetError as e:
        print(f"told step {step}: {e}".splitlines()[0], flush=True)
        sys.exit(7)
    assert total.asnumpy()[0] == size * step
    if rank == who:
        print("step", step, flush=True)
