"""Bilinear interpolation that the sampling, aligning and deformable operators share."""

from __future__ import annotations

import jax
import jax.numpy as jnp


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
