"""AdamW and LAMB updates of `nd.contrib`, which take lists of arrays and the gradient's scale as a number."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ..core.errors import ArgumentError
from ..ndarray.handle import invoke, invoke_out
from ..ndarray.interop import array_from_numpy
from ..ndarray.ndarray import NDArray
from ..op.registry import OPS

Arrays = Sequence[NDArray]


def _scale(value: Any, like: NDArray) -> NDArray:
    """The gradient's scale as an array; numbers are allowed."""
    return value if isinstance(value, NDArray) else array_from_numpy(np.full((1,), value, "float32"), like.context)


def _run(name: str, inputs: Arrays, out: Any, params: dict[str, Any]) -> Any:
    op = OPS[name]
    parsed = op.parse(params)
    call, rates = op.bind(parsed), op.runtime_values(parsed)
    if out is None:
        made = invoke(call, inputs, rates)
        return made[0] if len(made) == 1 else made
    invoke_out(call, inputs, out if isinstance(out, (list, tuple)) else (out,), rates)
    return out


def _interleaved(name: str, *groups: Arrays) -> list[NDArray]:
    """First elements of all lists, then the second ones, …"""
    if len({len(g) for g in groups}) != 1:
        raise ArgumentError(f"{name}: lists of {', '.join(str(len(g)) for g in groups)} arrays: expected equal lengths")
    return [a for row in zip(*groups, strict=True) for a in row]


def adamw_update(
    weight: NDArray,
    grad: NDArray,
    mean: NDArray,
    var: NDArray,
    rescale_grad: Any,
    lr: float,
    eta: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0,
    clip_gradient: float = -1,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """AdamW of one weight: `w - eta * (lr * m / (sqrt(v) + epsilon) + wd * w)`; `mean` and `var` are written.

    Args:
        weight, grad, mean, var: arrays of one shape.
        rescale_grad: scale of the gradient, number or array (1,); 0 or a value that is not finite skips the update.
        lr, eta: rate of the step, and schedule factor of step and decay.
        beta1, beta2, epsilon, wd, clip_gradient: see the operator `_adamw_update`.
        out: array to overwrite, usually the weight.
        name: ignored.
    """
    params = dict(lr=lr, eta=eta, beta1=beta1, beta2=beta2, epsilon=epsilon, wd=wd, clip_gradient=clip_gradient)
    return _run("_adamw_update", (weight, grad, mean, var, _scale(rescale_grad, weight)), out, params)


def mp_adamw_update(
    weight: NDArray,
    grad: NDArray,
    mean: NDArray,
    var: NDArray,
    weight32: NDArray,
    rescale_grad: Any,
    lr: float,
    eta: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0,
    clip_gradient: float = -1,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """`adamw_update` of the float32 copy `weight32` of a 16-bit weight; the result is its rounding."""
    params = dict(lr=lr, eta=eta, beta1=beta1, beta2=beta2, epsilon=epsilon, wd=wd, clip_gradient=clip_gradient)
    inputs = (weight, grad, mean, var, weight32, _scale(rescale_grad, weight))
    return _run("_mp_adamw_update", inputs, out, params)


def multi_adamw_update(
    weights: Arrays,
    grads: Arrays,
    mean: Arrays,
    var: Arrays,
    rescale_grad: Any,
    lrs: Sequence[float],
    wds: Sequence[float],
    etas: Sequence[float],
    out: Any = None,
    name: str | None = None,
    size: int = 0,
    **params: Any,
) -> Any:
    """`adamw_update` of several weights in one call, with a rate and decay for each.

    Raises:
        ArgumentError: lists of different lengths.
    """
    inputs = [*_interleaved("multi_adamw_update", weights, grads, mean, var), _scale(rescale_grad, weights[0])]
    given = dict(lrs=lrs, wds=wds, etas=etas, num_weights=size or len(weights), **params)
    return _run("_multi_adamw_update", inputs, out, given)


def multi_mp_adamw_update(
    weights: Arrays,
    grads: Arrays,
    mean: Arrays,
    var: Arrays,
    weights32: Arrays,
    rescale_grad: Any,
    lrs: Sequence[float],
    wds: Sequence[float],
    etas: Sequence[float],
    out: Any = None,
    name: str | None = None,
    size: int = 0,
    **params: Any,
) -> Any:
    """`mp_adamw_update` of several weights in one call.

    Raises:
        ArgumentError: lists of different lengths.
    """
    groups = _interleaved("multi_mp_adamw_update", weights, grads, mean, var, weights32)
    given = dict(lrs=lrs, wds=wds, etas=etas, num_weights=size or len(weights), **params)
    return _run("_multi_mp_adamw_update", [*groups, _scale(rescale_grad, weights[0])], out, given)


def multi_lamb_update(
    weights: Arrays,
    grads: Arrays,
    mean: Arrays,
    var: Arrays,
    step_count: Sequence[int],
    lrs: Sequence[float],
    wds: Sequence[float],
    out: Any = None,
    num_tensors: int = 0,
    **params: Any,
) -> Any:
    """Both phases of LAMB for several weights in one call; `mean` and `var` are written.

    Raises:
        ArgumentError: lists of different lengths.
    """
    inputs = _interleaved("multi_lamb_update", weights, grads, mean, var)
    given = dict(learning_rates=lrs, wds=wds, step_count=step_count, num_tensors=num_tensors or len(weights), **params)
    return _run("_multi_lamb_update", inputs, out, given)


def multi_mp_lamb_update(
    weights: Arrays,
    grads: Arrays,
    mean: Arrays,
    var: Arrays,
    weights32: Arrays,
    step_count: Sequence[int],
    lrs: Sequence[float],
    wds: Sequence[float],
    out: Any = None,
    num_tensors: int = 0,
    **params: Any,
) -> Any:
    """`multi_lamb_update` of the float32 copies `weights32` of 16-bit weights.

    Raises:
        ArgumentError: lists of different lengths.
    """
    inputs = _interleaved("multi_mp_lamb_update", weights, grads, mean, var, weights32)
    given = dict(learning_rates=lrs, wds=wds, step_count=step_count, num_tensors=num_tensors or len(weights), **params)
    return _run("_multi_mp_lamb_update", inputs, out, given)


def populate(contrib: ModuleType) -> None:
    """Add the functions to `nd.contrib`."""
    for made in (
        adamw_update,
        mp_adamw_update,
        multi_adamw_update,
        multi_mp_adamw_update,
        multi_lamb_update,
        multi_mp_lamb_update,
    ):
        setattr(contrib, made.__name__, made)
