"""Recording of single calls of operators: outputs, gradients, new values of states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

ROOMS = ("contrib", "image", "linalg", "random", "sparse")


def function(mx: Any, name: str) -> Any:
    """MXNet's imperative function of an operator."""
    if name == "_np_cumsum":
        return mx.nd.cumsum
    if name.startswith("_") and hasattr(mx.nd._internal, name):
        return getattr(mx.nd._internal, name)
    for room in ROOMS:
        if name.startswith(f"_{room}_"):
            return getattr(getattr(mx.nd, room), name[len(room) + 2 :])
    return getattr(mx.nd, name)


def record(
    mx: Any,
    op: str,
    arrays: Sequence[np.ndarray],
    params: dict[str, Any],
    smooth: Sequence[int],
    head: Callable[..., np.ndarray],
    states: Sequence[int] = (),
    train: bool = True,
    every: bool = False,
) -> dict[str, np.ndarray]:
    """Run a call forward, and backward from its first output, or `every` one, to the inputs in `smooth`."""
    given = [mx.nd.array(a, dtype=a.dtype) for a in arrays]
    for i in smooth:
        given[i].attach_grad()
    with mx.autograd.record(train_mode=train) if smooth else mx.autograd.pause():
        outs = function(mx, op)(*given, **params)
    outs = outs if isinstance(outs, list) else [outs]
    found = {f"out{i}": o.asnumpy() for i, o in enumerate(outs)}
    if not smooth:
        return found
    outs = outs if every else outs[:1]
    heads = [mx.nd.array(head(o.shape, i), dtype=o.dtype) for i, o in enumerate(outs)]
    try:
        mx.autograd.backward(outs, heads, train_mode=train)
    except mx.MXNetError as e:
        assert every and ("FGradient" in str(e) or "outside" in str(e)), (op, params, e)
        return found
    found |= {f"next{i}": given[i].asnumpy() for i in states}
    return found | {f"grad{i}": given[i].grad.asnumpy() for i in smooth}
