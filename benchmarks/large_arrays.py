"""Large arrays that are drawn or trained on for the first time, and a loop over single elements.

python benchmarks/large_arrays.py dualmx
python benchmarks/large_arrays.py mxnet       # by an interpreter that has it

Prints as JSON, for each case, seconds of CPU time and how many times its size the process grew.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

SHAPE = (1_000_000, 64)  # 244 MiB of float32
CELLS = 20


def drawn(name: str) -> Callable[[Any], None]:
    """A case that draws one large array."""
    return lambda mx: getattr(mx.nd.random, name)(shape=SHAPE).wait_to_read()


def initialized(mx: Any) -> None:
    """A table of embeddings, ready to be trained."""
    table = mx.gluon.nn.Embedding(*SHAPE, sparse_grad=True)
    table.initialize(mx.init.Normal())
    table.weight.data().wait_to_read()


def cells(mx: Any) -> None:
    """A table filled cell by cell from the cells before."""
    x = mx.nd.zeros((CELLS, CELLS))
    for i in range(CELLS):
        for j in range(1, CELLS):
            x[i, j] = x[i, j - 1] + 1
    x.wait_to_read()


CASES: dict[str, Callable[[Any], None]] = {
    "uniform": drawn("uniform"),
    "normal": drawn("normal"),
    "table": initialized,
    "cells": cells,
}


def largest() -> int:
    """The most memory that the process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def measure(library: str, case: str, answer: Any) -> None:
    """Send seconds and relative memory of one case, of which small arrays were made before."""
    if library == "mxnet":
        import mxnet as mx  # type: ignore[import-not-found]
    else:
        import dualmx as mx
    for draw in (mx.nd.random.uniform, mx.nd.random.normal):
        draw(shape=(2, 3)).wait_to_read()
    before, began = largest(), time.process_time()
    CASES[case](mx)
    seconds = time.process_time() - began
    answer.send([seconds, (largest() - before) / (4 * SHAPE[0] * SHAPE[1])])


def main(library: str) -> None:
    """Measure each case in a process of its own."""
    found, context = {}, multiprocessing.get_context("spawn")
    for case in CASES:
        here, there = context.Pipe()
        process = context.Process(target=measure, args=(library, case, there))
        process.start()
        found[case] = here.recv()
        process.join()
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
