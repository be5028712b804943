"""Regions of interest: pooling and aligning rectangles of feature maps to one size."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from ...core.errors import ArgumentError
from ..registry import op
from ..schema import Fraction, Shape, Tensor
from ..spatial import check_float, check_rank, widen


def _check(name: str, data: jax.Array, rois: jax.Array, pooled_size: tuple[int, ...]) -> tuple[int, int]:
    check_rank(name, data.shape, 2, "taking regions")
    check_float(name, data)
    if rois.ndim != 2 or rois.shape[1] != 5:
        raise ArgumentError(f"{name}: rois has shape {rois.shape}: expected (R, 5), rows (image, x1, y1, x2, y2)")
    if len(pooled_size) != 2 or min(pooled_size) < 1:
        raise ArgumentError(f"{name}: pooled_size={pooled_size}: expected (height, width), both positive")
    return pooled_size[0], pooled_size[1]


def _bins(first: jax.Array, last: jax.Array, count: int, size: int) -> jax.Array:
    """Mask (count, size) of the pixels in each of `count` bins that cover pixels `first` to `last` inclusive."""
    length = jnp.maximum(last - first + 1, 1).astype(jnp.float32) / count
    k = jnp.arange(count, dtype=jnp.float32)
    begin = jnp.floor(k * length).astype(jnp.int32) + first
    end = jnp.ceil((k + 1) * length).astype(jnp.int32) + first
    at = jnp.arange(size, dtype=jnp.int32)
    return (at >= jnp.clip(begin, 0, size)[:, None]) & (at < jnp.clip(end, 0, size)[:, None])


def _half_away(x: jax.Array) -> jax.Array:
    return (jnp.sign(x) * jnp.floor(jnp.abs(x) + 0.5)).astype(jnp.int32)


@op()
def ROIPooling(data: Tensor, rois: Tensor, *, pooled_size: Shape, spatial_scale: Fraction) -> jax.Array:
    """Max-pool each rectangle of `rois` into a grid of `pooled_size` bins.

    Rows of rois are (image, x1, y1, x2, y2) in input units; times `spatial_scale` and rounded they are pixels of
    `data`, ends included. An empty bin, or any bin of an image number out of range, is 0.
    Shapes: data (N, C, H, W), rois (R, 5) -> (R, C, *pooled_size). `rois` gets no gradient; a bin's gradient goes to
    its first largest pixel.
    """
    rows, columns = _check("ROIPooling", data, rois, pooled_size)
    n, c, height, width = data.shape
    frozen = lax.stop_gradient(data)
    rois = lax.stop_gradient(rois).astype(jnp.float32)
    low = jnp.asarray(-jnp.inf, data.dtype)

    def largest(roi: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Flat position (C, rows, columns) of the largest pixel of each bin, which bins have one, the image."""
        image = roi[0].astype(jnp.int32)
        x1, y1, x2, y2 = _half_away(roi[1:] * jnp.float32(spatial_scale))
        down, across = _bins(y1, y2, rows, height), _bins(x1, x2, columns, width)
        pixels = frozen[jnp.clip(image, 0, n - 1)]
        in_row = jnp.where(across, pixels[:, :, None], low)
        column = jnp.argmax(in_row, -1).astype(jnp.int32)  # (C, H, columns)
        best = jnp.max(in_row, -1)
        in_bin = jnp.where(down[None, :, :, None], best[:, None], low)
        row = jnp.argmax(in_bin, 2).astype(jnp.int32)  # (C, rows, columns)
        at = row * width + jnp.take_along_axis(column, row, 1)
        filled = down.any(1)[:, None] & across.any(1) & (image >= 0) & (image < n)
        return at, filled, jnp.clip(image, 0, n - 1)

    at, filled, image = lax.map(largest, rois)
    flat = data.reshape(n, c, height * width)
    taken = flat[image[:, None, None, None], jnp.arange(c, dtype=jnp.int32)[:, None, None], at]
    return jnp.where(filled[:, None], taken, jnp.asarray(0, data.dtype))


