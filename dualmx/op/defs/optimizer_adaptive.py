"""Updates with a step size per element: Adam, RMSProp, AdaGrad, AdamW (Loshchilov & Hutter 2019), LAMB (You 2020).

Conventions are those of `defs/optimizer`. AdamW takes the gradient's scale as an array, as mixed precision needs.
"""

from __future__ import annotations

from typing import Annotated, Any

import jax
import jax.numpy as jnp

from ..registry import op
from ..schema import (
    Aux,
    Floats,
    Fraction,
    Ignored,
    Positive,
    RuntimeFloat,
    RuntimeFloats,
    RuntimeInt,
    Tensor,
    UntypedTensor,
)
from ..traits import BY_ROW, RowUpdate, Traits
from .optimizer import as_rate, clipped, coupled, decayed, groups, rest, scaled, states_of, update, wide

Array = jax.Array


def adam_step(
    w: Array,
    grad: Array,
    mean: Array,
    var: Array,
    lr: Array | float,
    beta1: float,
    beta2: float,
    epsilon: float,
    wd: float,
    rescale: Array | float,
    bound: float,
) -> tuple[Array, Array, Array]:
    """Adam's next weight, mean and variance, `w` already wide."""
    g = coupled(w, grad, rescale, bound, wd)
    m = beta1 * wide(mean) + rest(beta1) * g
    v = beta2 * wide(var) + rest(beta2) * jnp.square(g)
    return w - as_rate(lr, w) * m / (jnp.sqrt(v) + epsilon), m, v


@update(traits=BY_ROW)
def adam_update(
    weight: Tensor,
    grad: Tensor,
    mean: Aux,
    var: Aux,
    *,
    lr: RuntimeFloat,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    rescale_grad: RuntimeFloat = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: Annotated[bool, Ignored] = True,
):
    """Adam with coupled decay: `w - lr * m / (sqrt(v) + epsilon)`; the caller folds bias correction into `lr`.

    Shapes: all equal. `m = beta1 * m + (1 - beta1) * g`, `v = beta2 * v + (1 - beta2) * g**2` (Kingma & Ba, 2015).
    """
    w, m, v = adam_step(wide(weight), grad, mean, var, lr, beta1, beta2, epsilon, wd, rescale_grad, clip_gradient)
    return w.astype(weight.dtype), m.astype(mean.dtype), v.astype(var.dtype)


@op(outputs=lambda p: p.num_weights, mutates=states_of(4, "num_weights"))
def _multi_adam_update(
    *data: UntypedTensor,
    lrs: RuntimeFloats,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wds: Floats,
    rescale_grad: RuntimeFloat = 1.0,
    clip_gradient: float = -1.0,
    num_weights: Positive = 1,
):
    """`adam_update` for `num_weights` groups (weight, grad, mean, var). Outputs: next weights; states are written."""
    weights, states = [], []
    for (weight, grad, mean, var), lr, wd in groups(data, num_weights, 4, lrs, wds):
        w, m, v = adam_step(wide(weight), grad, mean, var, lr, beta1, beta2, epsilon, wd, rescale_grad, clip_gradient)
        weights.append(w.astype(weight.dtype))
        states += [m.astype(mean.dtype), v.astype(var.dtype)]
    return (*weights, *states)


@update()
def rmsprop_update(
    weight: Tensor,
    grad: Tensor,
    n: Aux,
    *,
    lr: RuntimeFloat,
    gamma1: float = 0.95,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    rescale_grad: RuntimeFloat = 1.0,
    clip_gradient: float = -1.0,
    clip_weights: float = -1.0,
):
    """RMSProp with coupled decay: `n = gamma1 * n + (1 - gamma1) * g**2; w - lr * g / sqrt(n + epsilon)`.

    Shapes: all equal. `clip_weights`, unless negative, limits the next weight (Tieleman & Hinton, 2012).
    """
    w = wide(weight)
    g = coupled(w, grad, rescale_grad, clip_gradient, wd)
    next_n = rest(gamma1) * jnp.square(g) + gamma1 * wide(n)
    w = clipped(w - as_rate(lr, w) * g / jnp.sqrt(next_n + epsilon), clip_weights)
    return w.astype(weight.dtype), next_n.astype(n.dtype)


