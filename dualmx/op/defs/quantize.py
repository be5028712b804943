"""Quantization: to 8-bit integers and back, and the choice of thresholds by divergence."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.errors import ArgumentError, DtypeError
from ..quantized import HALF_INT8, HALF_INT32, HALF_UINT8, round_to, single, span
from ..registry import op
from ..schema import Positive, Tensor, UntypedTensor

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