def _weights(start: jax.Array, step: jax.Array, count: int, ratio: int, size: int) -> jax.Array:
    """Weights (count, size) of the pixels in each bin's mean over `ratio` points spread evenly in it, or ceil(step)."""
    samples = jnp.float32(ratio) if ratio > 0 else jnp.ceil(step)
    k = jnp.arange(count, dtype=jnp.float32)
    at = jnp.arange(size, dtype=jnp.float32)

    first, rounds = jnp.zeros(count, jnp.float32), samples
    if ratio <= 0:
        # Of a large bin's points, at most two on each pixel, those far outside of the image count nothing.
        first = jnp.maximum(jnp.floor((-1 - start - k * step) * samples / step - 1), 0)
        rounds = jnp.minimum(samples, 2 * size + 8)

    def add(i: jax.Array, total: jax.Array) -> jax.Array:
        nth = first + i.astype(jnp.float32)
        point = start + k * step + (nth + 0.5) * step / samples
        inside = (point >= -1) & (point <= size) & (nth < samples)
        near = jnp.clip(point, 0, size - 1)[:, None]
        return total + jnp.where(inside[:, None], jnp.maximum(1 - jnp.abs(near - at), 0), 0)

    total = lax.fori_loop(jnp.int32(0), rounds.astype(jnp.int32), add, jnp.zeros((count, size), jnp.float32))
    return total / jnp.maximum(samples, 1)


@op()
def _contrib_ROIAlign(
    data: Tensor,
    rois: Tensor,
    *,
    pooled_size: Shape,
    spatial_scale: float,
    sample_ratio: int = -1,
    position_sensitive: bool = False,
    aligned: bool = False,
) -> jax.Array:
    """Average bilinear samples of each rectangle of `rois` into a grid of `pooled_size` bins.

    Rows of rois are (image, x1, y1, x2, y2) in input units, multiplied by `spatial_scale`, nothing rounded; `aligned`
    moves them by -0.5 and lets them be smaller than a pixel. A bin is the mean of sample_ratio² points, or, when that
    is not positive, of ceil(bin height) · ceil(bin width). Points more than a pixel outside count as 0. With
    `position_sensitive`, channel c of bin (i, j) is read from input channel (c·height + i)·width + j.
    Shapes: data (N, C, H, W), rois (R, 5) -> (R, C or C / (height·width), *pooled_size). `rois` gets no gradient.
    Reference: He et al., "Mask R-CNN".
    """
    rows, columns = _check("_contrib_ROIAlign", data, rois, pooled_size)
    n, c, height, width = data.shape
    if position_sensitive and c % (rows * columns):
        raise ArgumentError(f"_contrib_ROIAlign: {c} channels: expected a multiple of {rows} x {columns} bins")
    wide = widen(data)
    rois = lax.stop_gradient(rois).astype(jnp.float32)
    spec = "cpqhw,ph,qw->cpq" if position_sensitive else "chw,ph,qw->cpq"

    def align(roi: jax.Array) -> jax.Array:
        image = roi[0].astype(jnp.int32)
        corners = roi[1:] * jnp.float32(spatial_scale) - jnp.float32(0.5 if aligned else 0)
        x, y = corners[0], corners[1]
        sides = corners[2:] - corners[:2]
        sides = sides if aligned else jnp.maximum(sides, 1)
        step_x, step_y = sides[0] / columns, sides[1] / rows
        down = _weights(y, step_y, rows, sample_ratio, height)
        across = _weights(x, step_x, columns, sample_ratio, width)
        pixels = wide[jnp.clip(image, 0, n - 1)]
        if position_sensitive:
            pixels = pixels.reshape(-1, rows, columns, height, width)
        down = jnp.where((image >= 0) & (image < n), down, 0)
        out = jnp.einsum(spec, pixels, down.astype(wide.dtype), across.astype(wide.dtype), precision="highest")
        return out.astype(data.dtype)

    return lax.map(align, rois)
