"""SGD-like updates of one weight: the next weight is the output, states are auxiliary inputs and written back.

Learning rates, `rescale_grad` and step counts are runtime scalars, so that a schedule compiles nothing; `wd`,
momenta and clipping bounds are compiled in, and terms that they switch off cost nothing. 16-bit weights without
a 32-bit master copy are still computed in float32 and rounded once at the end. Throughout,
`g' = clip(rescale_grad * grad, ±clip_gradient)`, clipping unless `clip_gradient < 0`; updates "with coupled
decay" clip after adding `wd * weight`, the others decay outside the clip.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from ...core.dtypes import is_float
from ...core.errors import ArgumentError
from ..registry import Op, op
from ..schema import Aux, Ignored, Key, RuntimeFloat, Tensor

Array = jax.Array


def wide(x: Array) -> Array:
    """`x` in the type that updates compute in: 16-bit floats become float32."""
    return x.astype(jnp.float32) if x.dtype.itemsize < 4 else x


def scaled(grad: Array, rate: Array | float, like: Array) -> Array:
    """`rate * grad` in the dtype of `like`, the weight; their shapes must be equal."""
    if grad.shape != like.shape:
        raise ArgumentError(f"grad has shape {grad.shape}, expected the weight's {like.shape}")
    return grad.astype(like.dtype) * as_rate(rate, like)


def as_rate(rate: Array | float, like: Array) -> Array:
    """A runtime scalar in the dtype of `like`."""
    return jnp.asarray(rate, dtype=like.dtype)


def clipped(grad: Array, bound: float) -> Array:
    """`grad` limited to ±`bound` unless `bound` is negative."""
    return jnp.clip(grad, -bound, bound) if bound >= 0 else grad


def rest(beta: float) -> float:
    """1 - beta as float32 arithmetic has it, so that bias corrections in float32 cancel exactly."""
    return 1 - float(np.float32(beta))


def decayed(g: Array, weight: Array, wd: Array | float) -> Array:
    """`g + wd * weight`, or `g` itself when `wd` is the constant 0."""
    return g if isinstance(wd, (int, float)) and wd == 0 else g + wd * weight


def decoupled(weight: Array, grad: Array, rescale: Array | float, bound: float, wd: Array | float) -> Array:
    """clip(rescale * grad) + wd * weight, `weight` already wide."""
    return decayed(clipped(scaled(grad, rescale, weight), bound), weight, wd)


def coupled(weight: Array, grad: Array, rescale: Array | float, bound: float, wd: Array | float) -> Array:
    """clip(rescale * grad + wd * weight), `weight` already wide."""
    return clipped(decayed(scaled(grad, rescale, weight), weight, wd), bound)


def alike_floats(arrays: Mapping[str, Array]) -> None:
    """Require floating-point arrays of one shape, that of the first, the weight."""
    weight = next(iter(arrays.values()))
    for name, x in arrays.items():
        if not is_float(np.dtype(x.dtype)):
            raise ArgumentError(f"{name} is {x.dtype}: expected floating-point; cast with .astype()")
        if x.shape != weight.shape:
            raise ArgumentError(f"{name} has shape {x.shape}, expected the weight's {weight.shape}")


def update(name: str | None = None, *, separate: Sequence[str] = ()) -> Callable[[Callable[..., Any]], Op]:
    """Register an update op whose inputs, those in `separate` excepted, are all floating and of the weight's shape."""

    def register(fn: Callable[..., Any]) -> Op:
        equal = [
            p.name
            for p in inspect.signature(fn).parameters.values()
            if p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in separate
        ]

        @functools.wraps(fn)
        def body(**given: Any) -> Any:
            alike_floats({name: given[name] for name in equal})
            return fn(**given)

        def complete(p: Any, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
            known = next((shapes[n] for n in equal if n in shapes), None)
            return {} if known is None else dict.fromkeys(equal, known)

        return op(name=name, complete=complete)(body)

    return register


def momentum_step(weight: Array, g: Array, mom: Array, lr: Array | float, momentum: float) -> tuple[Array, Array]:
    """Heavy-ball step: (next weight, next momentum); the rate is inside the momentum."""
    mom = momentum * wide(mom) - as_rate(lr, weight) * g
    return weight + mom, mom


@update()
def sgd_update(
    weight: Tensor,
    grad: Tensor,
    *,
    lr: RuntimeFloat,
    wd: float = 0.0,
    rescale_grad: RuntimeFloat = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: Annotated[bool, Ignored] = True,
):
    """Stochastic gradient descent: `w - lr * (g' + wd * w)`. Shapes: all equal. `lazy_update` concerns row_sparse."""
    w = wide(weight)
    g = decoupled(w, grad, rescale_grad, clip_gradient, wd)
    return (w - as_rate(lr, w) * g).astype(weight.dtype)


@update()
def sgd_mom_update(
    weight: Tensor,
    grad: Tensor,
    mom: Aux,
    *,
    lr: RuntimeFloat,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: RuntimeFloat = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: Annotated[bool, Ignored] = True,
):
    """SGD with momentum: `m = momentum * m - lr * (g' + wd * w); w + m`. Shapes: all equal."""
    w = wide(weight)
    g = decoupled(w, grad, rescale_grad, clip_gradient, wd)
    w, m = momentum_step(w, g, mom, lr, momentum)
    return w.astype(weight.dtype), m.astype(mom.dtype)


@update()
def mp_sgd_update(
    weight: Tensor,
    grad: Tensor,
    weight32: Aux,
    *,
    lr: RuntimeFloat,
    wd: float = 0.0,
    rescale_grad: RuntimeFloat = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: Annotated[bool, Ignored] = True,
):
    """`sgd_update` of the float32 master copy `weight32`; the output is its rounding to the dtype of `weight`."""
    g = decoupled(weight32, grad, rescale_grad, clip_gradient, wd)
    w = weight32 - as_rate(lr, weight32) * g
    return w.astype(weight.dtype), w


@update()
def mp_sgd_mom_update(
    weight: Tensor,
    grad: Tensor,
    mom: Aux,
    weight32: Aux,
    *,
    lr: RuntimeFloat,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: RuntimeFloat = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: Annotated[bool, Ignored] = True,
):
    """`sgd_mom_update` of the float32 master copy `weight32` with float32 momentum; the output is its rounding."""
    g = decoupled(weight32, grad, rescale_grad, clip_gradient, wd)
    w, m = momentum_step(weight32, g, mom, lr, momentum)
    return w.astype(weight.dtype), m.astype(mom.dtype), w


def nag_step(
    w: Array,
    grad: Array,
    mom: Array,
    lr: Array | float,
    momentum: float,
    wd: float,
    rescale: Array | float,
    bound: float,
) -> tuple[Array, Array]:
    """Nesterov step: (next weight, next momentum); the momentum decays towards the *next* weight, as in MXNet."""
    g = clipped(scaled(grad, rescale, w), bound)
    rate = as_rate(lr, w)
    m = momentum * wide(mom)
    new = w - m + (1 + momentum) * (m - rate * decayed(g, w, wd))
    return new, m - rate * decayed(g, new, wd)


@update()
def nag_mom_update(
    weight: Tensor,
    grad: Tensor,
    mom: Aux,
    *,
    lr: RuntimeFloat,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: RuntimeFloat = 1.0,
    clip_gradient: float = -1.0,
):
    """Nesterov's momentum: `m = momentum * m; w' = w - m + (1 + momentum) * (m - lr * (g' + wd * w))`.

    The next momentum is `m - lr * (g' + wd * w')`. Shapes: all equal.
    """
    w, m = nag_step(wide(weight), grad, mom, lr, momentum, wd, rescale_grad, clip_gradient)
    return w.astype(weight.dtype), m.astype(mom.dtype)


@update()
def mp_nag_mom_update(
    weight: Tensor,
    grad: Tensor,
    mom: Aux,
    weight32: Aux,
    *,
    lr: RuntimeFloat,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: RuntimeFloat = 1.0,
    clip_gradient: float = -1.0,
):
    """`nag_mom_update` of the float32 master copy `weight32`; the output is its rounding."""
    w, m = nag_step(weight32, grad, mom, lr, momentum, wd, rescale_grad, clip_gradient)
    return w.astype(weight.dtype), m.astype(mom.dtype), w


@update()
def signsgd_update(
    weight: Tensor,
    grad: Tensor,
    *,
    lr: RuntimeFloat,
    wd: float = 0.0,
    rescale_grad: Annotated[float, Ignored] = 1.0,
    clip_gradient: Annotated[float, Ignored] = -1.0,
):
    """SignSGD: `(1 - lr * wd) * w - lr * sign(grad)` (Bernstein et al., 2018). Shapes: all equal."""
    w = wide(weight)
    rate = as_rate(lr, w)
    kept = (1 - rate * wd) * w if wd else w
    return (kept - rate * jnp.sign(grad.astype(w.dtype))).astype(weight.dtype)


@update()
def signum_update(
    weight: Tensor,
    grad: Tensor,
    mom: Aux,
    *,
    lr: RuntimeFloat,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: RuntimeFloat = 1.0,
    clip_gradient: float = -1.0,
    wd_lh: float = 0.0,
):
    """SignSGD with momentum: `m = momentum * m - (1 - momentum) * (g' + wd * w); (1 - lr * wd_lh) * w + lr * sign(m)`.

    Shapes: all equal. `wd_lh` is decay outside the momentum (Loshchilov & Hutter, 2019).
    """
    w = wide(weight)
    rate = as_rate(lr, w)
    m = momentum * wide(mom) - rest(momentum) * decoupled(w, grad, rescale_grad, clip_gradient, wd)
    kept = (1 - rate * wd_lh) * w if wd_lh else w
    return (kept + rate * jnp.sign(m)).astype(weight.dtype), m.astype(mom.dtype)


@update("_dcasgd_update")
def dcasgd_update(
    weight: Tensor,
    grad: Tensor,
    mom: Aux,
    previous: Aux,
    *,
    lr: RuntimeFloat,
    momentum: float = 0.0,
    lamda: float = 0.04,
    wd: float = 0.0,
    rescale_grad: RuntimeFloat = 1.0,
    clip_gradient: float = -1.0,
):
    """Delay-compensated SGD: `g' + lamda * g'**2 * (w - previous)` (Zheng et al., 2017). Shapes: equal."""
    w = wide(weight)
    g = clipped(scaled(grad, rescale_grad, w), clip_gradient)
    g = decayed(g, w, wd) + lamda * jnp.square(g) * (w - wide(previous))
    new, m = momentum_step(w, g, mom, lr, momentum)
    return new.astype(weight.dtype), m.astype(mom.dtype), w.astype(previous.dtype)


@update("_sgld_update", separate=("key",))
def sgld_update(
    weight: Tensor,
    grad: Tensor,
    key: Key,
    *,
    lr: RuntimeFloat,
    wd: float = 0.0,
    rescale_grad: RuntimeFloat = 1.0,
    clip_gradient: float = -1.0,
):
    """Stochastic gradient Langevin dynamics: `w - lr / 2 * (g' + wd * w) + N(0, lr)` (Welling & Teh, 2011)."""
    w = wide(weight)
    rate = as_rate(lr, w)
    noise = jnp.sqrt(rate) * jax.random.normal(key, w.shape, w.dtype)
    return (w - rate / 2 * decoupled(w, grad, rescale_grad, clip_gradient, wd) + noise).astype(weight.dtype)


def lars_step(
    w: Array,
    grad: Array,
    mom: Array,
    lr: Array | float,
    momentum: Array | float,
    eta: float,
    eps: float,
    layerwise: bool,
    wd: float,
    rescale: Array | float,
    bound: float,
) -> tuple[Array, Array]:
    """Next weight and momentum of LARS, `w` already wide; plain SGD unless `layerwise`."""
    raw = scaled(grad, rescale, w)
    rate = as_rate(lr, w)
    if layerwise:
        w_norm, g_norm = (jnp.sqrt(jnp.sum(jnp.square(x))) for x in (w, raw))
        layer = eta * w_norm / (g_norm + wd * w_norm + eps)
        rate = rate * jnp.where((w_norm > 0) & (g_norm > 0), layer, jnp.ones_like(layer))
    m = as_rate(momentum, w) * wide(mom) - rate * decayed(clipped(raw, bound), w, wd)
    return w + m, m


@update("_lars_update")
def lars_update(
    weight: Tensor,
    grad: Tensor,
    mom: Aux,
    *,
    lr: RuntimeFloat,
    momentum: RuntimeFloat = 0.0,
    eta: float = 0.001,
    eps: float = 0.0,
    layerwise: bool = True,
    wd: float = 0.0,
    rescale_grad: RuntimeFloat = 1.0,
    clip_gradient: float = -1.0,
):
    """SGD with momentum at the layer's own rate `lr * eta * ‖w‖ / (‖g‖ + wd * ‖w‖ + eps)` (You et al., 2017).

    The norm of the gradient is taken after rescaling and before clipping; the rate is `lr` where a norm is 0, and
    everywhere when `layerwise` is false. Shapes: all equal.
    """
    w, m = lars_step(wide(weight), grad, mom, lr, momentum, eta, eps, layerwise, wd, rescale_grad, clip_gradient)
    return w.astype(weight.dtype), m.astype(mom.dtype)


@update("_mp_lars_update")
def mp_lars_update(
    weight: Tensor,
    grad: Tensor,
    mom: Aux,
    weight32: Aux,
    *,
    lr: RuntimeFloat,
    momentum: RuntimeFloat = 0.0,
    eta: float = 0.001,
    eps: float = 0.0,
    layerwise: bool = True,
    wd: float = 0.0,
    rescale_grad: RuntimeFloat = 1.0,
    clip_gradient: float = -1.0,
):
    """`_lars_update` of the float32 master copy `weight32`; the output is its rounding. Shapes: all equal."""
    w, m = lars_step(weight32, grad, mom, lr, momentum, eta, eps, layerwise, wd, rescale_grad, clip_gradient)
    return w.astype(weight.dtype), m.astype(mom.dtype), w
