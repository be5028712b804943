"""8-bit operators: quantize, dequantize, calibrate, and layers and RNN on quantized data.

Every quantized tensor comes with the two ends of the range that its integers stand for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.errors import ArgumentError, DtypeError
from ..registry import op
from ..schema import (
    ABSENT,
    Aux,
    Count,
    DType,
    Fraction,
    Ignored,
    NonNegative,
    Positive,
    Tensor,
    UntypedTensor,
    When,
)
from ..shape_rules import signature_of
from ..spatial import channels_last, check_rank, check_shape, known, per_axis
from ..traits import ONE, Traits
from .conv import Convolution, _channels_at, _weight_shape
from .pool import Pooling
from .rnn import RNN, _complete, _shapes

HALF_INT8, HALF_UINT8, HALF_INT32 = 127.5, 255.5, 2147483647.5
TOP_INT32 = 2147483648.0


def single(op: str, **ranges: jax.Array) -> tuple[jax.Array, ...]:
    """The ends of ranges as float32 of shape (1,); `ArgumentError` for other shapes."""
    for name, value in ranges.items():
        if value.shape not in ((1,), ()):
            raise ArgumentError(f"{op}: {name} has shape {value.shape}: expected (1,), one number")
    return tuple(v.reshape(1).astype(jnp.float32) for v in ranges.values())


def span(low: jax.Array, high: jax.Array) -> jax.Array:
    """The larger absolute value of two thresholds."""
    return jnp.maximum(jnp.abs(low), jnp.abs(high))


def round_to(x: jax.Array, dtype: Any) -> jax.Array:
    """Round to nearest, halves to even, and saturate to the integer type."""
    info = jnp.iinfo(dtype)
    return jnp.clip(jnp.round(x), float(info.min), float(info.max)).astype(dtype)


def eight_bits(op: str, name: str, data: jax.Array) -> None:
    """Raise `ArgumentError` unless `data` is int8 or uint8."""
    if data.dtype not in (jnp.int8, jnp.uint8):
        raise DtypeError(f"{op}: {name} has dtype {data.dtype}: expected int8 or uint8")


def half(data: jax.Array) -> float:
    """The number of steps between 0 and the threshold when values are rescaled."""
    return HALF_UINT8 if data.dtype == jnp.uint8 else HALF_INT8


def steps(data: jax.Array) -> int:
    """The number of steps between 0 and the threshold when values are multiplied."""
    return 255 if data.dtype == jnp.uint8 else 127


def product_range(a: jax.Array, a_top: jax.Array, b: jax.Array, b_top: jax.Array) -> jax.Array:
    """Largest real value of 32-bit sums of products of quantized values."""
    return a_top / steps(a) * (b_top / steps(b)) * TOP_INT32


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
@signature_of(Pooling.fn)
def _contrib_quantized_pooling(
    data: UntypedTensor, min_data: UntypedTensor, max_data: UntypedTensor, *, pool_type,
    p_value: Annotated[int | None, Ignored] = None, layout: Literal["NCHW"] | None = None, **given: Any,
) -> Three:  # fmt: skip
    """Largest or mean element of windows of quantized images, means rounded; the range passes through.

    Shapes: data (N, C, H, W), int8 or uint8; otherwise as `Pooling` with `pool_type` "max" or "avg".
    """
    name = "_contrib_quantized_pooling"
    eight_bits(name, "data", data)
    check_rank(name, data.shape, 2, "quantized pooling")
    if pool_type not in ("max", "avg"):
        raise ArgumentError(f"{name}: pool_type={pool_type!r}: expected 'max' or 'avg'")
    low, high = single(name, min_data=min_data, max_data=max_data)
    pooled = Pooling.call(pool_type=pool_type, **given).apply((data.astype(jnp.float32),))[0]
    return round_to(pooled, data.dtype), low, high


def _ranges(name: str, args: Sequence[jax.Array], count: int) -> list[tuple[jax.Array, jax.Array]]:
    found = single(name, **{f"range {i}": r for i, r in enumerate(args)})
    return [(found[2 * i], found[2 * i + 1]) for i in range(count)]


def _ranges_of_one(p: Any, shapes: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    return {f"arg{i}_{end}": (1,) for i in range(p.num_args) for end in ("min", "max")}


@op(
    outputs=3,
    output_names=("output", "min_output", "max_output"),
    paired_inputs=("min", "max"),
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
    traits=Traits(initializers={"moving_var": ONE}),
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
@signature_of(Convolution.fn)
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
    kernel,
    stride,
    dilate,
    pad,
    num_filter,
    num_group,
    layout,
    **given: Any,
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


Calibrated = float | None


def _thresholds(name: str, low: Calibrated, high: Calibrated) -> bool:
    """True if both thresholds are given, False if none; `ArgumentError` for one alone."""
    if (low is None) != (high is None):
        raise ArgumentError(
            f"{name}: min_calib_range={low}, max_calib_range={high}: expected both or none of the thresholds"
        )
    return low is not None


def _float32(name: str, data: jax.Array) -> None:
    if data.dtype != jnp.float32:
        raise DtypeError(f"{name}: data has dtype {data.dtype}: expected float32; cast it with .astype()")


@op(outputs=3)
def _contrib_quantize(
    data: Tensor, min_range: UntypedTensor, max_range: UntypedTensor, *, out_type: Literal["int8", "uint8"] = "uint8"
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Quantize with given thresholds: round(data · 127 / t) for int8, round(data · 255 / t) for uint8, saturated.

    t is the larger of |min_range| and |max_range|. Returns the integers and the range they stand for: -t to t for
    int8, the given one for uint8. Shapes: data any, min_range and max_range (1,), float32; no gradients.
    Example: `nd.contrib.quantize(nd.array([0.5]), nd.array([-1.0]), nd.array([1.0]), out_type="int8")[0]` is `[64]`.
    """
    _float32("_contrib_quantize", data)
    low, high = single("_contrib_quantize", min_range=min_range, max_range=max_range)
    data, low, high = map(lax.stop_gradient, (data, low, high))
    top = span(low, high)
    if out_type == "int8":
        return round_to(data * (127 / top), jnp.int8), -top, top
    return round_to(data * (255 / top), jnp.uint8), low, high


