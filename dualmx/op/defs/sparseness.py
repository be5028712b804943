"""A penalty on the mean activation of units, attached to the gradient."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ..registry import op
from ..schema import Aux, Fraction, Tensor, Train
from ..spatial import check_float, known


@jax.custom_vjp
def _attach(data: jax.Array, slope: jax.Array) -> jax.Array:
    return data


def _backward(slope: jax.Array, head: jax.Array) -> tuple[jax.Array, jax.Array]:
    return head + slope, jnp.zeros_like(slope)


_attach.defvjp(lambda data, slope: (data, slope), _backward)


def _complete(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    data = shapes.get("data")
    return {"moving_avg": (data[1],)} if data and len(data) > 1 and known(data[1]) else {}


@op(complete=_complete, writes_aux=lambda p, train: train)
def IdentityAttachKLSparseReg(
    data: Tensor,
    moving_avg: Aux,
    train: Train,
    *,
    sparseness_target: Fraction = 0.1,
    penalty: float = 0.001,
    momentum: Fraction = 0.9,
) -> tuple[jax.Array, jax.Array]:
    """The data unchanged; its gradient grows by that of a divergence which draws mean activations to a target.

    With ρ the target and m the moving average of each unit's mean over the batch, penalty · (-ρ/m + (1 - ρ)/(1 - m)) is
    added to the gradient. Meant for activations in (0, 1). Shapes: data (N, K, …), moving_avg (K,).
    """
    check_float("IdentityAttachKLSparseReg", data)
    axes = tuple(a for a in range(data.ndim) if a != 1)
    mean = jax.lax.stop_gradient(data).mean(axes)
    average = (momentum * moving_avg + (1 - momentum) * mean).astype(moving_avg.dtype) if train else moving_avg
    slope = penalty * (-sparseness_target / average + (1 - sparseness_target) / (1 - average))
    slope = jnp.broadcast_to(slope.reshape(-1, *(1,) * (data.ndim - 2)), data.shape).astype(data.dtype)
    return _attach(data, slope), average
