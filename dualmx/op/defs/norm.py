"""Normalization layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
from jax import lax

from ...core.errors import ArgumentError
from ..layer_primitives import layer_primitive
from ..lowering_context import axis_size, psum_over_processes
from ..registry import op
from ..schema import Aux, Ignored, NonNegative, Positive, Tensor, Train, UntypedTensor
from ..shape_rules import signature_of
from ..spatial import check_float, check_shape, known, widen
from ..traits import MOVING_STATISTICS, NAMED_OUTPUT, Layer, Quantized


def _channel_axis(name: str, axis: int, data: jax.Array) -> int:
    if not -data.ndim <= axis < data.ndim:
        raise ArgumentError(f"{name}: axis={axis}: expected a value in [{-data.ndim}, {data.ndim}) for {data.shape}")
    return axis % data.ndim


def _wide(x: jax.Array) -> Any:
    """The element type of statistics of x."""
    return jnp.float32 if x.dtype.itemsize == 2 else x.dtype


def _per_channel(v: jax.Array, axis: int, ndim: int) -> jax.Array:
    """A per-channel vector shaped to broadcast along `axis`."""
    return v.reshape((1,) * axis + (-1,) + (1,) * (ndim - axis - 1))


def _moments(x: jax.Array, axis: int) -> tuple[jax.Array, jax.Array]:
    """Per-channel mean and biased variance in one pass over x, shifted by one sample so that nothing cancels."""
    others = tuple(i for i in range(x.ndim) if i != axis)
    first = lax.slice(x, (0,) * x.ndim, [n if i == axis else 1 for i, n in enumerate(x.shape)])
    shift = lax.stop_gradient(first.astype(_wide(x)))
    d = x.astype(_wide(x)) - shift
    s1, s2 = jnp.mean(d, others), jnp.mean(d * d, others)
    return shift.reshape(-1) + s1, jnp.maximum(s2 - s1 * s1, 0)


def _scale_shift(x: jax.Array, mean: jax.Array, scale: jax.Array, beta: jax.Array, axis: int) -> jax.Array:
    m, s, b = (_per_channel(v, axis, x.ndim) for v in (mean, scale, beta))
    return ((x.astype(_wide(x)) - m) * s + b).astype(x.dtype)


@partial(jax.custom_vjp, nondiff_argnums=(3, 4))
def _batch_normalize(x: jax.Array, gamma: jax.Array, beta: jax.Array, eps: float, axis: int) -> Any:
    """Normalize by batch statistics; returns (y, mean, var), of which only y passes gradients."""
    return _batch_fwd(x, gamma, beta, eps, axis)[0]


def _batch_fwd(x: jax.Array, gamma: jax.Array, beta: jax.Array, eps: float, axis: int) -> tuple[Any, Any]:
    y, mean, var, inv = normalize_batch(x, gamma, beta, eps=eps, axis=axis)
    return (y, mean, var), (x, gamma, mean, inv)


def _batch_bwd(eps: float, axis: int, res: Any, cts: Any) -> tuple[jax.Array, ...]:
    return normalize_batch_vjp(*res, cts[0], axis=axis)


@layer_primitive
def normalize_batch(x: jax.Array, gamma: jax.Array, beta: jax.Array, *, eps: float, axis: int) -> tuple[jax.Array, ...]:
    """The data normalized by their own statistics per channel, mean, biased variance and 1/√(variance + eps)."""
    mean, var = _moments(x, axis)
    inv = lax.rsqrt(var + eps)
    return _scale_shift(x, mean, gamma * inv, beta, axis), mean, var, inv


@layer_primitive
def normalize_batch_vjp(
    x: jax.Array, gamma: jax.Array, mean: jax.Array, inv: jax.Array, cotangent: jax.Array, *, axis: int
) -> tuple[jax.Array, ...]:
    """The gradients of data, gamma and beta from that of the normalized data."""
    others = tuple(i for i in range(x.ndim) if i != axis)
    count = math.prod(x.shape[i] for i in others)
    dy = cotangent.astype(_wide(x))
    centred = x.astype(_wide(x)) - _per_channel(mean, axis, x.ndim)
    dbeta = jnp.sum(dy, others)
    dgamma = jnp.sum(dy * centred, others) * inv
    slope = gamma * inv
    a, b, c = (_per_channel(v, axis, x.ndim) for v in (slope, slope * inv * dgamma / count, slope * dbeta / count))
    return (dy * a - centred * b - c).astype(x.dtype), dgamma, dbeta


_batch_normalize.defvjp(_batch_fwd, _batch_bwd)


@partial(jax.custom_vjp, nondiff_argnums=(3, 4, 5, 6))
def _joint_normalize(
    x: jax.Array, gamma: jax.Array, beta: jax.Array, eps: float, axis: int, processes: int, key: str
) -> Any:
    """Like `_batch_normalize`, by the statistics of all devices of the program, and of `processes`, together."""
    return _joint_fwd(x, gamma, beta, eps, axis, processes, key)[0]


def _joint_fwd(
    x: jax.Array, gamma: jax.Array, beta: jax.Array, eps: float, axis: int, processes: int, key: str
) -> tuple[Any, Any]:
    others = tuple(i for i in range(x.ndim) if i != axis)
    wide = x.astype(_wide(x))
    rows = jnp.full((1,), math.prod(x.shape[i] for i in others), wide.dtype)  # other processes may have other batches
    total, count = psum_over_processes([jnp.sum(wide, others), rows], processes, f"{key} mean")
    mean = total / count
    centred = wide - _per_channel(mean, axis, x.ndim)
    var = psum_over_processes([jnp.sum(centred * centred, others)], processes, f"{key} var")[0] / count
    inv = lax.rsqrt(var + eps)
    return (_scale_shift(x, mean, gamma * inv, beta, axis), mean, var), (x, gamma, mean, inv, count)


def _joint_bwd(
    eps: float, axis: int, processes: int, key: str, res: Any, cts: Any
) -> tuple[jax.Array, jax.Array, jax.Array]:
    x, gamma, mean, inv, count = res
    others = tuple(i for i in range(x.ndim) if i != axis)
    dy = cts[0].astype(_wide(x))
    centred = x.astype(_wide(x)) - _per_channel(mean, axis, x.ndim)
    dbeta, dscale = jnp.sum(dy, others), jnp.sum(dy * centred, others)
    # Each device's parameters receive its own share, which the exchange of gradients sums.
    all_dbeta, all_dscale = psum_over_processes([dbeta, dscale], processes, f"{key} gradient")
    slope = gamma * inv
    a, b, c = (
        _per_channel(v, axis, x.ndim)
        for v in (slope, slope * inv * inv * all_dscale / count, slope * all_dbeta / count)
    )
    return (dy * a - centred * b - c).astype(x.dtype), dscale * inv, dbeta


_joint_normalize.defvjp(_joint_fwd, _joint_bwd)


def _several_normalize(
    processes: int, key: str, x: jax.Array, gamma: jax.Array, beta: jax.Array, eps: float, axis: int
) -> Any:
    return _joint_normalize(x, gamma, beta, eps, axis, processes, key)


def _batch_norm(
    name: str,
    data: jax.Array,
    gamma: jax.Array,
    beta: jax.Array,
    moving_mean: jax.Array,
    moving_var: jax.Array,
    train: bool,
    *,
    eps: float,
    momentum: float,
    fix_gamma: bool,
    use_global_stats: bool,
    axis: int = 1,
    normalize: Any = _batch_normalize,
    **_: Any,
) -> tuple[jax.Array, ...]:
    check_float(name, data)
    at = _channel_axis(name, axis, data)
    channels = (data.shape[at],)
    vectors = {"gamma": gamma, "beta": beta, "moving_mean": moving_mean, "moving_var": moving_var}
    for n, v in vectors.items():
        check_shape(name, n, v.shape, channels, f"the data {data.shape} have {channels[0]} channels on axis {axis}")
    wide = _wide(data)
    g = jnp.ones(channels, wide) if fix_gamma else gamma.astype(wide)
    b = beta.astype(wide)
    stop = lax.stop_gradient
    if train and not use_global_stats:
        normalized: Any = normalize(data, g, b, eps, at)
        y, mean, var = normalized[0], stop(normalized[1]), stop(normalized[2])
        next_mean = moving_mean * momentum + mean.astype(moving_mean.dtype) * (1 - momentum)
        next_var = moving_var * momentum + var.astype(moving_var.dtype) * (1 - momentum)
    else:
        next_mean, next_var = moving_mean, moving_var
        mean, var = stop(moving_mean).astype(wide), stop(moving_var).astype(wide)
        y = _scale_shift(data, mean, g * lax.rsqrt(var + eps), b, at)
    inv = lax.rsqrt(var + eps)
    ones = (jnp.ones_like(gamma),) if fix_gamma else ()
    return y, mean, inv, *ones, stop(next_mean), stop(next_var)


def _channel_vectors(*names: str, default_axis: int = 1) -> Any:
    def complete(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        data, axis = shapes.get("data"), getattr(p, "axis", default_axis)
        if not data or not -len(data) <= axis < len(data) or not known(data[axis]):
            return {}
        return dict.fromkeys(names, (data[axis],))

    return complete


def _aux_dtypes(p: Any, dtypes: dict[str, str]) -> dict[str, str]:
    """Scales and statistics are float32 for 16-bit data, of the data's own type otherwise."""
    data = dtypes.get("data")
    if data is None:
        return {}
    kind = "float32" if str(data) in ("float16", "bfloat16") else str(data)
    return dict.fromkeys(("gamma", "beta", "moving_mean", "moving_var"), kind)


