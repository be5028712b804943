"""Operators on quantized values: every tensor comes with the two ends of the range that its integers stand for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
from jax import lax

from ...core.errors import ArgumentError, DtypeError
from ..quantized import HALF_INT32, eight_bits, half, product_range, round_to, single, span, steps
from ..registry import op
from ..schema import ABSENT, Aux, Count, DType, Ignored, NonNegative, Positive, Shape, UntypedTensor, When
from ..spatial import channels_last, check_rank, check_shape, known, per_axis
from .conv import Layout, Tune, _channels_at, _weight_shape
from .pool import Pooling

Three = tuple[jax.Array, jax.Array, jax.Array]
Bias = Annotated[UntypedTensor, When("no_bias", False)]


@op(outputs=3, output_names=("output", "min_output", "max_output"))
def _contrib_quantized_flatten(data: UntypedTensor, min_data: UntypedTensor, max_data: UntypedTensor) -> Three:
    """Merge all axes but the first; the range passes through. Shapes: data (N, …) -> (N, K), (1,), (1,)."""
    low, high = single("_contrib_quantized_flatten", min_data=min_data, max_data=max_data)
    eight_bits("_contrib_quantized_flatten", "data", data)
    return data.reshape(data.shape[0], math.prod(data.shape[1:])), low, high


@op(outputs=3, output_names=("output", "min_output", "max_output"))
def _contrib_quantized_act(
    data: UntypedTensor,
    min_data: UntypedTensor,
    max_data: UntypedTensor,
    *,
    act_type: Literal["relu", "sigmoid", "softrelu", "softsign", "tanh"],
) -> Three:
    """max(data, 0) of quantized values; the range passes through. Only "relu" exists. Shapes: data any."""
    name = "_contrib_quantized_act"
    if act_type != "relu":
        raise ArgumentError(f"{name}: act_type={act_type!r}: expected 'relu', the only one for quantized data")
    eight_bits(name, "data", data)
    low, high = single(name, min_data=min_data, max_data=max_data)
    return jnp.maximum(data, jnp.zeros((), data.dtype)), low, high


@op(outputs=3, output_names=("output", "min_output", "max_output"))
def _contrib_quantized_pooling(
    data: UntypedTensor,
    min_data: UntypedTensor,
    max_data: UntypedTensor,
    *,
    kernel: Shape = (),
    pool_type: Literal["max", "avg", "sum", "lp"] = "max",
    global_pool: bool = False,
    cudnn_off: Annotated[bool, Ignored] = False,
    pooling_convention: Literal["valid", "full", "same"] = "valid",
    stride: Shape = (),
    pad: Shape = (),
    p_value: Annotated[int | None, Ignored] = None,
    count_include_pad: bool | None = None,
    layout: Literal["NCHW"] | None = None,
) -> Three:
    """Largest or mean element of windows of quantized images, means rounded; the range passes through.

    Shapes: data (N, C, H, W), int8 or uint8; otherwise as `Pooling` with `pool_type` "max" or "avg".
    """
    name = "_contrib_quantized_pooling"
    eight_bits(name, "data", data)
    check_rank(name, data.shape, 2, "quantized pooling")
    if pool_type not in ("max", "avg"):
        raise ArgumentError(f"{name}: pool_type={pool_type!r}: expected 'max' or 'avg'")
    low, high = single(name, min_data=min_data, max_data=max_data)
    params: dict[str, Any] = {"kernel": kernel, "pool_type": pool_type, "global_pool": global_pool, "stride": stride}
    params |= {"pooling_convention": pooling_convention, "pad": pad, "count_include_pad": count_include_pad}
    pooled = Pooling.call(**params).apply((data.astype(jnp.float32),))[0]
    return round_to(pooled, data.dtype), low, high


def _ranges(name: str, args: Sequence[jax.Array], count: int) -> list[tuple[jax.Array, jax.Array]]:
    found = single(name, **{f"range {i}": r for i, r in enumerate(args)})
    return [(found[2 * i], found[2 * i + 1]) for i in range(count)]


def _ranges_of_one(p: Any, shapes: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    return {f"arg{i}_{end}": (1,) for i in range(p.num_args) for end in ("min", "max")}


@op(
    outputs=3,
    output_names=("output", "min_output", "max_output"),
    attached=("min", "max"),
    complete=_ranges_of_one,
)
def _contrib_quantized_concat(*data: UntypedTensor, num_args: Count = 0, dim: int = 1) -> Three:
    """Concatenate quantized arrays on a common scale: the widest of their ranges.

    Inputs are the arrays, then the least and largest value of each in turn. The result is uint8 if all are, int8
    otherwise. Shapes: as `concat`, with ranges (1,) -> the array, (1,), (1,).
    """
    name, n = "_contrib_quantized_concat", num_args
    if n < 1 or len(data) != 3 * n:
        raise ArgumentError(
            f"{name}: num_args={n}: expected {3 * n} inputs (arrays, then pairs of ends), got {len(data)}"
        )
    arrays = data[:n]
    for i, a in enumerate(arrays):
        eight_bits(name, f"data {i}", a)
    ranges = _ranges(name, data[n:], n)
    low, high = ranges[0]
    for other in ranges[1:]:
        low, high = jnp.minimum(low, other[0]), jnp.maximum(high, other[1])
    dtype = jnp.uint8 if all(a.dtype == jnp.uint8 for a in arrays) else jnp.int8
    top, parts = span(low, high), []
    for a, ends in zip(arrays, ranges, strict=True):
        scale = span(*ends) / half(a) * (half(jnp.zeros((), dtype)) / top)
        parts.append(round_to(a.astype(jnp.float32) * scale, dtype))
    try:
        return jnp.concatenate(parts, dim), low, high
    except (ValueError, TypeError) as e:
        raise ArgumentError(f"{name}: dim={dim}, shapes {[a.shape for a in arrays]}: {e}") from None


def _pair(name: str, lhs: jax.Array, rhs: jax.Array) -> None:
    eight_bits(name, "lhs", lhs)
    eight_bits(name, "rhs", rhs)
    check_shape(name, "rhs", rhs.shape, lhs.shape, "that of lhs")


def _calibrated(low: float | None, high: float | None) -> tuple[jax.Array, jax.Array] | None:
    if low is None or high is None:
        return None
    return jnp.asarray([low], jnp.float32), jnp.asarray([high], jnp.float32)


@op(outputs=3, output_names=("output", "min_output", "max_output"))
def _contrib_quantized_elemwise_add(
    lhs: UntypedTensor,
    rhs: UntypedTensor,
    lhs_min: UntypedTensor,
    lhs_max: UntypedTensor,
    rhs_min: UntypedTensor,
    rhs_max: UntypedTensor,
    *,
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
) -> Three:
    """Sum of quantized arrays: 32-bit over the sum of both ranges, or 8-bit over the thresholds if they are given.

    The 8-bit result is uint8 if both inputs are. Shapes: lhs, rhs equal, ranges (1,) -> that of lhs, (1,), (1,).
    """
    name = "_contrib_quantized_elemwise_add"
    _pair(name, lhs, rhs)
    ends = single(name, lhs_min=lhs_min, lhs_max=lhs_max, rhs_min=rhs_min, rhs_max=rhs_max)
    one, two = span(*ends[:2]), span(*ends[2:])
    given = _calibrated(min_calib_range, max_calib_range)
    if given is None:
        top = one + two
        real = lhs.astype(jnp.float32) * (one / half(lhs)) + rhs.astype(jnp.float32) * (two / half(rhs))
        return round_to((real * (HALF_INT32 / top)).astype(jnp.float64), jnp.int32), -top, top
    dtype = jnp.uint8 if lhs.dtype == rhs.dtype == jnp.uint8 else jnp.int8
    # One factor per input, so that sums half-way between two integers are exact and round to the even one.
    steps_of_one = half(jnp.zeros((), dtype)) / span(*given)
    by_lhs, by_rhs = one * steps_of_one / half(lhs), two * steps_of_one / half(rhs)
    return round_to(lhs.astype(jnp.float32) * by_lhs + rhs.astype(jnp.float32) * by_rhs, dtype), *given


@op(outputs=3, visible=lambda p: 1 if p.enable_float_output else 3, output_names=("output", "min_output", "max_output"))
def _contrib_quantized_elemwise_mul(
    lhs: UntypedTensor,
    rhs: UntypedTensor,
    lhs_min: UntypedTensor,
    lhs_max: UntypedTensor,
    rhs_min: UntypedTensor,
    rhs_max: UntypedTensor,
    *,
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
    enable_float_output: bool = False,
) -> Three:
    """Product of int8 arrays: 32-bit, int8 over the thresholds if they are given, or float32.

    Shapes: lhs, rhs equal, ranges (1,) -> that of lhs, (1,), (1,); with `enable_float_output` the product alone.
    """
    name = "_contrib_quantized_elemwise_mul"
    _pair(name, lhs, rhs)
    ends = single(name, lhs_min=lhs_min, lhs_max=lhs_max, rhs_min=rhs_min, rhs_max=rhs_max)
    one, two = span(*ends[:2]), span(*ends[2:])
    product = lhs.astype(jnp.int32) * rhs.astype(jnp.int32)
    step = one / steps(lhs) * (two / steps(rhs))
    top = product_range(lhs, one, rhs, two)
    if enable_float_output:
        return product.astype(jnp.float32) * step, -top, top
    given = _calibrated(min_calib_range, max_calib_range)
    if given is None:
        return product, -top, top
    return round_to(product.astype(jnp.float32) * (step * 127 / span(*given)), jnp.int8), *given


@op(outputs=3, output_names=("output", "min_output", "max_output"))
def _contrib_quantized_embedding(
    data: UntypedTensor,
    weight: UntypedTensor,
    min_weight: UntypedTensor,
    max_weight: UntypedTensor,
    *,
    input_dim: Positive,
    output_dim: Positive,
    dtype: Annotated[DType, Ignored] = "float32",
    sparse_grad: Annotated[bool, Ignored] = False,
) -> Three:
    """Rows of a quantized table; ids out of range are clipped.

    Shapes: data any, weight (input_dim, output_dim) -> (*data, output_dim), (1,), (1,).
    """
    name = "_contrib_quantized_embedding"
    check_shape(name, "weight", weight.shape, (input_dim, output_dim), "input_dim, output_dim")
    eight_bits(name, "weight", weight)
    low, high = single(name, min_weight=min_weight, max_weight=max_weight)
    return weight[jnp.clip(data.astype(jnp.int32), 0, input_dim - 1)], low, high


def _channel_shapes(p: Any, shapes: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    data = shapes.get("data")
    out: dict[str, tuple[int, ...]] = {"min_data": (1,), "max_data": (1,)}
    if data and len(data) > 1 and known(data[1]):
        out |= dict.fromkeys(("gamma", "beta", "moving_mean", "moving_var"), (data[1],))
    return out


def _wide_inputs(*names: str) -> Any:
    """Ranges and the inputs called `names` are float32, weight and bias int8."""

    def deduced(p: Any, dtypes: Mapping[str, str]) -> dict[str, str]:
        ranges = {f"{end}_{what}": "float32" for end in ("min", "max") for what in ("data", "weight", "bias")}
        return ranges | dict.fromkeys(names, "float32") | {"weight": "int8", "bias": "int8"}

    return deduced


@op(
    outputs=3,
    complete=_channel_shapes,
    complete_dtype=_wide_inputs("gamma", "beta", "moving_mean", "moving_var"),
    writes_aux=lambda p, train: False,
    output_names=("output", "min_output", "max_output"),
)
def _contrib_quantized_batch_norm(
    data: UntypedTensor,
    gamma: UntypedTensor,
    beta: UntypedTensor,
    moving_mean: Aux,
    moving_var: Aux,
    min_data: UntypedTensor,
    max_data: UntypedTensor,
    *,
    eps: NonNegative = 1e-3,
    momentum: Annotated[float, Ignored] = 0.9,
    fix_gamma: bool = True,
    use_global_stats: Annotated[bool, Ignored] = False,
    output_mean_var: Annotated[bool, Ignored] = False,
    axis: int = 1,
    cudnn_off: Annotated[bool, Ignored] = False,
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
) -> Three:
    """Normalise quantized data by the moving statistics, and quantize to int8 over the thresholds.

    Shapes: data (N, C, …), the vectors (C,), ranges (1,) -> that of data, (1,), (1,).
    """
    name = "_contrib_quantized_batch_norm"
    eight_bits(name, "data", data)
    given = _calibrated(min_calib_range, max_calib_range)
    if given is None:
        raise ArgumentError(f"{name}: min_calib_range and max_calib_range are required: expected numbers")
    if axis not in (1, 1 - data.ndim):
        raise ArgumentError(f"{name}: axis={axis}: expected 1, the only one for quantized data")
    low, high = single(name, min_data=min_data, max_data=max_data)
    wide = (1, -1, *(1,) * (data.ndim - 2))
    real = data.astype(jnp.float32) * (span(low, high) / steps(data))
    scale = lax.rsqrt(moving_var + eps) if fix_gamma else gamma * lax.rsqrt(moving_var + eps)
    out = real * scale.reshape(wide) + (beta - moving_mean * scale).reshape(wide)
    return round_to(out * (127 / span(*given)), jnp.int8), *given


def _with_bias(
    name: str, out: jax.Array, top: jax.Array, bias: Any, ends: Sequence[Any], shape: tuple[int, ...]
) -> jax.Array:
    """Add an int8 bias, rescaled to the steps of the 32-bit sums."""
    if bias is None:
        return out
    low, high = single(name, min_bias=ends[0], max_bias=ends[1])
    step = top / 2147483648.0
    scaled = (bias.astype(jnp.float32) * (span(low, high) / steps(bias) / step)).astype(jnp.int32)
    return out + scaled.reshape(shape)


def _dense_shapes(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    data = shapes.get("data")
    out: dict[str, tuple[int, ...]] = dict.fromkeys(("min_data", "max_data", "min_weight", "max_weight"), (1,))
    if not p.no_bias:
        out |= {"bias": (p.num_hidden,), "min_bias": (1,), "max_bias": (1,)}
    if data and known(*data):
        out["weight"] = (p.num_hidden, math.prod(data[1:]) if p.flatten else data[-1])
    return out


@op(
    outputs=3,
    complete=_dense_shapes,
    complete_dtype=_wide_inputs(),
    output_names=("output", "min_output", "max_output"),
)
def _contrib_quantized_fully_connected(
    data: UntypedTensor,
    weight: UntypedTensor,
    bias: Bias = ABSENT,
    min_data: UntypedTensor = ABSENT,
    max_data: UntypedTensor = ABSENT,
    min_weight: UntypedTensor = ABSENT,
    max_weight: UntypedTensor = ABSENT,
    min_bias: Bias = ABSENT,
    max_bias: Bias = ABSENT,
    *,
    num_hidden: Positive,
    no_bias: bool = False,
    flatten: bool = True,
) -> Three:
    """x · weightᵀ + bias of 8-bit integers, summed in 32 bits; the bias is rescaled to the steps of the sums.

    Shapes: as `FullyConnected`; ranges (1,). Returns the sums, and the range of the full 32 bits.
    """
    name = "_contrib_quantized_fully_connected"
    eight_bits(name, "data", data)
    if weight.dtype != jnp.int8:
        raise DtypeError(f"{name}: weight has dtype {weight.dtype}: expected int8")
    ends = single(name, min_data=min_data, max_data=max_data, min_weight=min_weight, max_weight=max_weight)
    one, two = span(*ends[:2]), span(*ends[2:])
    x = data.reshape(data.shape[0], math.prod(data.shape[1:])) if flatten else data
    check_shape(name, "weight", weight.shape, (num_hidden, x.shape[-1]), f"num_hidden={num_hidden}, data {data.shape}")
    sums = lax.dot_general(x.astype(jnp.int32), weight.astype(jnp.int32), (((x.ndim - 1,), (1,)), ((), ())))
    top = product_range(data, one, weight, two)
    return _with_bias(name, sums, top, bias, (min_bias, max_bias), (-1,)), -top, top


def _conv_shapes(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    data = shapes.get("data")
    out: dict[str, tuple[int, ...]] = dict.fromkeys(("min_data", "max_data", "min_weight", "max_weight"), (1,))
    if not p.no_bias:
        out |= {"bias": (p.num_filter,), "min_bias": (1,), "max_bias": (1,)}
    if data and len(data) == len(p.kernel) + 2 and known(data[_channels_at(p.layout)]):
        out["weight"] = _weight_shape(p, data[_channels_at(p.layout)], False)
    return out


@op(
    outputs=3, complete=_conv_shapes, complete_dtype=_wide_inputs(), output_names=("output", "min_output", "max_output")
)
def _contrib_quantized_conv(
    data: UntypedTensor,
    weight: UntypedTensor,
    bias: Bias = ABSENT,
    min_data: UntypedTensor = ABSENT,
    max_data: UntypedTensor = ABSENT,
    min_weight: UntypedTensor = ABSENT,
    max_weight: UntypedTensor = ABSENT,
    min_bias: Bias = ABSENT,
    max_bias: Bias = ABSENT,
    *,
    kernel: Shape,
    stride: Shape = (),
    dilate: Shape = (),
    pad: Shape = (),
    num_filter: Positive,
    num_group: Positive = 1,
    workspace: Annotated[int, Ignored] = 1024,
    no_bias: bool = False,
    cudnn_tune: Annotated[Tune | None, Ignored] = None,
    cudnn_off: Annotated[bool, Ignored] = False,
    layout: Layout | None = None,
) -> Three:
    """Convolution of 8-bit integers, summed in 32 bits; the bias is rescaled to the steps of the sums.

    Shapes: as `Convolution`, channels first; ranges (1,). Returns the sums, and the range of the full 32 bits.
    """
    name, n = "_contrib_quantized_conv", len(kernel)
    eight_bits(name, "data", data)
    if weight.dtype != jnp.int8:
        raise DtypeError(f"{name}: weight has dtype {weight.dtype}: expected int8")
    if channels_last(name, layout, n):
        raise ArgumentError(f"{name}: layout={layout!r}: expected channels first for quantized data")
    check_rank(name, data.shape, n, f"kernel={kernel}")
    want = (num_filter, data.shape[1] // num_group, *kernel)
    check_shape(name, "weight", weight.shape, want, f"data {data.shape}, num_filter={num_filter}, kernel={kernel}")
    ends = single(name, min_data=min_data, max_data=max_data, min_weight=min_weight, max_weight=max_weight)
    one, two = span(*ends[:2]), span(*ends[2:])
    sums = lax.conv_general_dilated(
        data.astype(jnp.int32),
        weight.astype(jnp.int32),
        per_axis(name, "stride", stride, n, 1, 1),
        [(p, p) for p in per_axis(name, "pad", pad, n, 0, 0)],
        rhs_dilation=per_axis(name, "dilate", dilate, n, 1, 1),
        feature_group_count=num_group,
    )
    top = product_range(data, one, weight, two)
    return _with_bias(name, sums, top, bias, (min_bias, max_bias), (-1, *(1,) * n)), -top, top
