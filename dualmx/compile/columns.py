"""Sums over all leading axes, as gradients of biases and statistics of channels take them, for XLA on the CPU.

XLA computes one result after the other, each from elements that lie far apart: every cache line is fetched once a
column. Adding a few blocks of rows first runs along the lines.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax

_BLOCKS = (8, 4, 2)  # of rows that are added in registers; measured, 16 and more are slower
_LEAST_ROWS, _LEAST_SIZE = 512, 1 << 17  # below, one more pass costs more than it saves


def sum_of_rows(x: jax.Array, axes: tuple[int, ...]) -> jax.Array | None:
    """The sum over `axes` in two stages; None where one serves as well.

    Example:
        >>> sum_of_rows(jnp.ones((1024, 256)), (0,)).shape
        (256,)
    """
    rows = math.prod(x.shape[: len(axes)])
    blocks = next((b for b in _BLOCKS if rows % b == 0), 0)
    leading = sorted(axes) == list(range(len(axes))) and len(axes) < x.ndim
    if (
        not leading
        or not blocks
        or rows < _LEAST_ROWS
        or x.size < _LEAST_SIZE
        or not jnp.issubdtype(x.dtype, jnp.floating)
    ):
        return None
    partial = jnp.sum(x.reshape(blocks, rows // blocks, *x.shape[len(axes) :]), 0, dtype=x.dtype)
    return jnp.sum(lax.optimization_barrier(partial), 0, dtype=x.dtype)  # XLA would merge the two without the barrier
