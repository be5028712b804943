"""Dropout."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from ...core.dtypes import is_float
from ...core.errors import ArgumentError
from ..registry import op
from ..schema import ABSENT, Fraction, Ignored, Key, Shape, Tensor, Train
from ..spatial import check_float
from .varying import Params, define_runtime_form, faithful


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
    return _masked(data, key, axes, _limit(p), 1 / (1 - p))


def _limit(p: float) -> int:
    """How many of 65536 equally likely numbers keep an element."""
    return min(round((1 - p) * 65536), 65535)


def _masked(data: jax.Array, key: jax.Array, axes: tuple[int, ...], limit: Any, scale: Any) -> jax.Array:
    shared = {a % data.ndim for a in axes}
    shape = tuple(1 if i in shared else n for i, n in enumerate(data.shape))
    keep = jax.random.bits(key, shape, jnp.uint16) < jnp.asarray(limit, jnp.uint16)
    return jnp.where(keep, data * jnp.asarray(scale, data.dtype), 0)


def _fits(params: Params, shape: tuple[int, ...], dtype: np.dtype) -> bool:
    # Nothing is drawn with 0 and 1.
    p, ndim = params["p"], len(shape)
    placed = all(-ndim <= a < ndim for a in params["axes"])
    return 0 < p < 1 and placed and is_float(dtype) and faithful(1 / (1 - p), dtype)


def _runtime(
    data: jax.Array, key: jax.Array, train: bool, *, p: jax.Array, limit: jax.Array, scale: jax.Array,
    mode: str, axes: tuple[int, ...], cudnn_off: bool | None,
) -> jax.Array:  # fmt: skip
    check_float("Dropout", data)
    return _masked(data, key, axes, limit, scale) if train or mode == "always" else data


define_runtime_form(
    Dropout, "p", fits=_fits, body=_runtime, derived=lambda params: {
        "limit": float(_limit(params["p"])), "scale": 1 / (1 - params["p"])
    },
)  # fmt: skip