_BN: dict[str, Any] = {
    "outputs": 3,
    "output_names": ("output", "mean", "var"),
    "visible": lambda p: 3 if p.output_mean_var else 1,
    "complete": _channel_vectors("gamma", "beta", "moving_mean", "moving_var"),
    "complete_dtype": _aux_dtypes,
    "writes_aux": lambda p, train: train and not p.use_global_stats,
    "mutates": lambda p: (1,) if p.fix_gamma else (),
}


@op(
    aliases=("_npx_batch_norm", "BatchNorm_v1"),
    **_BN,
    traits=replace(
        MOVING_STATISTICS,
        has_named_output=True,
        layer=Layer.NORMALIZATION,
        quantized=Quantized(
            "_contrib_quantized_batch_norm",
            is_calibrated=True,
            needs_range=True,
            data_inputs=1,
            accepts=lambda p: p["axis"] == 1 and not p["output_mean_var"],
        ),
    ),
)
def BatchNorm(
    data: Tensor,
    gamma: UntypedTensor,
    beta: UntypedTensor,
    moving_mean: Aux,
    moving_var: Aux,
    train: Train = False,
    *,
    eps: NonNegative = 1e-3,
    momentum: float = 0.9,
    fix_gamma: bool = True,
    use_global_stats: bool = False,
    output_mean_var: bool = False,
    axis: int = 1,
    cudnn_off: Annotated[bool, Ignored] = False,
    min_calib_range: Annotated[float | None, Ignored] = None,
    max_calib_range: Annotated[float | None, Ignored] = None,
) -> tuple[jax.Array, ...]:
    """`(x − mean) / √(var + eps) · gamma + beta` per channel (Ioffe & Szegedy 2015).

    When training, mean and biased variance are those of the batch, and each moving statistic becomes
    moving · momentum + batch · (1 − momentum); otherwise, or with `use_global_stats`, the moving ones are used. With
    `fix_gamma`, gamma counts as 1, gets gradient 0, and its array is filled with ones. Outputs: the normalized data,
    the mean, and 1/√(var + eps); the last two are shown with `output_mean_var` and pass no gradient.

    Shapes: data any with C channels on `axis`; gamma, beta, moving_mean, moving_var (C,), float32 for 16-bit data.
    """
    return _batch_norm(
        "BatchNorm", data, gamma, beta, moving_mean, moving_var, train, eps=eps, momentum=momentum,
        fix_gamma=fix_gamma, use_global_stats=use_global_stats, axis=axis,
    )  # fmt: skip


