"""What MXNet gives for the calls that `export_operators.py` wrote: one of every operator, in every dtype.

A call that MXNet refuses is recorded as such, and so is one that ends its process. Random operators are recorded by
dtype and shape.
"""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

import numpy as np

from tests.goldens import calls


def run(name: str, train: bool, random: bool, params: dict[str, Any], arrays: list[np.ndarray]) -> list[Any] | str:
    """The outputs of one call, drawn ones as dtype and shape, or why there are none."""
    import mxnet as mx  # pyright: ignore[reportMissingImports]

    try:
        called = calls.function(mx, name)
    except AttributeError:
        return "absent"
    try:
        given = [mx.nd.array(a, dtype=a.dtype) for a in arrays]
        if "multi" in name and (count := params.get("num_weights", params.get("num_tensors"))):
            # Updates of several weights need arrays to write to.
            params = {**params, "out": [w.copy() for w in given[:: len(given) // count][:count]]}
        with mx.autograd.train_mode() if train else mx.autograd.predict_mode():
            outs = called(*given, **params)
        found = [o.asnumpy() for o in (outs if isinstance(outs, (list, tuple)) else [outs])]
    except Exception:
        return "refused"
    return [[o.dtype.name, o.shape] if random else o for o in found]


def tuples(value: Any) -> Any:
    """JSON's lists as tuples."""
    return tuple(tuples(v) for v in value) if isinstance(value, list) else value


def record(mx: Any, path: str) -> Any:
    """Every call of the file."""
    index: dict[str, dict[str, Any]] = {}
    spawn = get_context("spawn")
    with np.load(path) as store:
        rows = json.loads(store["calls"].tobytes())
        arrays = [[store[f"{k}|{i}"] for i in range(row[5])] for k, row in enumerate(rows)]
    worker = ProcessPoolExecutor(1, mp_context=spawn)
    for (key, name, dtype, train, random, _, params), given in zip(rows, arrays, strict=True):
        job = worker.submit(run, name, train, random, {k: tuples(v) for k, v in params.items()}, given)
        try:
            found = job.result(60)
        except BrokenProcessPool:
            found, worker = "crashed", ProcessPoolExecutor(1, mp_context=spawn)
        index.setdefault(key, {})[dtype] = found
    worker.shutdown()
    return index
