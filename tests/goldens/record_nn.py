"""Record the outputs, gradients and next states of the cases in `nn_cases.py` from MXNet 1.9.1 into `nn.npz`.

Run with a Python that has MXNet: `python tests/goldens/record_nn.py` from the repository root.
"""

from __future__ import annotations

import os
import sys

import mxnet as mx  # pyright: ignore[reportMissingImports]
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from nn_cases import GROUPS, Case  # noqa: E402


def function(name: str):
    """MXNet's imperative function of an operator."""
    for room in ("contrib", "image"):
        if name.startswith(f"_{room}_"):
            return getattr(getattr(mx.nd, room), name[len(room) + 2 :])
    return getattr(mx.nd._internal if name.startswith("_") else mx.nd, name)


def record(case: Case) -> dict[str, np.ndarray]:
    """Run one case forward and backward."""
    arrays = {k: mx.nd.array(v, dtype=v.dtype) for k, v in case.arrays().items()}
    for name, array in arrays.items():
        if name not in case.still:
            array.attach_grad()
    differentiable = any(name not in case.still for name in arrays)
    with mx.autograd.record(train_mode=case.train) if differentiable else mx.autograd.pause():
        outs = function(case.op)(*arrays.values(), **case.params)
    outs = outs if isinstance(outs, list) else [outs]
    found = {f"out{i}": o.asnumpy() for i, o in enumerate(outs)}
    if not differentiable:
        return {f"{case.name}|{k}": v for k, v in found.items()}
    outs[0].backward(mx.nd.array(case.head(outs[0].shape)), train_mode=case.train)
    for name, array in arrays.items():
        if name in case.still and name.startswith("moving"):
            found[f"next:{name}"] = array.asnumpy()
        elif name not in case.still:
            found[f"grad:{name}"] = array.grad.asnumpy()
    return {f"{case.name}|{k}": v for k, v in found.items()}


def main() -> None:
    """Record every case."""
    store: dict[str, np.ndarray] = {}
    for group, cases in GROUPS.items():
        for case in cases:
            new = record(case)
            assert not new.keys() & store.keys(), case.name
            store.update(new)
        print(group, len(cases))
    np.savez_compressed(os.path.join(HERE, "nn.npz"), **store)


if __name__ == "__main__":
    main()
