"""LAMB updates (You et al., 2020), for one weight in two phases and for many at once."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ..registry import op
from ..schema import Aux, Floats, Positive, RuntimeFloat, RuntimeFloats, RuntimeInt, Tensor, UntypedTensor
from .optimizer_multi import groups, states_of
from .optimizer_update import as_rate, clipped, decayed, rest, scaled, update, wide

Array = jax.Array


def lamb_direction(
    w: Array,
    grad: Array,
    mean: Array,
    var: Array,
    step: Array | float,
    beta1: float,
    beta2: float,
    epsilon: float,
    bias_correction: bool,
    wd: float,
    rescale: Array | float,
    bound: float,
) -> tuple[Array, Array, Array]:
    """LAMB's unscaled step, next mean and next variance."""
    g = clipped(scaled(grad, rescale, w), bound)
    m = beta1 * wide(mean) + rest(beta1) * g
    v = beta2 * wide(var) + rest(beta2) * jnp.square(g)
    t = as_rate(step, w)
    mhat, vhat = (m / (1 - beta1**t), v / (1 - beta2**t)) if bias_correction else (m, v)
    u = mhat / (jnp.sqrt(vhat) + epsilon)
    return decayed(u, w, wd), m, v


def trust_ratio(r1: Array, r2: Array, lower: float, upper: float) -> Array:
    """`clip(r1) / r2`, 1 where either norm is 0; a bound applies when it is not negative."""
    r1 = jnp.maximum(r1, lower) if lower >= 0 else r1
    r1 = jnp.minimum(r1, upper) if upper >= 0 else r1
    return jnp.where((r1 == 0) | (r2 == 0), jnp.ones_like(r1), r1 / r2)


@update()
def lamb_update_phase1(
    weight: Tensor,
    grad: Tensor,
    mean: Aux,
    var: Aux,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-6,
    t: RuntimeInt,
    bias_correction: bool = True,
    wd: float,
    rescale_grad: RuntimeFloat = 1.0,
    clip_gradient: float = -1.0,
):
    """LAMB's direction `m / (sqrt(v) + epsilon) + wd * w`, before the trust ratio (You et al., 2020). Shapes: equal."""
    w = wide(weight)
    u, m, v = lamb_direction(
        w, grad, mean, var, t, beta1, beta2, epsilon, bias_correction, wd, rescale_grad, clip_gradient
    )
    return u.astype(weight.dtype), m.astype(mean.dtype), v.astype(var.dtype)


@update(separate=("r1", "r2"))
def lamb_update_phase2(
    weight: Tensor,
    g: Tensor,
    r1: UntypedTensor,
    r2: UntypedTensor,
    *,
    lr: RuntimeFloat,
    lower_bound: float = -1.0,
    upper_bound: float = -1.0,
):
    """LAMB's step `w - lr * clip(r1, lower_bound, upper_bound) / r2 * g`; the ratio is 1 where a norm is 0.

    Shapes: weight and g equal; r1 = ‖weight‖ and r2 = ‖g‖ of shape (1,).
    """
    w = wide(weight)
    ratio = as_rate(lr, w) * trust_ratio(r1, r2, lower_bound, upper_bound).reshape(()).astype(w.dtype)
    return (w - ratio * wide(g)).astype(weight.dtype)


@update()
def mp_lamb_update_phase1(
    weight: Tensor,
    grad: Tensor,
    mean: Aux,
    var: Aux,
    weight32: UntypedTensor,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-6,
    t: RuntimeInt,
    bias_correction: bool = True,
    wd: float,
    rescale_grad: RuntimeFloat = 1.0,
    clip_gradient: float = -1.0,
):
    """`lamb_update_phase1` on the float32 master copy `weight32`; the direction is float32."""
    u, m, v = lamb_direction(
        weight32, grad, mean, var, t, beta1, beta2, epsilon, bias_correction, wd, rescale_grad, clip_gradient
    )
    return u, m.astype(mean.dtype), v.astype(var.dtype)


@update(separate=("r1", "r2"))
def mp_lamb_update_phase2(
    weight: Tensor,
    g: UntypedTensor,
    r1: UntypedTensor,
    r2: UntypedTensor,
    weight32: Aux,
    *,
    lr: RuntimeFloat,
    lower_bound: float = -1.0,
    upper_bound: float = -1.0,
):
    """`lamb_update_phase2` on the float32 master copy `weight32`; the output is its rounding."""
    ratio = as_rate(lr, weight32) * trust_ratio(r1, r2, lower_bound, upper_bound).reshape(()).astype(weight32.dtype)
    w = weight32 - ratio * g
    return w.astype(weight.dtype), w


def multi_lamb(data: tuple[Array, ...], size: int, p: dict[str, Any]) -> tuple[Array, ...]:
    """Next weights, then per weight its next mean, variance and, with `size` 5, master copy."""
    weights, states = [], []
    rows = groups(data, p["num_tensors"], size, p["learning_rates"], p["wds"], p["step_count"])
    for (weight, grad, mean, var, *master), lr, wd, t in rows:
        w = master[0] if master else wide(weight)
        u, m, v = lamb_direction(
            w, grad, mean, var, t, p["beta1"], p["beta2"], p["epsilon"], p["bias_correction"], wd,
            p["rescale_grad"], p["clip_gradient"],
        )  # fmt: skip
        w_norm, u_norm = (jnp.sqrt(jnp.sum(jnp.square(x))) for x in (wide(weight), u))
        w = w - as_rate(lr, w) * trust_ratio(w_norm, u_norm, p["lower_bound"], p["upper_bound"]) * u
        weights.append(w.astype(weight.dtype))
        states += [m.astype(mean.dtype), v.astype(var.dtype), *([w] if master else [])]
    return (*weights, *states)


def _multi_lamb(name: str, size: int, what: str) -> None:
    def body(
        *data: UntypedTensor,
        learning_rates: RuntimeFloats,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        wds: Floats,
        rescale_grad: RuntimeFloat = 1.0,
        lower_bound: float = -1.0,
        upper_bound: float = -1.0,
        clip_gradient: float = -1.0,
        bias_correction: bool = True,
        step_count: RuntimeFloats,
        num_tensors: Positive = 1,
    ):
        params = dict(locals())
        return multi_lamb(params.pop("data"), size, params)

    body.__doc__ = what
    op(name=name, outputs=lambda p: p.num_tensors, mutates=states_of(size, "num_tensors"))(body)


_multi_lamb("_multi_lamb_update", 4, "LAMB for `num_tensors` groups (weight, grad, mean, var); states are written.")
_multi_lamb(
    "_multi_mp_lamb_update", 5, "LAMB for `num_tensors` groups (weight, grad, mean, var, weight32); states are written."
)
