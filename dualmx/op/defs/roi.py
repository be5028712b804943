"""Regions of interest: pooling and aligning; position-sensitive, deformable and rotated forms."""

from __future__ import annotations

import math
from typing import Annotated, Any

import jax
import jax.numpy as jnp
from jax import lax

from ...core.errors import ArgumentError
from .. import interpolation
from ..registry import op
from ..schema import ABSENT, Count, Fraction, Positive, Shape, Tensor, When
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


def _check_regions(name: str, data: jax.Array, rois: jax.Array, fields: int) -> None:
    check_rank(name, data.shape, 2, "taking regions")
    check_float(name, data)
    if rois.ndim != 2 or rois.shape[1] != fields:
        raise ArgumentError(f"{name}: rois has shape {rois.shape}: expected (R, {fields}), image number first")


def _parts(name: str, channels: int, output_dim: int, group: int) -> None:
    if channels != output_dim * group * group:
        raise ArgumentError(
            f"{name}: data has {channels} channels: expected output_dim · group_size², {output_dim * group * group}"
        )


def _round_half_away(x: jax.Array) -> jax.Array:
    return jnp.sign(x) * jnp.floor(jnp.abs(x) + 0.5)


def _legacy_pixel_box(roi: jax.Array, scale: float) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """First (x, y) of a region in pixels of the data, and its sides, the last pixel included."""
    low, high = _round_half_away(roi[1:3]) * scale, (_round_half_away(roi[3:5]) + 1) * scale
    sides = jnp.maximum(high - low, 0.1)
    return low[0], low[1], sides[0], sides[1]