@update()
def rmspropalex_update(
    weight: Tensor,
    grad: Tensor,
    n: Aux,
    g: Aux,
    delta: Aux,
    *,
    lr: RuntimeFloat,
    gamma1: float = 0.95,
    gamma2: float = 0.9,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    rescale_grad: RuntimeFloat = 1.0,
    clip_gradient: float = -1.0,
    clip_weights: float = -1.0,
):
    """Centred RMSProp with momentum `gamma2` and coupled decay (Graves, 2013, eq. 38-45). Shapes: all equal.

    `delta = gamma2 * delta - lr * grad / sqrt(n - g**2 + epsilon)`, `w + delta`.
    """
    w = wide(weight)
    d = coupled(w, grad, rescale_grad, clip_gradient, wd)
    next_n = rest(gamma1) * jnp.square(d) + gamma1 * wide(n)
    next_g = rest(gamma1) * d + gamma1 * wide(g)
    step = gamma2 * wide(delta) - as_rate(lr, w) * d / jnp.sqrt(next_n - jnp.square(next_g) + epsilon)
    w = clipped(w + step, clip_weights)
    return w.astype(weight.dtype), next_n.astype(n.dtype), next_g.astype(g.dtype), step.astype(delta.dtype)


@update("_sparse_adagrad_update", traits=BY_ROW)
def adagrad_update(
    weight: Tensor,
    grad: Tensor,
    history: Aux,
    *,
    lr: RuntimeFloat,
    epsilon: float = 1e-7,
    wd: float = 0.0,
    rescale_grad: RuntimeFloat = 1.0,
    clip_gradient: float = -1.0,
):
    """AdaGrad: `h = h + g'**2; w - lr * (g' / sqrt(h + epsilon) + wd * w)` (Duchi et al., 2011). Shapes: all equal."""
    w = wide(weight)
    g = clipped(scaled(grad, rescale_grad, w), clip_gradient)
    h = wide(history) + jnp.square(g)
    step = g / jnp.sqrt(h + epsilon)
    w = w - as_rate(lr, w) * decayed(step, w, wd)
    return w.astype(weight.dtype), h.astype(history.dtype)


@update("_contrib_group_adagrad_update", separate=("history",), traits=BY_ROW)
def group_adagrad_update(
    weight: Tensor,
    grad: Tensor,
    history: Aux,
    *,
    lr: RuntimeFloat,
    rescale_grad: RuntimeFloat = 1.0,
    clip_gradient: float = -1.0,
    epsilon: float = 1e-5,
):
    """AdaGrad with one history value per row: `h = h + mean(g'**2); w - lr * g' / sqrt(h + epsilon)`.

    Shapes: weight and grad (N, *S), history (N, 1, …).
    """
    w = wide(weight)
    g = clipped(scaled(grad, rescale_grad, w), clip_gradient)
    h = wide(history) + jnp.mean(jnp.square(g), axis=tuple(range(1, g.ndim)), keepdims=True).reshape(history.shape)
    w = w - as_rate(lr, w) * g / jnp.sqrt(h.reshape(-1, *(1,) * (g.ndim - 1)) + epsilon)
    return w.astype(weight.dtype), h.astype(history.dtype)


@update(traits=Traits(row_update=RowUpdate.BY_ROW_OF_SPARSE))
def ftrl_update(
    weight: Tensor,
    grad: Tensor,
    z: Aux,
    n: Aux,
    *,
    lr: RuntimeFloat,
    lamda1: float = 0.01,
    beta: float = 1.0,
    wd: float = 0.0,
    rescale_grad: RuntimeFloat = 1.0,
    clip_gradient: float = -1.0,
):
    """Follow the regularised leader (McMahan et al., 2013); weights with `|z| <= lamda1` become 0. Shapes: all equal.

    `z = z + g' - (sqrt(n + g'**2) - sqrt(n)) * w / lr`, `n = n + g'**2`,
    `w = (sign(z) * lamda1 - z) / ((beta + sqrt(n)) / lr + wd)`.
    """
    w = wide(weight)
    rate = as_rate(lr, w)
    g = clipped(scaled(grad, rescale_grad, w), clip_gradient)
    old = wide(n)
    new = old + jnp.square(g)
    nz = wide(z) + g - (jnp.sqrt(new) - jnp.sqrt(old)) * w / rate
    w = jnp.where(
        jnp.abs(nz) > lamda1, (jnp.sign(nz) * lamda1 - nz) / ((beta + jnp.sqrt(new)) / rate + wd), jnp.zeros_like(w)
    )
    return w.astype(weight.dtype), nz.astype(z.dtype), new.astype(n.dtype)


