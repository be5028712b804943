"""Two-stage sums and extremes for XLA:CPU, which reduces element by element in one stage.

Over leading axes (gradients of biases, channel statistics), XLA walks down one column after another and fetches every
cache line once a column. Over trailing axes (softmax, normalization), each element waits for the one before. A first
stage that adds a few blocks to each other runs along the lines, in vectors, fused with what computes its elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

_BLOCKS = (8, 4, 2)  # of rows that are added in registers; measured, 16 and more are slower
_MIN_ROWS, _MIN_ELEMENTS = 512, 1 << 17  # below, one more pass costs more than it saves
_CUTS = (16, 8, 4)  # of a row, each of at least `_CUT` elements
_BLOCK_ELEMENTS, _MIN_ROW_ELEMENTS = 8, 1 << 13  # elements

_REDUCE: dict[str, Callable[..., jax.Array]] = {"reduce_sum": jnp.sum, "reduce_max": jnp.max, "reduce_min": jnp.min}


def two_stage_reduction(name: str, x: jax.Array, axes: tuple[int, ...]) -> jax.Array | None:
    """The reduction of a primitive over `axes` in two stages; None where one serves as well.

    Example:
        >>> two_stage_reduction("reduce_sum", jnp.ones((1024, 256)), (0,)).shape
        (256,)
        >>> two_stage_reduction("reduce_max", jnp.ones((1024, 256)), (1,)).shape
        (1024,)
    """
    if name not in _REDUCE or not jnp.issubdtype(x.dtype, jnp.floating):
        return None
    n, axes = len(axes), tuple(sorted(axes))
    more: dict[str, Any] = {"dtype": x.dtype} if name == "reduce_sum" else {}
    # XLA would merge the two without the barrier.
    if axes == tuple(range(x.ndim - n, x.ndim)):
        width = math.prod(x.shape[x.ndim - n :])
        cuts = next((k for k in _CUTS if width % k == 0 and width >= k * _BLOCK_ELEMENTS), 0)
        if not cuts or x.size < _MIN_ROW_ELEMENTS:
            return None
        partial = _REDUCE[name](x.reshape(*x.shape[: x.ndim - n], cuts, width // cuts), -2, **more)
        return _REDUCE[name](lax.optimization_barrier(partial), -1, **more)
    rows = math.prod(x.shape[:n])
    blocks = next((b for b in _BLOCKS if rows % b == 0), 0)
    leading = name == "reduce_sum" and axes == tuple(range(n))
    if not leading or not blocks or rows < _MIN_ROWS or x.size < _MIN_ELEMENTS:
        return None
    partial = jnp.sum(x.reshape(blocks, rows // blocks, *x.shape[n:]), 0, **more)
    return jnp.sum(lax.optimization_barrier(partial), 0, **more)
