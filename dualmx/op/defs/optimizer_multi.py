"""Updates of many weights in one call, and the array statistics that accompany them.

Inputs come in groups, one per weight: `w0, g0, m0, w1, g1, m1, …`. The outputs are the next weights; the states
of all groups (everything after weight and grad) are written back, like auxiliary inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import jax
import jax.numpy as jnp

from ...core.errors import ArgumentError
from ..registry import op
from ..schema import Floats, Ignored, Positive, RuntimeFloat, RuntimeFloats, Tensor, UntypedTensor
from .optimizer_update import alike_floats, as_rate, decoupled, momentum_step, wide

Array = jax.Array


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
        alike_floats({f"{name} of group {i}": x for name, x in zip(names, group, strict=True)})
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
