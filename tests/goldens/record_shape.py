"""Record outputs and gradients of the cases in `shape_cases.py` from MXNet 1.9.1 into `shape.npz`.

The file holds one float64 vector of all values and the list of `(case, what, dtype, shape, length)` as JSON. Calls that
must raise are checked to raise. Run with a Python that has MXNet, from the repository root:
`python tests/goldens/record_shape.py`.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from typing import Any

import mxnet as mx  # pyright: ignore[reportMissingImports]
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from shape_cases import CASES, WRONG, Case  # noqa: E402


def function(name: str) -> Any:
    """MXNet's imperative function of an operator."""
    for prefix, space in (("_contrib_", mx.nd.contrib), ("_linalg_", mx.nd.linalg), ("_", mx.nd._internal)):
        if name.startswith(prefix):
            return getattr(space, name[len(prefix) :] if len(prefix) > 1 else name)
    return getattr(mx.nd, name)


def record(case: Case) -> dict[str, np.ndarray]:
    """Run one case forward, and backward with respect to its smooth inputs."""
    arrays = [mx.nd.array(x, dtype=x.dtype) for x in case.arrays]
    for i in case.smooth:
        arrays[i].attach_grad()
    with mx.autograd.record():
        outs = function(case.op)(*arrays, **case.params)
    outs = outs if isinstance(outs, list) else [outs]
    found = {f"out{i}": o.asnumpy() for i, o in enumerate(outs)}
    if case.smooth:
        outs[0].backward(mx.nd.array(case.head(outs[0].shape)))
        found.update({f"grad{i}": arrays[i].grad.asnumpy() for i in case.smooth})
    return found


def main() -> None:
    """Record every case."""
    index, values = [], []
    for case in CASES:
        for what, value in record(case).items():
            index.append((case.name, what, value.dtype.name, value.shape, value.size))
            values.append(value.astype(np.float64).ravel())
    assert len({(name, what) for name, what, *_ in index}) == len(index), "two cases have one name"
    for case in WRONG:
        try:
            record(replace(case, smooth=()))
        except mx.MXNetError:
            continue
        raise AssertionError(f"MXNet accepts {case.name}")
    text = np.frombuffer(json.dumps(index).encode(), np.uint8)
    np.savez_compressed(os.path.join(HERE, "shape.npz"), index=text, values=np.concatenate(values))
    print(len(CASES), "cases,", len(WRONG), "errors")


if __name__ == "__main__":
    main()