@op(outputs=3)
def _contrib_quantize_v2(
    data: Tensor,
    *,
    out_type: Literal["int8", "uint8", "auto"] = "int8",
    min_calib_range: Calibrated = None,
    max_calib_range: Calibrated = None,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Quantize with thresholds known beforehand, or with the least and largest element.

    int8 is round(data · 127.5 / t), uint8 round(data · 255.5 / t), saturated, t the larger of the thresholds'
    absolute values; "auto" is uint8 if the thresholds are given and not negative, else int8. Integers pass as int8.
    Returns the integers, and the range they stand for. Shapes: data any, float32, int8 or uint8 -> its own, (1,), (1,).
    Example: `nd.contrib.quantize_v2(nd.array([-2.0, 1.0]))[0]` is `[-128, 64]`.
    """
    given = _thresholds("_contrib_quantize_v2", min_calib_range, max_calib_range)
    if data.dtype in (jnp.int8, jnp.uint8):
        own = (0.0, HALF_UINT8) if data.dtype == jnp.uint8 else (-HALF_INT8, HALF_INT8)
        low, high = (min_calib_range, max_calib_range) if given else own
        return data.astype(jnp.int8), jnp.asarray([low], jnp.float32), jnp.asarray([high], jnp.float32)
    if data.dtype != jnp.float32:
        raise DtypeError(f"_contrib_quantize_v2: data has dtype {data.dtype}: expected float32, int8 or uint8")
    data = lax.stop_gradient(data)
    low = jnp.asarray([min_calib_range], jnp.float32) if given else jnp.min(data).reshape(1)
    high = jnp.asarray([max_calib_range], jnp.float32) if given else jnp.max(data).reshape(1)
    top = span(low, high)
    if out_type == "uint8" or (out_type == "auto" and min_calib_range is not None and min_calib_range >= 0):
        return round_to(data * (HALF_UINT8 / top), jnp.uint8), low, high
    return round_to(data * (HALF_INT8 / top), jnp.int8), -top, top


@op(outputs=3, output_names=("output", "scale", "shift"))
def _contrib_quantize_asym(
    data: Tensor, *, min_calib_range: Calibrated = None, max_calib_range: Calibrated = None
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Quantize to uint8 with a scale and a shift: round(data · scale + shift), saturated.

    scale = 255 / (max − min), shift = 255 − max · scale; max and min are the given thresholds or the data's own.
    Shapes: data any, float32 -> the same, scale (1,), shift (1,). Example: `nd.contrib.quantize_asym(nd.array([-1.0,
    1.0]))` is `[0, 255]`, `[127.5]`, `[127.5]`.
    """
    _float32("_contrib_quantize_asym", data)
    data = lax.stop_gradient(data)
    if _thresholds("_contrib_quantize_asym", min_calib_range, max_calib_range):
        low, high = (jnp.asarray([v], jnp.float32) for v in (min_calib_range, max_calib_range))
    else:
        low, high = jnp.min(data).reshape(1), jnp.max(data).reshape(1)
    scale = 255 / (high - low)
    shift = 255 - high * scale
    return round_to(data * scale + shift, jnp.uint8), scale, shift


@op()
def _contrib_dequantize(
    data: Tensor, min_range: UntypedTensor, max_range: UntypedTensor, *, out_type: Literal["float32"] = "float32"
) -> jax.Array:
    """Integers as float32: data · t / 127.5 for int8, data · t / 255.5 for uint8, t the larger end of the range.

    Shapes: data any, min_range and max_range (1,) -> that of data; no gradients.
    Example: `nd.contrib.dequantize(nd.array([51], dtype="int8"), nd.array([-1.0]), nd.array([1.0]))` is `[0.4]`.
    """
    low, high = single("_contrib_dequantize", min_range=min_range, max_range=max_range)
    if data.dtype not in (jnp.int8, jnp.uint8):
        raise DtypeError(f"_contrib_dequantize: data has dtype {data.dtype}: expected int8 or uint8")
    half = HALF_INT8 if data.dtype == jnp.int8 else HALF_UINT8
    return data.astype(jnp.float32) * (lax.stop_gradient(span(low, high)) / half)


@op(outputs=3)
def _contrib_requantize(
    data: Tensor,
    min_range: UntypedTensor,
    max_range: UntypedTensor,
    *,
    out_type: Literal["int8", "uint8", "auto"] = "int8",
    min_calib_range: Calibrated = None,
    max_calib_range: Calibrated = None,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Narrow 32-bit results to 8 bits, by known thresholds or by the largest absolute value of the data.

    An element stands for data · t / 2147483647.5, t the larger end of the range. Returns the integers, and the range
    they stand for. Shapes: data any, int32, min_range and max_range (1,) -> that of data, (1,), (1,).
    Example: `nd.contrib.requantize(nd.array([2**30], dtype="int32"), nd.array([-1.0]), nd.array([1.0]))` holds
    `[127]`, `[-0.5]`, `[0.5]`.
    """
    given = _thresholds("_contrib_requantize", min_calib_range, max_calib_range)
    low, high = single("_contrib_requantize", min_range=min_range, max_range=max_range)
    if data.dtype != jnp.int32:
        raise DtypeError(f"_contrib_requantize: data has dtype {data.dtype}: expected int32")
    real = data.astype(jnp.float32) * lax.stop_gradient(span(low, high) / HALF_INT32)
    unsigned = out_type == "uint8" or (out_type == "auto" and min_calib_range is not None and min_calib_range >= 0)
    if given:
        low, high = (jnp.asarray([v], jnp.float32) for v in (min_calib_range, max_calib_range))
        top = span(low, high)
    else:
        top = jnp.max(jnp.abs(real)).reshape(1)
    if unsigned:
        return round_to(real * (255 / top), jnp.uint8), jnp.zeros_like(top), top
    return round_to(real * (127 / top), jnp.int8), -top, top


@op(outputs=2, output_names=("threshold", "divergence"))
def _contrib_calibrate_entropy(
    hist: Tensor, hist_edges: Tensor, *, num_quantized_bins: Positive = 255
) -> tuple[jax.Array, jax.Array]:
    """The threshold that loses least information when a symmetric histogram is quantized to `num_quantized_bins`.

    Of all windows around the middle bin, take the one whose clipped histogram p and its quantized form q have the
    least divergence Σ p log(p / q), both smoothed by 1e-4. Returns threshold and divergence.
    Shapes: hist (B,), hist_edges (B + 1,) with B odd -> (1,), (1,).
    Reference: Migacz, "8-bit Inference with TensorRT", 2017.
    """
    name = "_contrib_calibrate_entropy"
    if hist.ndim != 1 or hist_edges.shape != (hist.shape[0] + 1,):
        raise ArgumentError(f"{name}: hist {hist.shape}, hist_edges {hist_edges.shape}: expected (B,) and (B + 1,)")
    n, levels = hist.shape[0], num_quantized_bins
    middle, least = n // 2, levels // 2
    if levels > n:
        raise ArgumentError(f"{name}: num_quantized_bins={levels}: expected at most the {n} bins of hist")
    at = jnp.arange(n, dtype=jnp.int32)
    counts = hist.astype(jnp.float32)

    def divergence(half: jax.Array) -> jax.Array:
        first, last = middle - half, jnp.minimum(middle + half, n - 1)
        inside = (at >= first) & (at <= last)
        below, above = jnp.sum(jnp.where(at < first, counts, 0)), jnp.sum(jnp.where(at > last, counts, 0))
        p = jnp.where(inside, counts, 0) + jnp.where(at == first, below, 0) + jnp.where(at == last, above, 0)
        # As in MXNet, the first bin of the window counts for p only.
        window = jnp.where(inside & (at > first), counts, 0)
        bin_of = jnp.clip((at - first) // ((last - first + 1) // levels), 0, levels - 1)
        total = jax.ops.segment_sum(window, bin_of, levels)
        share = jax.ops.segment_sum((window != 0).astype(jnp.float32), bin_of, levels)
        q = jnp.where(p != 0, (total / jnp.maximum(share, 1))[bin_of], 0)
        p, q = _smooth(p, inside), _smooth(q, inside)
        p, q = p / jnp.sum(p), q / jnp.sum(q)
        return jnp.sum(jnp.where(inside, p * jnp.log(jnp.where(inside, p / jnp.where(inside, q, 1), 1)), 0))

    halves = np.arange(least, middle + 1, dtype=np.int32)
    found = lax.map(divergence, jnp.asarray(halves))
    best = jnp.argmin(found)
    end = jnp.minimum(middle + jnp.asarray(halves)[best] + 1, n)
    return hist_edges[end].reshape(1), found[best].reshape(1).astype(hist.dtype)


def _smooth(counts: jax.Array, inside: jax.Array) -> jax.Array:
    """Move 1e-4 into every empty bin of the window, taken evenly from the filled ones."""
    empty = inside & (counts == 0)
    full = inside & (counts != 0)
    taken = 1e-4 * jnp.sum(empty).astype(jnp.float32) / jnp.maximum(jnp.sum(full), 1).astype(jnp.float32)
    return jnp.where(empty, jnp.float32(1e-4), jnp.where(full, counts - taken, 0))


def _needed(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    return {"data_scale": (1,), "data_shift": (1,), **_complete(p, shapes)}


def _dtypes(p: Any, dtypes: dict[str, str]) -> dict[str, str]:
    names = ("parameters", "state", "state_cell", "data_scale", "data_shift")
    return {"data": "uint8", **dict.fromkeys(names, "float32")}


def _stepped(vector: jax.Array, p: Any, width: int) -> jax.Array:
    """The parameters with every weight matrix rounded to 255 steps of its largest absolute value."""
    made, _ = _shapes(p, width)
    parts, at = [], 0
    for rows, columns in (shape for matrices in made for shape in matrices):
        matrix = vector[at : at + rows * columns]
        step = jnp.maximum(jnp.max(jnp.abs(matrix)), jnp.float32(1e-30)) / 127
        parts.append(jnp.round(matrix / step) * step)
        at += rows * columns
    return jnp.concatenate([*parts, vector[at:]])


@op(
    outputs=lambda p: 3 if p.state_outputs else 1,
    output_names=("output", "state_output", "statecell_output"),
    complete=_needed,
    complete_dtype=_dtypes,
)
@signature_of(RNN.fn, "sequence_length", "key", "train")
def _contrib_quantized_rnn(
    data: UntypedTensor,
    parameters: UntypedTensor,
    state: UntypedTensor,
    state_cell: Annotated[UntypedTensor, When("mode", "lstm")] = ABSENT,
    data_scale: UntypedTensor = ABSENT,
    data_shift: UntypedTensor = ABSENT,
    *,
    mode,
    p: Annotated[Fraction, Ignored] = 0.0,
    projection_size,
    use_sequence_length,
    **given: Any,
) -> Any:
    """A stack of LSTM layers over uint8 data, with weights rounded to 8 bits; states and results are float32.

    An element of the data stands for (data − data_shift) / data_scale, as `contrib.quantize_asym` makes them. For
    inference only; `mode` is "lstm".
    Shapes: as `RNN`; data_scale and data_shift (1,).
    """
    name = "_contrib_quantized_rnn"
    if mode != "lstm" or projection_size or use_sequence_length:
        raise ArgumentError(f"{name}: mode={mode!r}: expected 'lstm', without projection and sequence lengths")
    if data.dtype != jnp.uint8:
        raise DtypeError(f"{name}: data has dtype {data.dtype}: expected uint8")
    if data.ndim != 3:
        raise ArgumentError(f"{name}: data has shape {data.shape}: expected (time, batch, features)")
    scale, shift = single(name, data_scale=data_scale, data_shift=data_shift)
    q = SimpleNamespace(mode=mode, projection_size=None, **given)
    parameters, state, state_cell = (a.astype(jnp.float32) for a in (parameters, state, state_cell))
    if parameters.shape == (_shapes(q, data.shape[2])[1],):  # RNN refuses others
        parameters = _stepped(parameters, q, data.shape[2])
    real = (data.astype(jnp.float32) - shift) / scale
    return RNN.fn(real, parameters, state, state_cell, mode=mode, **given)