def _groups(bins: int, group: int) -> jax.Array:
    """The part that each bin reads."""
    return jnp.asarray([min(k * group // bins, group - 1) for k in range(bins)], jnp.int32)


@op()
def _contrib_PSROIPooling(
    data: Tensor,
    rois: Tensor,
    *,
    spatial_scale: float,
    output_dim: Positive,
    pooled_size: Positive,
    group_size: Count = 0,
) -> jax.Array:
    """Average each bin of a region over the channels that belong to its position.

    Bin (i, j) of output channel c reads input channel (c·g + i·g/P)·g + j·g/P, with g = group_size (P = pooled_size
    if 0). Rows of rois are (image, x1, y1, x2, y2) in input units, rounded, ends included, times `spatial_scale`.
    Shapes: data (N, output_dim·g², H, W), rois (R, 5) -> (R, output_dim, P, P). An empty bin is 0; `rois` gets no
    gradient. Reference: Dai et al., "R-FCN".
    """
    name, group = "_contrib_PSROIPooling", group_size or pooled_size
    _check_regions(name, data, rois, 5)
    n, channels, height, width = data.shape
    _parts(name, channels, output_dim, group)
    wide, at = widen(data), _groups(pooled_size, group)
    rois = lax.stop_gradient(rois).astype(jnp.float32)

    def mask(start: jax.Array, side: jax.Array, size: int) -> jax.Array:
        k = jnp.arange(pooled_size, dtype=jnp.float32)
        first = jnp.clip(jnp.floor(start + k * (side / pooled_size)), 0, size)
        last = jnp.clip(jnp.ceil(start + (k + 1) * (side / pooled_size)), 0, size)
        pixel = jnp.arange(size, dtype=jnp.float32)
        return ((pixel >= first[:, None]) & (pixel < last[:, None])).astype(wide.dtype)

    def pool(roi: jax.Array) -> jax.Array:
        x, y, across, down = _legacy_pixel_box(roi, spatial_scale)
        rows, columns = mask(y, down, height), mask(x, across, width)
        image = wide[jnp.clip(roi[0].astype(jnp.int32), 0, n - 1)]
        image = image.reshape(output_dim, group, group, height, width)[:, at][:, :, at]
        total = jnp.einsum("cpqhw,ph,qw->cpq", image, rows, columns, precision="highest")
        return total / jnp.maximum(rows.sum(1)[:, None] * columns.sum(1), 1)

    return lax.map(pool, rois).astype(data.dtype)


@op(outputs=2, visible=1, output_names=("output",))
def _contrib_DeformablePSROIPooling(
    data: Tensor,
    rois: Tensor,
    trans: Annotated[Tensor, When("no_trans", False)] = ABSENT,
    *,
    spatial_scale: Fraction,
    output_dim: Positive,
    group_size: Positive,
    pooled_size: Positive,
    part_size: Count = 0,
    sample_per_part: Positive = 1,
    trans_std: Fraction = 0.0,
    no_trans: bool = False,
) -> tuple[jax.Array, jax.Array]:
    """Position-sensitive pooling whose bins are moved by `trans` times `trans_std` times the region's sides.

    A bin is the mean of sample_per_part² bilinear samples, those outside the image left out. `trans` holds (dx, dy) for
    each class and part; part_size is pooled_size if 0.
    Shapes: data (N, output_dim·group_size², H, W), rois (R, 5), trans (R, 2·classes, part_size, part_size) ->
    (R, output_dim, pooled_size, pooled_size). Gradients go to data and trans.
    Reference: Dai et al., "Deformable Convolutional Networks".
    """
    name, parts = "_contrib_DeformablePSROIPooling", part_size or pooled_size
    _check_regions(name, data, rois, 5)
    n, channels, height, width = data.shape
    _parts(name, channels, output_dim, group_size)
    classes = 1
    if not no_trans:
        classes = trans.shape[1] // 2 if trans.ndim == 4 else 0
        if trans.shape != (rois.shape[0], 2 * classes, parts, parts) or not classes or output_dim % classes:
            raise ArgumentError(
                f"{name}: trans has shape {trans.shape}: expected (R, 2·classes, {parts}, {parts}), "
                f"R={rois.shape[0]}, classes a divisor of {output_dim}"
            )
    wide, at = widen(data), _groups(pooled_size, group_size)
    moves = jnp.zeros((rois.shape[0], 2, parts, parts), wide.dtype) if no_trans else widen(trans)
    part_of = jnp.asarray([k * parts // pooled_size for k in range(pooled_size)], jnp.int32)
    rois = lax.stop_gradient(rois).astype(wide.dtype)
    k = jnp.arange(pooled_size, dtype=wide.dtype)
    inner = jnp.arange(sample_per_part, dtype=wide.dtype)

    def pool(given: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        roi, move = given
        x, y, across, down = _legacy_pixel_box(roi, spatial_scale)
        shift = move.reshape(classes, 2, parts, parts)[:, :, part_of][..., part_of] * trans_std
        # (classes, P, P, s, s): rows of bins, columns of bins, samples within.
        step_x, step_y = across / pooled_size, down / pooled_size
        left = k * step_x + (x - 0.5) + shift[:, 0] * across
        top = k[:, None] * step_y + (y - 0.5) + shift[:, 1] * down
        at_x = jnp.broadcast_to(
            left[..., None, None] + inner * (step_x / sample_per_part), (*left.shape, *(inner.size,) * 2)
        )
        at_y = jnp.broadcast_to(top[..., None, None] + inner[:, None] * (step_y / sample_per_part), at_x.shape)
        inside = (at_x >= -0.5) & (at_x <= width - 0.5) & (at_y >= -0.5) & (at_y <= height - 0.5)
        at_x, at_y = jnp.clip(at_x, 0, width - 1), jnp.clip(at_y, 0, height - 1)
        image = wide[jnp.clip(roi[0].astype(jnp.int32), 0, n - 1)]
        maps = image.reshape(classes, output_dim // classes, group_size, group_size, height, width)[:, :, at][
            :, :, :, at
        ]
        taken = _sample_bins(maps, at_y, at_x)
        count = inside.sum((-2, -1)).astype(wide.dtype)[:, None]
        out = jnp.where(inside[:, None], taken, 0).sum((-2, -1)) / jnp.maximum(count, 1)
        shape = (output_dim, pooled_size, pooled_size)
        return out.reshape(shape), jnp.broadcast_to(count, out.shape).reshape(shape)

    out, count = lax.map(pool, (rois, moves))
    return out.astype(data.dtype), lax.stop_gradient(count).astype(data.dtype)


def _sample_bins(maps: jax.Array, y: jax.Array, x: jax.Array) -> jax.Array:
    """Bilinear samples: maps (K, C, P, Q, H, W), positions (K, P, Q, s, s) -> (K, C, P, Q, s, s)."""
    each = jax.vmap(jax.vmap(jax.vmap(interpolation.sample)))
    moved = jnp.moveaxis(maps, 1, 3)  # (K, P, Q, C, H, W)
    return jnp.moveaxis(each(moved, y, x), 3, 1)


@op()
def _contrib_RROIAlign(
    data: Tensor, rois: Tensor, *, pooled_size: Shape, spatial_scale: float, sampling_ratio: int = -1
) -> jax.Array:
    """Average bilinear samples of rotated rectangles into a grid of `pooled_size` bins.

    Rows of rois are (image, centre x, centre y, width, height, degrees), lengths in input units. A bin is the mean of
    sampling_ratio² points, or, when that is not positive, of ceil(bin height) · ceil(bin width). Points more than a
    pixel outside count as 0. Shapes: data (N, C, H, W), rois (R, 6) -> (R, C, *pooled_size); gradients go to data.
    """
    name = "_contrib_RROIAlign"
    _check_regions(name, data, rois, 6)
    if len(pooled_size) != 2 or min(pooled_size) < 1:
        raise ArgumentError(f"{name}: pooled_size={pooled_size}: expected (height, width), both positive")
    bins_down, bins_across = pooled_size
    n, _, height, width = data.shape
    wide = widen(data)
    rois = lax.stop_gradient(rois).astype(jnp.float32)

    def align(roi: jax.Array) -> jax.Array:
        x, y, across, down = (roi[k] * jnp.float32(spatial_scale) for k in (1, 2, 3, 4))
        across, down = jnp.maximum(across, 1), jnp.maximum(down, 1)
        angle = roi[5] * jnp.float32(math.pi / 180)
        step_y, step_x = down / bins_down, across / bins_across
        fixed = jnp.float32(sampling_ratio)
        rows = fixed if sampling_ratio > 0 else jnp.ceil(step_y)
        columns = fixed if sampling_ratio > 0 else jnp.ceil(step_x)
        weights = _rotated_weights(
            (x, y, across, down, angle), (rows, columns), (bins_down, bins_across), (height, width)
        )
        image = wide[jnp.clip(roi[0].astype(jnp.int32), 0, n - 1)]
        return jnp.einsum("chw,pqhw->cpq", image, weights.astype(wide.dtype), precision="highest")

    return lax.map(align, rois).astype(data.dtype)


def _rotated_weights(box: Any, counts: Any, bins: tuple[int, int], size: tuple[int, int]) -> jax.Array:
    """Share (P, Q, H, W) of every pixel in the mean of every bin."""
    x, y, across, down, angle = box
    step_y, step_x = down / bins[0], across / bins[1]
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    k, j = (jnp.arange(b, dtype=jnp.float32) for b in bins)
    rows, columns = (jnp.arange(s, dtype=jnp.float32) for s in size)

    def add(i: jax.Array, total: jax.Array) -> jax.Array:
        row, column = (i // counts[1].astype(jnp.int32)).astype(jnp.float32), (i % counts[1].astype(jnp.int32))
        yy = (k * step_y - down / 2 + (row + 0.5) * step_y / counts[0])[:, None]
        xx = j * step_x - across / 2 + (column.astype(jnp.float32) + 0.5) * step_x / counts[1]
        at_x, at_y = xx * cos + yy * sin + x, yy * cos - xx * sin + y
        inside = (at_y >= -1) & (at_y <= size[0]) & (at_x >= -1) & (at_x <= size[1])
        near_y, near_x = jnp.clip(at_y, 0, size[0] - 1), jnp.clip(at_x, 0, size[1] - 1)
        down_share = jnp.maximum(1 - jnp.abs(near_y[..., None] - rows), 0)
        across_share = jnp.maximum(1 - jnp.abs(near_x[..., None] - columns), 0)
        return total + jnp.where(inside[..., None, None], down_share[..., :, None] * across_share[..., None, :], 0)

    points = (counts[0] * counts[1]).astype(jnp.int32)
    total = lax.fori_loop(jnp.int32(0), points, add, jnp.zeros((*bins, *size), jnp.float32))
    return total / jnp.maximum(points, 1)
