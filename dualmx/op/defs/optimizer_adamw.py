"""AdamW updates (Loshchilov & Hutter, 2019) with the gradient's scale as an array, as mixed precision needs."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..registry import op
from ..schema import Aux, Floats, Positive, RuntimeFloat, RuntimeFloats, Tensor, UntypedTensor
from .optimizer_multi import groups, states_of
from .optimizer_update import as_rate, clipped, rest, scaled, update, wide

Array = jax.Array


def adamw_step(
    w: Array,
    grad: Array,
    mean: Array,
    var: Array,
    rescale: Array,
    lr: Array | float,
    eta: Array | float,
    beta1: float,
    beta2: float,
    epsilon: float,
    wd: float,
    bound: float,
) -> tuple[Array, Array, Array]:
    """AdamW's next weight, mean and variance; everything stays when `rescale` is 0 or not finite."""
    rescale = rescale.reshape(()).astype(w.dtype)
    g = clipped(scaled(grad, rescale, w), bound)
    m = beta1 * wide(mean) + rest(beta1) * g
    v = beta2 * wide(var) + rest(beta2) * jnp.square(g)
    new = w - as_rate(eta, w) * (as_rate(lr, w) * m / (jnp.sqrt(v) + epsilon) + wd * w)
    usable = jnp.isfinite(rescale) & (rescale != 0)
    return jnp.where(usable, new, w), jnp.where(usable, m, wide(mean)), jnp.where(usable, v, wide(var))


@update("_adamw_update", separate=("rescale_grad",))
def adamw_update(
    weight: Tensor,
    grad: Tensor,
    mean: Aux,
    var: Aux,
    rescale_grad: UntypedTensor,
    *,
    lr: RuntimeFloat,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    eta: RuntimeFloat,
    clip_gradient: float = -1.0,
):
    """AdamW: `w - eta * (lr * m / (sqrt(v) + epsilon) + wd * w)` (Loshchilov & Hutter, 2019).

    `rescale_grad` is an array of one element; the update is skipped when it is 0 or not finite (loss scaling).
    Shapes: the others all equal.
    """
    w, m, v = adamw_step(wide(weight), grad, mean, var, rescale_grad, lr, eta, beta1, beta2, epsilon, wd, clip_gradient)
    return w.astype(weight.dtype), m.astype(mean.dtype), v.astype(var.dtype)


@update("_mp_adamw_update", separate=("rescale_grad",))
def mp_adamw_update(
    weight: Tensor,
    grad: Tensor,
    mean: Aux,
    var: Aux,
    weight32: Aux,
    rescale_grad: UntypedTensor,
    *,
    lr: RuntimeFloat,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    eta: RuntimeFloat,
    clip_gradient: float = -1.0,
):
    """`_adamw_update` of the float32 master copy `weight32`; the output is its rounding."""
    w, m, v = adamw_step(weight32, grad, mean, var, rescale_grad, lr, eta, beta1, beta2, epsilon, wd, clip_gradient)
    return w.astype(weight.dtype), m.astype(mean.dtype), v.astype(var.dtype), w


def _multi_adamw(name: str, size: int, what: str) -> None:
    def body(
        *data: UntypedTensor,
        lrs: RuntimeFloats,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        wds: Floats,
        etas: RuntimeFloats,
        clip_gradient: float = -1.0,
        num_weights: Positive = 1,
    ):
        *arrays, rescale = data
        weights, states = [], []
        for (weight, grad, mean, var, *master), lr, wd, eta in groups(arrays, num_weights, size, lrs, wds, etas):
            w = master[0] if master else wide(weight)
            w, m, v = adamw_step(w, grad, mean, var, rescale, lr, eta, beta1, beta2, epsilon, wd, clip_gradient)
            weights.append(w.astype(weight.dtype))
            states += [m.astype(mean.dtype), v.astype(var.dtype), *([w] if master else [])]
        return (*weights, *states)

    body.__doc__ = what
    op(name=name, outputs=lambda p: p.num_weights, mutates=states_of(size, "num_weights"))(body)


_multi_adamw(
    "_multi_adamw_update", 4, "AdamW for groups (weight, grad, mean, var), then one rescale_grad; states are written."
)
_multi_adamw(
    "_multi_mp_adamw_update",
    5,
    "AdamW for groups (weight, grad, mean, var, weight32), then one rescale_grad; states are written.",
)
