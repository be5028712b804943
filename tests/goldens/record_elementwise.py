"""Record outputs and gradients of the cases in `elementwise_cases.py` from MXNet 1.9.1 into `elementwise.npz`.

The file holds one float32 vector of all values and the list of `(case, what, shape, length)` as JSON, because many
small arrays would cost more in headers than in values. Run with a Python that has MXNet, from the repository root:
`python tests/goldens/record_elementwise.py`.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import mxnet as mx  # pyright: ignore[reportMissingImports]
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from elementwise_cases import CASES, Case  # noqa: E402


def function(name: str) -> Any:
    """MXNet's imperative function of an operator."""
    if name.startswith("_contrib_"):
        return getattr(mx.nd.contrib, name[len("_contrib_") :])
    if name == "_np_cumsum":
        return mx.nd.cumsum
    return getattr(mx.nd._internal if name.startswith("_") else mx.nd, name)


def record(case: Case) -> dict[str, np.ndarray]:
    """Run one case forward, and backward from its first output where MXNet can."""
    arrays = [mx.nd.array(x) for x in case.arrays()]
    for x in arrays:
        x.attach_grad()
    with mx.autograd.record():
        outs = function(case.op)(*arrays, **case.params)
    outs = outs if isinstance(outs, list) else [outs]
    found = {f"out{i}": o.asnumpy() for i, o in enumerate(outs)}
    heads = [mx.nd.array(case.head(o.shape, i), dtype=o.dtype) for i, o in enumerate(outs)]
    try:
        mx.autograd.backward(outs, heads)
    except mx.MXNetError as e:
        assert "FGradient" in str(e) or "outside" in str(e), (case.name, e)
        return found
    found.update({f"grad{i}": x.grad.asnumpy() for i, x in enumerate(arrays)})
    return found


def main() -> None:
    """Record every case."""
    index, values = [], []
    for case in CASES:
        if case.recorded:
            for what, value in record(case).items():
                index.append((case.name, what, value.shape, value.size))
                values.append(value.astype(np.float32).ravel())
    assert len({(name, what) for name, what, *_ in index}) == len(index), "two cases have one name"
    text = np.frombuffer(json.dumps(index).encode(), np.uint8)
    np.savez_compressed(os.path.join(HERE, "elementwise.npz"), index=text, values=np.concatenate(values))
    print(len(CASES), "cases", len(index), "arrays")


if __name__ == "__main__":
    main()
