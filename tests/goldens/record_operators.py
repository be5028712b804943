"""Record what MXNet 1.9.1 gives for one call of every operator in every dtype, into `operators.npz`.

Run with a Python that has MXNet: `python tests/goldens/record_operators.py calls.npz`, on what `export_operators.py`
wrote. A call that MXNet refuses is recorded as such, and so is one that ends its process. Random operators are recorded
by dtype and shape.
"""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOMS = ("contrib", "image", "linalg", "random", "sparse")
Result = tuple[str, tuple[int, ...], bytes]


def function(name: str) -> Any:
    """MXNet's imperative function of an operator."""
    import mxnet as mx  # pyright: ignore[reportMissingImports]

    if hasattr(mx.nd._internal, name) and name.startswith("_"):
        return getattr(mx.nd._internal, name)
    for room in ROOMS:
        if name.startswith(f"_{room}_"):
            return getattr(getattr(mx.nd, room), name[len(room) + 2 :])
    return getattr(mx.nd.op, name)


def run(name: str, train: bool, random: bool, params: dict[str, Any], arrays: list[np.ndarray]) -> list[Result] | str:
    """The outputs of one call as dtype, shape and bytes, or why there are none."""
    import mxnet as mx  # pyright: ignore[reportMissingImports]

    try:
        called = function(name)
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
    return [(o.dtype.name, o.shape, b"" if random else np.ascontiguousarray(o).tobytes()) for o in found]


def tuples(value: Any) -> Any:
    """JSON's lists as tuples."""
    return tuple(tuples(v) for v in value) if isinstance(value, list) else value


def main(path: str) -> None:
    """Record every call."""
    index: dict[str, dict[str, Any]] = {}
    blob = bytearray()
    spawn = get_context("spawn")
    with np.load(path) as store:
        calls = json.loads(store["calls"].tobytes())
        arrays = [[store[f"{k}|{i}"] for i in range(call[5])] for k, call in enumerate(calls)]
    worker = ProcessPoolExecutor(1, mp_context=spawn)
    for (key, name, dtype, train, random, _, params), given in zip(calls, arrays, strict=True):
        job = worker.submit(run, name, train, random, {k: tuples(v) for k, v in params.items()}, given)
        try:
            found = job.result(60)
        except BrokenProcessPool:
            found, worker = "crashed", ProcessPoolExecutor(1, mp_context=spawn)
        if not isinstance(found, str):
            rows = []
            for kind, shape, data in found:
                rows.append([kind, list(shape), len(blob) if data else None])
                blob += data
            found = rows
        index.setdefault(key, {})[dtype] = found
    worker.shutdown()
    text = np.frombuffer(json.dumps(index, separators=(",", ":")).encode(), np.uint8)
    np.savez_compressed(os.path.join(HERE, "operators.npz"), index=text, blob=np.frombuffer(bytes(blob), np.uint8))
    print(len(calls), "calls", len(blob), "bytes")


if __name__ == "__main__":
    main(sys.argv[1])
