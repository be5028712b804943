"""SGD-like updates of one weight or of many, and the array statistics that they use.

The next weight is the output; states are auxiliary inputs and written back. Learning rates, `rescale_grad` and step
counts are runtime scalars, so that a schedule compiles nothing. `wd`, momenta and clipping bounds are compiled in, and
terms that they switch off cost nothing. 16-bit weights without a 32-bit master copy are computed in float32 and rounded
once at the end. Throughout, `g' = clip(rescale_grad * grad, ±clip_gradient)`, clipping unless `clip_gradient < 0`.
Updates "with coupled decay" clip after adding `wd * weight`; the others decay outside the clip. Multi-tensor forms take
`w0, g0, m0, w1, g1, m1, …` and return the next weights.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from ...core.dtypes import is_float
from ...core.errors import ArgumentError
from ..registry import Op, op
from ..schema import Aux, Floats, Ignored, Key, Positive, RuntimeFloat, RuntimeFloats, Tensor, UntypedTensor
from ..traits import BY_ROW, NO_TRAITS, RowUpdate, Traits

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


def require_float_arrays(arrays: Mapping[str, Array]) -> None:
    """Require floating-point arrays of one shape, that of the first, the weight."""
    weight = next(iter(arrays.values()))
    for name, x in arrays.items():
        if not is_float(np.dtype(x.dtype)):
            raise ArgumentError(f"{name} is {x.dtype}: expected floating-point; cast with .astype()")
        if x.shape != weight.shape:
            raise ArgumentError(f"{name} has shape {x.shape}, expected the weight's {weight.shape}")


def update(
    name: str | None = None, *, separate: Sequence[str] = (), traits: Traits = NO_TRAITS
) -> Callable[[Callable[..., Any]], Op]:
    """Register an update op whose inputs, those in `separate` excepted, are all floating and of the weight's shape."""

    def register(fn: Callable[..., Any]) -> Op:
        equal = [
            p.name
            for p in inspect.signature(fn).parameters.values()
            if p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in separate
        ]

        @functools.wraps(fn)
        def body(**given: Any) -> Any:
            require_float_arrays({name: given[name] for name in equal})
            return fn(**given)

        def complete(p: Any, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
            known = next((shapes[n] for n in equal if n in shapes), None)
            return {} if known is None else dict.fromkeys(equal, known)

        return op(name=name, complete=complete, traits=traits)(body)

    return register


def momentum_step(weight: Array, g: Array, mom: Array, lr: Array | float, momentum: float) -> tuple[Array, Array]:
    """Heavy-ball step: (next weight, next momentum); the rate is inside the momentum."""
    mom = momentum * wide(mom) - as_rate(lr, weight) * g
    return weight + mom, mom


@update(traits=Traits(row_update=RowUpdate.SCALED_ROW))
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


@update(traits=BY_ROW)
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


@update(traits=BY_ROW)
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


@update(traits=BY_ROW)
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


def states_of(size: int, count: str) -> Callable[[Any], list[int]]:
    """`mutates=` of an op with `count` groups of `size` inputs: all positions but weights and gradients."""
    return lambda p: [g * size + i for g in range(getattr(p, count)) for i in range(2, size)]


def groups(
    data: Sequence[Array], count: int, size: int, *per_weight: Sequence[Any] | Array
) -> Iterator[tuple[Any, ...]]:
    """Yield `(inputs of one group, its entry of every `per_weight` list…)`."""
    if len(data) != count * size:
        raise ArgumentError(f"got {len(data)} arrays, expected {size} for each of the {count} weights")
    for values in per_weight:
        if len(values) != count:
            raise ArgumentError(f"got {len(values)} rates or decays, expected one for each of the {count} weights")
    for i in range(count):
        group = tuple(data[i * size : (i + 1) * size])
        names = ("weight", "grad", *(f"state {n}" for n in range(size - 2)))
        require_float_arrays({f"{name} of group {i}": x for name, x in zip(names, group, strict=True)})
        yield (group, *(values[i] for values in per_weight))


def sgd_many(
    data: Sequence[Array],
    count: int,
    size: int,
    lrs: Sequence[Any] | Array,
    wds: Sequence[Any] | Array,
    momentum: float | None,
    rescale: Any,
    bound: float,
    master: bool,
) -> tuple[Array, ...]:
    """Next weights, then next states group by group; `momentum=None` means groups without momentum."""
    weights, states = [], []
    for (weight, grad, *rest), lr, wd in groups(data, count, size, lrs, wds):
        w = rest[-1] if master else wide(weight)
        g = decoupled(w, grad, rescale, bound, wd)
        if momentum is None:
            w = w - as_rate(lr, w) * g
        else:
            w, m = momentum_step(w, g, rest[0], lr, momentum)
            states.append(m.astype(rest[0].dtype))
        weights.append(w.astype(weight.dtype))
        states += [w] if master else []
    return (*weights, *states)


def _multi_sgd(name: str, size: int, master: bool, what: str) -> None:
    def body(
        *data: UntypedTensor,
        lrs: RuntimeFloats,
        wds: Floats,
        rescale_grad: RuntimeFloat = 1.0,
        clip_gradient: float = -1.0,
        num_weights: Positive = 1,
    ):
        return sgd_many(data, num_weights, size, lrs, wds, None, rescale_grad, clip_gradient, master)

    body.__doc__ = f"{what}; `w - lr * (g' + wd * w)` each, as `sgd_update`. Outputs: the next weights."
    op(name=name, outputs=lambda p: p.num_weights, mutates=states_of(size, "num_weights"))(body)


def _multi_sgd_mom(name: str, size: int, master: bool, what: str) -> None:
    def body(
        *data: UntypedTensor,
        lrs: RuntimeFloats,
        wds: Floats,
        momentum: float = 0.0,
        rescale_grad: RuntimeFloat = 1.0,
        clip_gradient: float = -1.0,
        num_weights: Positive = 1,
    ):
        return sgd_many(data, num_weights, size, lrs, wds, momentum, rescale_grad, clip_gradient, master)

    body.__doc__ = f"{what}; each as `sgd_mom_update`. Outputs: the next weights; states are written."
    op(name=name, outputs=lambda p: p.num_weights, mutates=states_of(size, "num_weights"))(body)


def _preloaded_sgd(name: str, size: int, master: bool, what: str) -> None:
    def body(
        *data: UntypedTensor, rescale_grad: RuntimeFloat = 1.0, clip_gradient: float = -1.0, num_weights: Positive = 1
    ):
        *rest, lrs, wds = data
        return sgd_many(rest, num_weights, size, lrs, wds, None, rescale_grad, clip_gradient, master)

    body.__doc__ = f"{what}, then the arrays lrs and wds; each as `sgd_update`. Outputs: the next weights."
    op(name=name, outputs=lambda p: p.num_weights, mutates=states_of(size, "num_weights"))(body)


def _preloaded_sgd_mom(name: str, size: int, master: bool, what: str) -> None:
    def body(
        *data: UntypedTensor,
        momentum: float = 0.0,
        rescale_grad: RuntimeFloat = 1.0,
        clip_gradient: float = -1.0,
        num_weights: Positive = 1,
    ):
        *rest, lrs, wds = data
        return sgd_many(rest, num_weights, size, lrs, wds, momentum, rescale_grad, clip_gradient, master)

    body.__doc__ = f"{what}, then the arrays lrs and wds; each as `sgd_mom_update`. Outputs: the next weights."
    op(name=name, outputs=lambda p: p.num_weights, mutates=states_of(size, "num_weights"))(body)


_GROUPS = {
    ("sgd", False): "SGD for groups (weight, grad)",
    ("sgd", True): "SGD for groups (weight, grad, weight32)",
    ("mom", False): "SGD with momentum for groups (weight, grad, mom)",
    ("mom", True): "SGD with momentum for groups (weight, grad, mom, weight32)",
}
_multi_sgd("multi_sgd_update", 2, False, _GROUPS["sgd", False])
_multi_sgd("multi_mp_sgd_update", 3, True, _GROUPS["sgd", True])
_multi_sgd_mom("multi_sgd_mom_update", 3, False, _GROUPS["mom", False])
_multi_sgd_mom("multi_mp_sgd_mom_update", 4, True, _GROUPS["mom", True])
_preloaded_sgd("preloaded_multi_sgd_update", 2, False, _GROUPS["sgd", False])
_preloaded_sgd("preloaded_multi_mp_sgd_update", 3, True, _GROUPS["sgd", True])
_preloaded_sgd_mom("preloaded_multi_sgd_mom_update", 3, False, _GROUPS["mom", False])
_preloaded_sgd_mom("preloaded_multi_mp_sgd_mom_update", 4, True, _GROUPS["mom", True])


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
