"""Cost of recording one operator and of flushing a known program, in this process: `python -m benchmarks.micro`."""

from __future__ import annotations

import json
import os
import statistics
import time
from typing import Any

import numpy as np

import dualmx as mx
from dualmx.compile.events import counters
from dualmx.ndarray import invoke
from dualmx.ndarray.recorder import engine
from dualmx.op.registry import get_op

CHAIN = 500


def fresh() -> Any:
    """A small array."""
    return mx.nd.array(np.ones((4, 4)))


def record(kind: str) -> float:
    """Microseconds to record one operator on a replayed trace, best of several chains."""
    a, b, c = fresh(), fresh(), fresh()
    call = get_op("FullyConnected").call(num_hidden=4)
    bias = mx.nd.ones((4,))
    times = []
    for _ in range(40):
        for array in (a, b, c, bias):
            array.wait_to_read()
        x = a
        start = time.perf_counter()
        if kind == "binary":
            for _ in range(CHAIN):
                x = x + b
        elif kind == "n-ary":
            inputs = [b, bias]
            for _ in range(CHAIN):
                x = invoke(call, [x, *inputs])[0]
        elif kind == "scalar":
            for _ in range(CHAIN):
                x = x * 2.0
        elif kind == "named":
            for _ in range(CHAIN):
                x = mx.nd.FullyConnected(x, b, bias, num_hidden=4)
        else:
            x = fresh()
            start = time.perf_counter()
            for _ in range(CHAIN):
                x += b
        times.append((time.perf_counter() - start) / CHAIN * 1e6)
        x.wait_to_read()
    return min(times)


def flush(nodes: int) -> float:
    """Microseconds from having recorded `nodes` operators on 11 buffers to the dispatch: least median of ten."""
    engine.flush_after = engine.max_unrecorded_ops = 5000  # the longest chain must stay one program
    a, others = fresh(), [fresh() for _ in range(10)]
    times = []
    for _ in range(60):
        recorded = counters.flushes
        x = a
        for i in range(nodes):
            x = x + others[i % 10]
        assert counters.flushes == recorded, "the chain was cut"
        before = counters.flushes
        start = time.perf_counter()
        mx.nd.flush()
        times.append(time.perf_counter() - start)
        assert counters.flushes == before + 1
        x.wait_to_read()
    return min(statistics.median(times[i : i + 10]) for i in range(10, len(times), 10)) * 1e6


def main() -> None:
    """Print all figures as JSON."""
    os.environ["DUALMX_TIER"] = "xla"
    figures = {f"record {kind}": record(kind) for kind in ("binary", "n-ary", "scalar", "named", "in-place")}
    figures |= {f"flush {n}": flush(n) for n in (50, 500, 3000)}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
