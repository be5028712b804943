"""Updates of weights, each a formula from which `op.update_rule` makes its operators, and the statistics beside them.

The next weight is the output, states are auxiliary inputs and written back. Learning rates, `rescale_grad` and step
counts are runtime scalars, so that a schedule compiles nothing; `wd`, momenta and clipping bounds are compiled in, and
terms that they switch off cost nothing. 16-bit weights without a 32-bit master copy are still computed in float32 and
rounded once at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import jax
import jax.numpy as jnp

from ...core.errors import ArgumentError
from ..registry import op
from ..schema import Aux, Fraction, Ignored, Key, Positive, RuntimeFloat, RuntimeInt, Tensor, UntypedTensor
from ..traits import RowUpdate
from ..update_rule import (
    UpdateRule,
    as_rate,
    clipped,
    decayed,
    require_float_arrays,
    rest,
    same_shapes,
    scaled,
    update_rule,
    wide,
)

Array = jax.Array


def momentum_step(weight: Array, g: Array, mom: Array, lr: Array | float, momentum: float) -> tuple[Array, Array]:
    """Heavy-ball step; the rate is inside the momentum."""
    mom = momentum * mom - lr * g
    return weight + mom, mom


@update_rule("decoupled", "sgd_update", lazy=True, rows=RowUpdate.SCALED_ROW)
def sgd(weight, grad, *, lr: RuntimeFloat):
    """Stochastic gradient descent: `w - lr * (g' + wd * w)`. Shapes: all equal. `lazy_update` concerns row_sparse."""
    return (weight - lr * grad,)


@update_rule("decoupled", "sgd_mom_update", lazy=True, rows=RowUpdate.BY_ROW)
def sgd_mom(weight, grad, mom, *, lr: RuntimeFloat, momentum: float = 0.0):
    """SGD with momentum: `m = momentum * m - lr * (g' + wd * w); w + m`. Shapes: all equal."""
    return momentum_step(weight, grad, mom, lr, momentum)


sgd.master_operator(
    "mp_sgd_update",
    "`sgd_update` of the float32 master copy `weight32`; the output is its rounding to the dtype of `weight`.",
)
sgd_mom.master_operator(
    "mp_sgd_mom_update",
    "`sgd_mom_update` of the float32 master copy `weight32` with float32 momentum; the output is its rounding.",
)


def define_sgd_groups(rule: UpdateRule, name: str, what: str, how: str, end: str, order: str = "") -> None:
    """Register the operators that update many weights as `name` does one, whose groups `what` describes."""
    lists = {"lr": "lrs", "wd": "wds"}
    for middle, copy in (("", ""), ("mp_", ", weight32")):
        groups, master = what.format(copy), bool(copy)
        text = f"{groups}; {how} as `{name}`. Outputs: the next weights{end}."
        rule.multi_operator(f"multi_{middle}{name}", text, lists, master=master, order=order)
        text = f"{groups}, then the arrays lrs and wds; each as `{name}`. Outputs: the next weights."
        rule.multi_operator(f"preloaded_multi_{middle}{name}", text, lists, master=master, preloaded=True, order=order)


define_sgd_groups(sgd, "sgd_update", "SGD for groups (weight, grad{})", "`w - lr * (g' + wd * w)` each,", "")
define_sgd_groups(
    sgd_mom, "sgd_mom_update", "SGD with momentum for groups (weight, grad, mom{})", "each", "; states are written",
    order="lrs wds momentum rescale_grad clip_gradient",
)  # fmt: skip


@update_rule("clipped", "nag_mom_update", mp="mp_nag_mom_update")
def nag_mom(weight, grad, mom, *, lr: RuntimeFloat, momentum: float = 0.0, wd: float = 0.0):
    """Nesterov's momentum: `m = momentum * m; w' = w - m + (1 + momentum) * (m - lr * (g' + wd * w))`.

    The next momentum is `m - lr * (g' + wd * w')`. Shapes: all equal.
    """
    m = momentum * mom
    new = weight - m + (1 + momentum) * (m - lr * decayed(grad, weight, wd))
    # The momentum decays towards the *next* weight, as in MXNet.
    return new, m - lr * decayed(grad, new, wd)


@update_rule("raw", "signsgd_update")
def signsgd(
    weight,
    grad,
    *,
    lr: RuntimeFloat,
    wd: float = 0.0,
    rescale_grad: Annotated[float, Ignored] = 1.0,
    clip_gradient: Annotated[float, Ignored] = -1.0,
):
    """SignSGD: `(1 - lr * wd) * w - lr * sign(grad)` (Bernstein et al., 2018). Shapes: all equal."""
    kept = (1 - lr * wd) * weight if wd else weight
    return (kept - lr * jnp.sign(grad.astype(weight.dtype)),)


@update_rule("decoupled", "signum_update", order="lr momentum wd rescale_grad clip_gradient wd_lh")
def signum(weight, grad, mom, *, lr: RuntimeFloat, momentum: float = 0.0, wd_lh: float = 0.0):
    """SignSGD with momentum: `m = momentum * m - (1 - momentum) * (g' + wd * w); (1 - lr * wd_lh) * w + lr * sign(m)`.

    Shapes: all equal. `wd_lh` is decay outside the momentum (Loshchilov & Hutter, 2019).
    """
    m = momentum * mom - rest(momentum) * grad
    kept = (1 - lr * wd_lh) * weight if wd_lh else weight
    return kept + lr * jnp.sign(m), m


@update_rule("clipped", "_dcasgd_update")
def dcasgd(
    weight, grad, mom, previous, *, lr: RuntimeFloat, momentum: float = 0.0, lamda: float = 0.04, wd: float = 0.0
):
    """Delay-compensated SGD: `g' + lamda * g'**2 * (w - previous)` (Zheng et al., 2017). Shapes: equal."""
    g = decayed(grad, weight, wd) + lamda * jnp.square(grad) * (weight - previous)
    return *momentum_step(weight, g, mom, lr, momentum), weight


@update_rule("decoupled", "_sgld_update", inputs={"key": Key}, unlike=("key",))
def sgld(weight, grad, *, lr: RuntimeFloat, key):
    """Stochastic gradient Langevin dynamics: `w - lr / 2 * (g' + wd * w) + N(0, lr)` (Welling & Teh, 2011)."""
    noise = jnp.sqrt(lr) * jax.random.normal(key, weight.shape, weight.dtype)
    return (weight - lr / 2 * grad + noise,)


@update_rule("scaled", "_lars_update")
def lars(
    weight,
    grad,
    mom,
    *,
    lr: RuntimeFloat,
    momentum: RuntimeFloat = 0.0,
    eta: float = 0.001,
    eps: float = 0.0,
    layerwise: bool = True,
    wd: float = 0.0,
    clip_gradient: float = -1.0,
):
    """SGD with momentum at the layer's own rate `lr * eta * ‖w‖ / (‖g‖ + wd * ‖w‖ + eps)` (You et al., 2017).

    The norm of the gradient is taken after rescaling and before clipping; the rate is `lr` where a norm is 0, and
    everywhere when `layerwise` is false. Shapes: all equal.
    """
    if layerwise:
        w_norm, g_norm = (jnp.sqrt(jnp.sum(jnp.square(x))) for x in (weight, grad))
        layer = eta * w_norm / (g_norm + wd * w_norm + eps)
        layer = lr * jnp.where((w_norm > 0) & (g_norm > 0), layer, jnp.ones_like(layer))
    else:
        layer = lr
    m = momentum * mom - layer * decayed(clipped(grad, clip_gradient), weight, wd)
    return weight + m, m


lars.master_operator(
    "_mp_lars_update",
    "`_lars_update` of the float32 master copy `weight32`; the output is its rounding. Shapes: all equal.",
)


@update_rule("coupled", "adam_update", lazy=True, rows=RowUpdate.BY_ROW)
def adam(weight, grad, mean, var, *, lr: RuntimeFloat, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8):
    """Adam with coupled decay: `w - lr * m / (sqrt(v) + epsilon)`; the caller folds bias correction into `lr`.

    Shapes: all equal. `m = beta1 * m + (1 - beta1) * g`, `v = beta2 * v + (1 - beta2) * g**2` (Kingma & Ba, 2015).
    """
    m = beta1 * mean + rest(beta1) * grad
    v = beta2 * var + rest(beta2) * jnp.square(grad)
    return weight - lr * m / (jnp.sqrt(v) + epsilon), m, v


adam.multi_operator(
    "_multi_adam_update",
    "`adam_update` for `num_weights` groups (weight, grad, mean, var). Outputs: next weights; states are written.",
    {"lr": "lrs", "wd": "wds"},
)


@update_rule("coupled", "rmsprop_update", order="lr gamma1 epsilon wd rescale_grad clip_gradient clip_weights")
def rmsprop(
    weight, grad, n, *, lr: RuntimeFloat, gamma1: float = 0.95, epsilon: float = 1e-8, clip_weights: float = -1.0
):
    """RMSProp with coupled decay: `n = gamma1 * n + (1 - gamma1) * g**2; w - lr * g / sqrt(n + epsilon)`.

    Shapes: all equal. `clip_weights`, unless negative, limits the next weight (Tieleman & Hinton, 2012).
    """
    n = rest(gamma1) * jnp.square(grad) + gamma1 * n
    return clipped(weight - lr * grad / jnp.sqrt(n + epsilon), clip_weights), n


@update_rule(
    "coupled", "rmspropalex_update", order="lr gamma1 gamma2 epsilon wd rescale_grad clip_gradient clip_weights"
)
def rmspropalex(
    weight,
    grad,
    n,
    g,
    delta,
    *,
    lr: RuntimeFloat,
    gamma1: float = 0.95,
    gamma2: float = 0.9,
    epsilon: float = 1e-8,
    clip_weights: float = -1.0,
):
    """Centred RMSProp with momentum `gamma2` and coupled decay (Graves, 2013, eq. 38-45). Shapes: all equal.

    `delta = gamma2 * delta - lr * grad / sqrt(n - g**2 + epsilon)`, `w + delta`.
    """
    n = rest(gamma1) * jnp.square(grad) + gamma1 * n
    g = rest(gamma1) * grad + gamma1 * g
    step = gamma2 * delta - lr * grad / jnp.sqrt(n - jnp.square(g) + epsilon)
    return clipped(weight + step, clip_weights), n, g, step


@update_rule("clipped", "_sparse_adagrad_update", rows=RowUpdate.BY_ROW)
def adagrad(weight, grad, history, *, lr: RuntimeFloat, epsilon: float = 1e-7, wd: float = 0.0):
    """AdaGrad: `h = h + g'**2; w - lr * (g' / sqrt(h + epsilon) + wd * w)` (Duchi et al., 2011). Shapes: all equal."""
    h = history + jnp.square(grad)
    return weight - lr * decayed(grad / jnp.sqrt(h + epsilon), weight, wd), h


@update_rule(
    "clipped",
    "_contrib_group_adagrad_update",
    unlike=("history",),
    rows=RowUpdate.BY_ROW,
    order="lr rescale_grad clip_gradient epsilon",
)
def group_adagrad(weight, grad, history, *, lr: RuntimeFloat, epsilon: float = 1e-5):
    """AdaGrad with one history value per row: `h = h + mean(g'**2); w - lr * g' / sqrt(h + epsilon)`.

    Shapes: weight and grad (N, *S), history (N, 1, …).
    """
    squares = jnp.mean(jnp.square(grad), axis=tuple(range(1, grad.ndim)), keepdims=True)
    h = history + squares.reshape(history.shape)
    return weight - lr * grad / jnp.sqrt(h.reshape(-1, *(1,) * (grad.ndim - 1)) + epsilon), h


@update_rule("clipped", "ftrl_update", rows=RowUpdate.BY_ROW_OF_SPARSE)
def ftrl(weight, grad, z, n, *, lr: RuntimeFloat, lamda1: float = 0.01, beta: float = 1.0, wd: float = 0.0):
    """Follow the regularised leader (McMahan et al., 2013); weights with `|z| <= lamda1` become 0. Shapes: all equal.

    `z = z + g' - (sqrt(n + g'**2) - sqrt(n)) * w / lr`, `n = n + g'**2`,
    `w = (sign(z) * lamda1 - z) / ((beta + sqrt(n)) / lr + wd)`.
    """
    new = n + jnp.square(grad)
    z = z + grad - (jnp.sqrt(new) - jnp.sqrt(n)) * weight / lr
    moved = (jnp.sign(z) * lamda1 - z) / ((beta + jnp.sqrt(new)) / lr + wd)
    return jnp.where(jnp.abs(z) > lamda1, moved, jnp.zeros_like(weight)), z, new


@update_rule("coupled", "ftml_update", clip="clip_grad")
def ftml(
    weight,
    grad,
    d,
    v,
    z,
    *,
    lr: RuntimeFloat,
    beta1: Fraction = 0.6,
    beta2: Fraction = 0.999,
    epsilon: float = 1e-8,
    t: RuntimeInt,
):
    """Follow the moving leader (Zheng & Kwok, 2017) with coupled decay; `t` counts updates from 1. Shapes: all equal.

    `v = beta2 * v + (1 - beta2) * g**2`, `d' = (1 - beta1**t) / lr * (sqrt(v / (1 - beta2**t)) + epsilon)`,
    `z = beta1 * z + (1 - beta1) * g - (d' - beta1 * d) * w`, `w = -z / d'`.
    """
    v = beta2 * v + rest(beta2) * jnp.square(grad)
    new = (1 - beta1**t) / lr * (jnp.sqrt(v / (1 - beta2**t)) + epsilon)
    z = beta1 * z + rest(beta1) * grad - (new - beta1 * d) * weight
    return -z / new, new, v, z


@update_rule("clipped", "_adadelta_update")
def adadelta(weight, grad, acc_g, acc_delta, *, rho: float = 0.9, epsilon: float = 1e-5, wd: float = 0.0):
    """AdaDelta, which has no learning rate (Zeiler, 2012): `w - d - wd * w`. Shapes: all equal.

    `a = rho * a + (1 - rho) * g'**2`, `d = sqrt((b + epsilon) / (a + epsilon)) * g'`, `b = rho * b + (1 - rho) * d**2`.
    """
    a = rho * acc_g + (1 - rho) * jnp.square(grad)
    d = jnp.sqrt(acc_delta + epsilon) / jnp.sqrt(a + epsilon) * grad
    return weight - decayed(d, weight, wd), a, rho * acc_delta + (1 - rho) * jnp.square(d)


@update_rule("coupled", "_adamax_update")
def adamax(weight, grad, mean, peak, *, lr: RuntimeFloat, beta1: float = 0.9, beta2: float = 0.999):
    """Adamax with coupled decay: `w - lr * m / u` with `u = max(beta2 * u, |g|)` (Kingma & Ba, 2015, section 7.1).

    The caller folds bias correction into `lr`. Elements that never had a gradient (`u = 0`) stay. Shapes: all equal.
    """
    m = beta1 * mean + (1 - beta1) * grad
    u = jnp.maximum(beta2 * peak, jnp.abs(grad))
    return weight - jnp.where(u == 0, jnp.zeros_like(weight), lr * m / u), m, u


@update_rule("coupled", "_nadam_update")
def nadam(
    weight,
    grad,
    mean,
    var,
    *,
    lr: RuntimeFloat,
    grad_rate: RuntimeFloat,
    mean_rate: RuntimeFloat,
    var_rate: RuntimeFloat,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
):
    """Adam with Nesterov momentum and coupled decay (Dozat, 2016). Shapes: all equal.

    `w - lr * (grad_rate * g + mean_rate * m) / (sqrt(var_rate * v) + epsilon)`; the rates come from the schedule.
    """
    m = beta1 * mean + (1 - beta1) * grad
    v = beta2 * var + (1 - beta2) * jnp.square(grad)
    return weight - lr * (grad_rate * grad + mean_rate * m) / (jnp.sqrt(var_rate * v) + epsilon), m, v


@update_rule("raw", "_adamw_update", inputs={"rescale_grad": UntypedTensor}, mp="_mp_adamw_update")
def adamw(
    weight,
    grad,
    mean,
    var,
    *,
    rescale_grad,
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
    scale = as_rate(rescale_grad.reshape(()), weight)
    g = clipped(scaled(grad, scale, weight), clip_gradient)
    m = beta1 * mean + rest(beta1) * g
    v = beta2 * var + rest(beta2) * jnp.square(g)
    new = weight - eta * (lr * m / (jnp.sqrt(v) + epsilon) + wd * weight)
    usable = jnp.isfinite(scale) & (scale != 0)
    return jnp.where(usable, new, weight), jnp.where(usable, m, mean), jnp.where(usable, v, var)


adamw.multi_operator(
    "_multi_adamw_update",
    "AdamW for groups (weight, grad, mean, var), then one rescale_grad; states are written.",
    {"lr": "lrs", "wd": "wds", "eta": "etas"},
)
adamw.multi_operator(
    "_multi_mp_adamw_update",
    "AdamW for groups (weight, grad, mean, var, weight32), then one rescale_grad; states are written.",
    {"lr": "lrs", "wd": "wds", "eta": "etas"},
    master=True,
)


@update_rule("clipped", "lamb_update_phase1")
def lamb_direction(
    weight,
    grad,
    mean,
    var,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-6,
    t: RuntimeInt,
    bias_correction: bool = True,
    wd: float,
):
    """LAMB's direction `m / (sqrt(v) + epsilon) + wd * w`, before the trust ratio (You et al., 2020). Shapes: equal."""
    m = beta1 * mean + rest(beta1) * grad
    v = beta2 * var + rest(beta2) * jnp.square(grad)
    mhat, vhat = (m / (1 - beta1**t), v / (1 - beta2**t)) if bias_correction else (m, v)
    return decayed(mhat / (jnp.sqrt(vhat) + epsilon), weight, wd), m, v


lamb_direction.master_operator(
    "mp_lamb_update_phase1",
    "`lamb_update_phase1` on the float32 master copy `weight32`; the direction is float32.",
    UntypedTensor,
)


def trust_ratio(r1: Array, r2: Array, lower: float, upper: float) -> Array:
    """`clip(r1) / r2`, 1 where either norm is 0; a bound applies when it is not negative."""
    r1 = jnp.maximum(r1, lower) if lower >= 0 else r1
    r1 = jnp.minimum(r1, upper) if upper >= 0 else r1
    return jnp.where((r1 == 0) | (r2 == 0), jnp.ones_like(r1), r1 / r2)


def _lamb_step(w: Array, g: Array, r1: Array, r2: Array, lr: Array | float, lower: float, upper: float) -> Array:
    ratio = as_rate(lr, w) * trust_ratio(r1, r2, lower, upper).reshape(()).astype(w.dtype)
    return w - ratio * wide(g)


@op(complete=same_shapes(("weight", "g")))
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
    require_float_arrays({"weight": weight, "g": g})
    return _lamb_step(wide(weight), g, r1, r2, lr, lower_bound, upper_bound).astype(weight.dtype)


@op(complete=same_shapes(("weight", "g", "weight32")))
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
    require_float_arrays({"weight": weight, "g": g, "weight32": weight32})
    w = _lamb_step(weight32, g, r1, r2, lr, lower_bound, upper_bound)
    return w.astype(weight.dtype), w


@update_rule("clipped")
def lamb(
    weight,
    grad,
    mean,
    var,
    *,
    lr: RuntimeFloat,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-6,
    wd: float = 0.0,
    lower_bound: float = -1.0,
    upper_bound: float = -1.0,
    bias_correction: bool = True,
    t: RuntimeInt,
    stored,
):
    """LAMB: the direction times the rate times the trust ratio of the norms of weight and direction."""
    u, m, v = lamb_direction.formula(
        weight, grad, mean, var, beta1=beta1, beta2=beta2, epsilon=epsilon, t=t, bias_correction=bias_correction, wd=wd
    )
    w_norm, u_norm = (jnp.sqrt(jnp.sum(jnp.square(x))) for x in (stored, u))
    return weight - lr * trust_ratio(w_norm, u_norm, lower_bound, upper_bound) * u, m, v


def define_lamb_groups(name: str, what: str, master: bool) -> None:
    """Register LAMB for many weights at once."""
    lamb.multi_operator(
        name,
        f"LAMB for `num_tensors` groups ({what}); states are written.",
        {"lr": "learning_rates", "wd": "wds", "t": "step_count"},
        master=master,
        count="num_tensors",
        order="learning_rates beta1 beta2 epsilon wds rescale_grad lower_bound upper_bound clip_gradient "
        "bias_correction step_count",
    )


define_lamb_groups("_multi_lamb_update", "weight, grad, mean, var", master=False)
define_lamb_groups("_multi_mp_lamb_update", "weight, grad, mean, var, weight32", master=True)


@op()
def multi_lars(
    lrs: Tensor,
    weights_sum_sq: Tensor,
    grads_sum_sq: Tensor,
    wds: Tensor,
    *,
    eta: float,
    eps: float,
    rescale_grad: RuntimeFloat = 1.0,
):
    """Layer-wise rates `lr * eta * ‖w‖ / (rescale_grad * ‖g‖ + wd * ‖w‖ + eps)`, `lr` where a norm is 0.

    Shapes: all (n,), the norms given squared.
    """
    for name, x in (("weights_sum_sq", weights_sum_sq), ("grads_sum_sq", grads_sum_sq), ("wds", wds)):
        if x.shape != lrs.shape:
            raise ArgumentError(f"{name} has shape {x.shape}, expected that of lrs, {lrs.shape}")
    w, g = jnp.sqrt(weights_sum_sq), jnp.sqrt(grads_sum_sq)
    layer = lrs * eta * w / (as_rate(rescale_grad, g) * g + wds * w + eps)
    return jnp.where((w > 0) & (g > 0), layer, lrs)


@op()
def multi_sum_sq(*data: UntypedTensor, num_arrays: Positive):
    """Sum of squares of every array, as one float32 vector of shape (num_arrays,)."""
    if len(data) != num_arrays:
        raise ArgumentError(f"got {len(data)} arrays, expected num_arrays={num_arrays}")
    return jnp.stack([jnp.sum(jnp.square(x.astype(jnp.float32))) for x in data])


def finite(data: Sequence[Array]) -> Array:
    """float32 array of shape (1,): 1 if no element of `data` is infinite or NaN, else 0."""
    each = jnp.stack([jnp.all(jnp.isfinite(x)) for x in data])
    return jnp.all(each).astype(jnp.float32).reshape(1)


@op()
def all_finite(data: Tensor, *, init_output: Annotated[bool, Ignored] = True):
    """1 if no element is infinite or NaN, else 0, as float32 of shape (1,)."""
    return finite([data])


@op()
def multi_all_finite(*data: UntypedTensor, num_arrays: Positive = 1, init_output: Annotated[bool, Ignored] = True):
    """1 if no element of any array is infinite or NaN, else 0, as float32 of shape (1,)."""
    if len(data) != num_arrays:
        raise ArgumentError(f"got {len(data)} arrays, expected num_arrays={num_arrays}")
    return finite(data)


@op(outputs=0, mutates=lambda p: range(p.num_arrays))
def reset_arrays(*data: UntypedTensor, num_arrays: Positive):
    """Fill every array with zeros, in place; no output."""
    if len(data) != num_arrays:
        raise ArgumentError(f"got {len(data)} arrays, expected num_arrays={num_arrays}")
    return tuple(jnp.zeros_like(x) for x in data)