@op(**_BN, traits=MOVING_STATISTICS)
@signature_of(BatchNorm.fn)
def _contrib_BatchNormWithReLU(**given: Any) -> tuple[jax.Array, ...]:
    """`max(BatchNorm(data), 0)`; see `BatchNorm` for inputs, parameters and shapes."""
    y, *rest = _batch_norm("_contrib_BatchNormWithReLU", **given)
    return jnp.where(y > 0, y, 0), *rest


def _several(p: Any, train: bool) -> bool:
    return train and not p.use_global_stats and p.ndev > 1


@op(**_BN, is_collective=_several, traits=MOVING_STATISTICS)
@signature_of(BatchNorm.fn, "axis", "cudnn_off", "min_calib_range", "max_calib_range")
def _contrib_SyncBatchNorm(
    *,
    ndev: Positive = 1,
    key: Annotated[str, Ignored] = "",
    processes: Positive = 1,
    exchange: str = "",
    **given: Any,
) -> tuple[jax.Array, ...]:
    """`BatchNorm`, axis 1, by the statistics of the batches of `ndev` devices of each of some `processes` together.

    Each device must record the same program before a value of one is read; each process must run the same programs, in
    which `exchange` names the layer.

    Reference: Zhang et al. 2018, Context Encoding for Semantic Segmentation.
    """
    if ndev > 1 and axis_size() not in (1, ndev, ndev * processes):
        raise ArgumentError(
            f"_contrib_SyncBatchNorm: ndev={ndev}, but {axis_size()} devices have recorded the same: each must compute "
            "a part of the batch, and the parts must have the same shape"
        )
    normalize: Any = _batch_normalize
    if min(ndev, axis_size()) > 1 or processes > 1:
        # A program that runs on the devices of all processes exchanges everything by itself.
        beyond = 1 if axis_size() == ndev * processes else processes
        normalize = partial(_several_normalize, beyond, exchange)
    return _batch_norm("_contrib_SyncBatchNorm", **given, normalize=normalize)


