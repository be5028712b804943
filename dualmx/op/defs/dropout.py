"""Dropout."""

from __future__ import annotations

from typing import Annotated, Literal

import jax
import jax.numpy as jnp

from ...core.errors import ArgumentError
from ..registry import op
from ..schema import ABSENT, Fraction, Ignored, Key, Shape, Tensor, Train
from ..spatial import check_float


@op(aliases=("_npx_dropout",))
def Dropout(
    data: Tensor,
    key: Key = ABSENT,
    train: Train = False,
    *,
    p: Fraction = 0.5,
    mode: Literal["training", "always"] = "training",
    axes: Shape = (),
    cudnn_off: Annotated[bool | None, Ignored] = False,
) -> jax.Array:
    """Zero each element with probability p and scale the others by 1/(1 − p) (Srivastava et al. 2014).

    Active when training, or with mode "always"; the identity otherwise. The elements along `axes` share their fate.
    Shapes: any, kept. The probability is realized in steps of 2⁻¹⁶.
    """
    check_float("Dropout", data)
    if any(not -data.ndim <= a < data.ndim for a in axes):
        raise ArgumentError(f"Dropout: axes={axes}: expected axes of data with shape {data.shape}")
    if p == 0 or not (train or mode == "always"):
        return data
    if p == 1:
        return jnp.zeros_like(data)
    shared = {a % data.ndim for a in axes}
    shape = tuple(1 if i in shared else n for i, n in enumerate(data.shape))
    limit = min(round((1 - p) * 65536), 65535)
    keep = jax.random.bits(key, shape, jnp.uint16) < jnp.uint16(limit)
    return jnp.where(keep, data * (1 / (1 - p)), 0)
