"""Bilinear interpolation and the weights of OpenCV's resampling filters."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np


def sample(image: jax.Array, y: jax.Array, x: jax.Array) -> jax.Array:
    """Interpolate `image` (C, H, W) at the pixel positions `y`, `x` (any common shape S); pixels outside count as 0.

    Shapes: result (C, *S). Differentiable in all three arguments; NaN-free for any finite position.
    """
    height, width = image.shape[1:]
    top, left = jnp.floor(y), jnp.floor(x)
    down, right = y - top, x - left
    total = 0
    for dy, wy in ((0, 1 - down), (1, down)):
        for dx, wx in ((0, 1 - right), (1, right)):
            row, column = top + dy, left + dx
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            at_row = jnp.clip(row, 0, height - 1).astype(jnp.int32)
            at_column = jnp.clip(column, 0, width - 1).astype(jnp.int32)
            total = total + image[:, at_row, at_column] * jnp.where(inside, wy * wx, 0).astype(image.dtype)
    return jnp.asarray(total)


def sample_each(images: jax.Array, y: jax.Array, x: jax.Array) -> jax.Array:
    """`sample` for a batch: images (N, C, H, W), positions (N, *S); result (N, C, *S)."""
    return jax.vmap(sample)(images, y, x)


# `interp` of MXNet's image functions.
CUBIC, AREA, LANCZOS = 2, 3, 4


def _cubic(t: np.ndarray) -> np.ndarray:
    a, t = -0.75, np.abs(t)
    near, far = ((a + 2) * t - (a + 3)) * t * t + 1, ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0.0))


def _lanczos(t: np.ndarray) -> np.ndarray:
    return np.where(np.abs(t) < 4, np.sinc(t) * np.sinc(t / 4), 0.0)


def _filtered(n: int, out: int, kernel: Callable[[np.ndarray], np.ndarray], reach: int) -> np.ndarray:
    """Rows of weights of a kernel around each pixel centre; beyond the border stands the last pixel."""
    at = (np.arange(out) + 0.5) * (n / out) - 0.5
    taps = np.floor(at)[:, None].astype(int) + np.arange(1 - reach, reach + 1)
    weights = kernel(at[:, None] - taps)
    weights /= weights.sum(1, keepdims=True)
    rows = np.zeros((out, n))
    np.add.at(rows, (np.arange(out)[:, None], np.clip(taps, 0, n - 1)), weights)
    return rows


def _shares(n: int, out: int) -> np.ndarray:
    """Which share of each pixel lies in each of `out` equal parts of the axis."""
    edges, pixels = np.arange(out + 1) * (n / out), np.arange(n)
    covered = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
    return np.clip(covered, 0, None) * (out / n)


def _between_edges(n: int, out: int) -> np.ndarray:
    """Enlarging by areas: pixels repeat, and only those that a pixel's edge crosses are mixed."""
    j = np.arange(out)
    left = np.floor(j * (n / out) + 1e-9).astype(int)
    share = (j + 1) - (left + 1) * (out / n)
    share = np.where(share <= 0, 0.0, share - np.floor(share))
    rows = np.zeros((out, n))
    np.add.at(rows, (j, np.clip(left, 0, n - 1)), 1 - share)
    np.add.at(rows, (j, np.clip(left + 1, 0, n - 1)), share)
    return rows


def resampling(interp: int, before: tuple[int, int], after: tuple[int, int]) -> list[np.ndarray]:
    """For each of two axes a float32 matrix (new length, old length) that resamples it.

    Args:
        interp: 2 bicubic, 3 area, 4 Lanczos over 8×8.
    """
    if interp == AREA:
        smaller = all(b >= a for b, a in zip(before, after, strict=True))
        found = [(_shares if smaller else _between_edges)(b, a) for b, a in zip(before, after, strict=True)]
    else:
        kernel, reach = (_cubic, 2) if interp == CUBIC else (_lanczos, 4)
        found = [_filtered(b, a, kernel, reach) for b, a in zip(before, after, strict=True)]
    return [w.astype(np.float32) for w in found]