def _standardize(x: jax.Array, axes: Sequence[int], eps: float) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Wide `(x − mean)/std`, mean and std = √(var + eps) over `axes` (kept as 1)."""
    x = widen(x)
    mean = jnp.mean(x, tuple(axes), keepdims=True)
    centred = x - mean
    var = jnp.mean(centred * centred, tuple(axes), keepdims=True)
    std = jnp.sqrt(var + eps)
    return centred * lax.rsqrt(var + eps), lax.stop_gradient(mean), lax.stop_gradient(std)


@op(
    aliases=("_npx_layer_norm",),
    outputs=3,
    output_names=("output", "mean", "std"),
    visible=lambda p: 3 if p.output_mean_var else 1,
    complete=_channel_vectors("gamma", "beta"),
    traits=NAMED_OUTPUT,
)
def LayerNorm(
    data: Tensor, gamma: Tensor, beta: Tensor, *, axis: int = -1, eps: float = 1e-5, output_mean_var: bool = False
) -> tuple[jax.Array, ...]:
    """`(x − mean) / √(var + eps) · gamma + beta` with statistics along `axis` (Ba et al. 2016).

    Shapes: data any with K entries on `axis`, gamma and beta (K,). Outputs: the normalized data, and, shown with
    `output_mean_var`, mean and √(var + eps) with `axis` kept as 1, which pass no gradient. Sums of 16-bit floats are
    kept in float32.
    """
    check_float("LayerNorm", data)
    at = _channel_axis("LayerNorm", axis, data)
    for n, v in (("gamma", gamma), ("beta", beta)):
        check_shape("LayerNorm", n, v.shape, data.shape[at : at + 1], f"data {data.shape}, axis={axis}")
    y, mean, std = _standardize(data, (at,), eps)
    g, b = (_per_channel(widen(v), at, data.ndim) for v in (gamma, beta))
    return tuple(v.astype(data.dtype) for v in (y * g + b, mean, std))


@op(complete=_channel_vectors("gamma", "beta"), traits=NAMED_OUTPUT)
def InstanceNorm(data: Tensor, gamma: Tensor, beta: Tensor, *, eps: float = 1e-3) -> jax.Array:
    """`(x − mean) / √(var + eps) · gamma + beta` with statistics per sample and channel (Ulyanov et al. 2016).

    Shapes: data (N, C, *S) with at least one spatial axis, gamma and beta (C,).
    """
    check_float("InstanceNorm", data)
    if data.ndim < 3:
        raise ArgumentError(f"InstanceNorm: data has shape {data.shape}: expected at least 3 axes (batch, channels, …)")
    for n, v in (("gamma", gamma), ("beta", beta)):
        check_shape("InstanceNorm", n, v.shape, data.shape[1:2], f"data {data.shape}")
    y = _standardize(data, range(2, data.ndim), eps)[0]
    g, b = (_per_channel(widen(v), 1, data.ndim) for v in (gamma, beta))
    return (y * g + b).astype(data.dtype)


def _group_vectors(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    return {"gamma": (p.num_groups,), "beta": (p.num_groups,)}


@op(
    outputs=3,
    output_names=("output", "mean", "std"),
    visible=lambda p: 3 if p.output_mean_var else 1,
    complete=_group_vectors,
)
def GroupNorm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    *,
    num_groups: Positive = 1,
    eps: float = 1e-5,
    output_mean_var: bool = False,
) -> tuple[jax.Array, ...]:
    """`(x − mean) / √(var + eps) · gamma + beta` with statistics per sample and group of channels (Wu & He 2018).

    Shapes: data (N, C, *S) with C divisible by num_groups, gamma and beta (num_groups,). Outputs: the normalized data,
    and, shown with `output_mean_var`, mean and √(var + eps), both (N, num_groups), which pass no gradient.
    """
    check_float("GroupNorm", data)
    if data.ndim < 3:
        raise ArgumentError(f"GroupNorm: data has shape {data.shape}: expected at least 3 axes (batch, channels, …)")
    if data.shape[1] % num_groups:
        raise ArgumentError(f"GroupNorm: num_groups={num_groups}: expected a divisor of the {data.shape[1]} channels")
    for n, v in (("gamma", gamma), ("beta", beta)):
        check_shape("GroupNorm", n, v.shape, (num_groups,), f"num_groups={num_groups}")
    x = data.reshape(data.shape[0], num_groups, -1)
    y, mean, std = _standardize(x, (2,), eps)
    y = y * widen(gamma)[:, None] + widen(beta)[:, None]
    return tuple(v.astype(data.dtype) for v in (y.reshape(data.shape), mean[:, :, 0], std[:, :, 0]))


@op()
def L2Normalization(
    data: Tensor, *, eps: float = 1e-10, mode: Literal["channel", "instance", "spatial"] = "instance"
) -> jax.Array:
    """`x / √(Σ x² + eps)`, summing over all axes but the first ("instance"), axis 1, or axes 2 and up ("spatial").

    Shapes: data (N, …), at least 3 axes for "channel" and "spatial"; kept.
    """
    check_float("L2Normalization", data)
    if data.ndim < (1 if mode == "instance" else 3):
        raise ArgumentError(f"L2Normalization: data has shape {data.shape}: too few axes for mode={mode!r}")
    axes = {"channel": (1,), "instance": tuple(range(1, data.ndim)), "spatial": tuple(range(2, data.ndim))}[mode]
    x = widen(data)
    return (x * lax.rsqrt(jnp.sum(x * x, axes, keepdims=True) + eps)).astype(data.dtype)


@op(traits=NAMED_OUTPUT)
def LRN(data: Tensor, *, alpha: float = 1e-4, beta: float = 0.75, knorm: float = 2.0, nsize: Positive) -> jax.Array:
    """Local response normalization `x · (knorm + alpha/nsize · Σ x²)^−beta` over `nsize` neighbouring channels (odd).

    Shapes: data (N, C, H, W), kept. Source: Krizhevsky et al. 2012, section 3.3.
    """
    check_float("LRN", data)
    if data.ndim != 4:
        raise ArgumentError(f"LRN: data has shape {data.shape}: expected (N, C, H, W)")
    x = widen(data)
    half = (nsize - 1) // 2
    squares = jnp.pad(x * x, ((0, 0), (half, half), (0, 0), (0, 0)))
    channels = data.shape[1]
    total = sum(squares[:, i : i + channels] for i in range(2 * half + 1))
    return (x * (knorm + (alpha / nsize) * total) ** -beta).astype(data.dtype)