@update()
def ftml_update(
    weight: Tensor,
    grad: Tensor,
    d: Aux,
    v: Aux,
    z: Aux,
    *,
    lr: RuntimeFloat,
    beta1: Fraction = 0.6,
    beta2: Fraction = 0.999,
    epsilon: float = 1e-8,
    t: RuntimeInt,
    wd: float = 0.0,
    rescale_grad: RuntimeFloat = 1.0,
    clip_grad: float = -1.0,
):
    """Follow the moving leader (Zheng & Kwok, 2017) with coupled decay; `t` counts updates from 1. Shapes: all equal.

    `v = beta2 * v + (1 - beta2) * g**2`, `d' = (1 - beta1**t) / lr * (sqrt(v / (1 - beta2**t)) + epsilon)`,
    `z = beta1 * z + (1 - beta1) * g - (d' - beta1 * d) * w`, `w = -z / d'`.
    """
    w = wide(weight)
    step = as_rate(t, w)
    g = coupled(w, grad, rescale_grad, clip_grad, wd)
    nv = beta2 * wide(v) + rest(beta2) * jnp.square(g)
    nd = (1 - beta1**step) / as_rate(lr, w) * (jnp.sqrt(nv / (1 - beta2**step)) + epsilon)
    nz = beta1 * wide(z) + rest(beta1) * g - (nd - beta1 * wide(d)) * w
    return (-nz / nd).astype(weight.dtype), nd.astype(d.dtype), nv.astype(v.dtype), nz.astype(z.dtype)


@update("_adadelta_update")
def adadelta_update(
    weight: Tensor,
    grad: Tensor,
    acc_g: Aux,
    acc_delta: Aux,
    *,
    rho: float = 0.9,
    epsilon: float = 1e-5,
    wd: float = 0.0,
    rescale_grad: RuntimeFloat = 1.0,
    clip_gradient: float = -1.0,
):
    """AdaDelta, which has no learning rate (Zeiler, 2012): `w - d - wd * w`. Shapes: all equal.

    `a = rho * a + (1 - rho) * g'**2`, `d = sqrt((b + epsilon) / (a + epsilon)) * g'`, `b = rho * b + (1 - rho) * d**2`.
    """
    w = wide(weight)
    g = clipped(scaled(grad, rescale_grad, w), clip_gradient)
    a = rho * wide(acc_g) + (1 - rho) * jnp.square(g)
    d = jnp.sqrt(wide(acc_delta) + epsilon) / jnp.sqrt(a + epsilon) * g
    b = rho * wide(acc_delta) + (1 - rho) * jnp.square(d)
    w = w - decayed(d, w, wd)
    return w.astype(weight.dtype), a.astype(acc_g.dtype), b.astype(acc_delta.dtype)


@update("_adamax_update")
def adamax_update(
    weight: Tensor,
    grad: Tensor,
    mean: Aux,
    peak: Aux,
    *,
    lr: RuntimeFloat,
    beta1: float = 0.9,
    beta2: float = 0.999,
    wd: float = 0.0,
    rescale_grad: RuntimeFloat = 1.0,
    clip_gradient: float = -1.0,
):
    """Adamax with coupled decay: `w - lr * m / u` with `u = max(beta2 * u, |g|)` (Kingma & Ba, 2015, section 7.1).

    The caller folds bias correction into `lr`. Elements that never had a gradient (`u = 0`) stay. Shapes: all equal.
    """
    w = wide(weight)
    g = coupled(w, grad, rescale_grad, clip_gradient, wd)
    m = beta1 * wide(mean) + (1 - beta1) * g
    u = jnp.maximum(beta2 * wide(peak), jnp.abs(g))
    w = w - jnp.where(u == 0, jnp.zeros_like(w), as_rate(lr, w) * m / u)
    return w.astype(weight.dtype), m.astype(mean.dtype), u.astype(peak.dtype)


@update("_nadam_update")
def nadam_update(
    weight: Tensor,
    grad: Tensor,
    mean: Aux,
    var: Aux,
    *,
    lr: RuntimeFloat,
    grad_rate: RuntimeFloat,
    mean_rate: RuntimeFloat,
    var_rate: RuntimeFloat,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    rescale_grad: RuntimeFloat = 1.0,
    clip_gradient: float = -1.0,
):
    """Adam with Nesterov momentum and coupled decay (Dozat, 2016). Shapes: all equal.

    `w - lr * (grad_rate * g + mean_rate * m) / (sqrt(var_rate * v) + epsilon)`; the rates come from the schedule.
    """
    w = wide(weight)
    g = coupled(w, grad, rescale_grad, clip_gradient, wd)
    m = beta1 * wide(mean) + (1 - beta1) * g
    v = beta2 * wide(var) + (1 - beta2) * jnp.square(g)
    ahead = as_rate(grad_rate, w) * g + as_rate(mean_rate, w) * m
    w = w - as_rate(lr, w) * ahead / (jnp.sqrt(as_rate(var_rate, w) * v) + epsilon)
    return w.astype(weight.dtype), m.astype(mean.dtype), v.astype(var.dtype)


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
