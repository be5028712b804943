"""`mx.npx.random`: samplers beyond NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..core.errors import ArgumentError
from ..numpy import random as np_random
from ..numpy.call import as_array, cast, is_number, write_out
from ..numpy.elementwise import FUNCTIONS as F
from ..numpy.np_ndarray import ndarray
from ..random import seed as seed_streams


def seed(seed: int, ctx: Any = "all") -> None:
    """Restart the random streams of every context, or of one; see `mx.random.seed`."""
    seed_streams(seed, ctx)


def bernoulli(
    prob: Any = None, logit: Any = None, size: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None
) -> ndarray:
    """Draw 1 with probability `prob`, or sigmoid(`logit`), else 0.

    Args:
        prob, logit: one of them: a number or an array.
        size: shape of the result; that of the parameter if None.
        dtype: float32 by default.
        ctx, out: as for `np.random.uniform`.

    Raises:
        ArgumentError: both parameters or none, or a probability outside [0, 1].

    Example:
        >>> import dualmx as mx
        >>> mx.npx.random.bernoulli(prob=1.0, size=(2,))
        array([1., 1.])
    """
    if (prob is None) == (logit is None):
        raise ArgumentError(f"random.bernoulli: prob={prob}, logit={logit}: expected one of them")
    if prob is None:
        given = onp.float64(logit) if is_number(logit) else as_array(logit, "random.bernoulli", "logit")
        prob = float(1 / (1 + onp.exp(-given))) if is_number(logit) else 1 / (1 + F["exp"](-given))
    elif is_number(prob) and not 0 <= prob <= 1:
        raise ArgumentError(f"random.bernoulli: prob={prob}: expected a number from 0 to 1")
    like = prob if is_number(prob) else as_array(prob, "random.bernoulli", "prob")
    shape = (like.shape if isinstance(like, ndarray) else ()) if size is None else size
    where = like.context if isinstance(like, ndarray) and ctx is None else ctx
    drawn = np_random.uniform(size=shape, ctx=where) < like
    return write_out(cast(drawn, onp.float32 if dtype is None else dtype), out, "random.bernoulli")


def _batched(batch_shape: Any, *params: Any) -> tuple[int, ...]:
    """Return `batch_shape` followed by the shape of the parameters."""
    front = () if batch_shape is None else (batch_shape,) if isinstance(batch_shape, int) else tuple(batch_shape)
    return front + onp.broadcast_shapes(*(p.shape for p in params if isinstance(p, ndarray)))


def uniform_n(low: Any = 0.0, high: Any = 1.0, batch_shape: Any = None, dtype: Any = None, ctx: Any = None) -> ndarray:
    """Draw from [low, high): `batch_shape` draws of every element of the parameters; see `np.random.uniform`.

    Example:
        >>> import dualmx as mx
        >>> mx.npx.random.uniform_n(mx.np.zeros(2), mx.np.ones(2), batch_shape=(3,)).shape
        (3, 2)
    """
    return np_random.uniform(low, high, _batched(batch_shape, low, high), dtype, ctx)


def normal_n(loc: Any = 0.0, scale: Any = 1.0, batch_shape: Any = None, dtype: Any = None, ctx: Any = None) -> ndarray:
    """Draw normal numbers: `batch_shape` draws of every element of the parameters; see `np.random.normal`."""
    return np_random.normal(loc, scale, _batched(batch_shape, loc, scale), dtype, ctx)


__all__ = ["bernoulli", "normal_n", "seed", "uniform_n"]
