"""Compare two optimizers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ndarray import NDArray, array
from .compare import assert_almost_equal


def _compare_states(a: Any, b: Any, rtol: float, atol: float) -> None:
    if isinstance(a, NDArray):
        assert_almost_equal(a.asnumpy(), b.asnumpy(), rtol=rtol, atol=atol)
    elif isinstance(a, (list, tuple)):
        for x, y in zip(a, b, strict=True):
            _compare_states(x, y, rtol, atol)
    elif a is not None or b is not None:
        assert a == b, f"states {a!r} and {b!r} differ"


def compare_optimizer(
    opt1: Any, opt2: Any, shape: Any, dtype: Any, w_stype: str = "default", g_stype: str = "default",
    rtol: float = 1e-4, atol: float = 1e-5, compare_states: bool = True, ntensors: int = 1,
) -> None:  # fmt: skip
    """Update equal weights by equal gradients with two optimizers, and compare the results.

    Args:
        opt1, opt2: the optimizers.
        shape: of the weight, or a list of shapes for several tensors.
        dtype: of weights and gradients.
        w_stype, g_stype: their storage types.
        rtol, atol: tolerances.
        compare_states: compare the optimizers' states too, before and after.
        ntensors: how many tensors are updated in one call.

    Raises:
        AssertionError: they differ.
    """
    several = isinstance(shape, list)
    shapes = [tuple(s) for s in shape] if several else [tuple(shape)] * ntensors
    joined = several or ntensors > 1

    def arrays(stype: str) -> tuple[list[NDArray], list[NDArray]]:
        values = [np.random.uniform(-1, 1, s) for s in shapes]
        first, second = ([array(v, dtype=dtype).tostype(stype) for v in values] for _ in range(2))
        return first, second

    (w1, w2), (g1, g2) = arrays(w_stype), arrays(g_stype)
    number: Any = list(range(len(shapes))) if joined else 0
    states = [
        [opt.create_state_multi_precision(i, w) for i, w in enumerate(weights)]
        for opt, weights in ((opt1, w1), (opt2, w2))
    ]
    if compare_states:
        _compare_states(states[0], states[1], rtol, atol)
    for opt, w, g, s in ((opt1, w1, g1, states[0]), (opt2, w2, g2, states[1])):
        if joined:
            opt.update_multi_precision(number, w, g, s)
        else:
            opt.update_multi_precision(0, w[0], g[0], s[0])
    if compare_states:
        _compare_states(states[0], states[1], rtol, atol)
    for a, b in zip(w1, w2, strict=True):
        assert_almost_equal(a.asnumpy(), b.asnumpy(), rtol=rtol, atol=atol)
