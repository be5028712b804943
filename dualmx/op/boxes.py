"""Boxes: corners, centres, overlap and greedy non-maximum suppression, shared by the detection operators."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax


def to_center(boxes: jax.Array) -> jax.Array:
    """(x1, y1, x2, y2) -> (centre x, centre y, width, height), along the last axis."""
    sides = boxes[..., 2:] - boxes[..., :2]
    return jnp.concatenate([boxes[..., :2] + sides / 2, sides], -1)


def to_corner(boxes: jax.Array) -> jax.Array:
    """(centre x, centre y, width, height) -> (x1, y1, x2, y2), along the last axis."""
    half = boxes[..., 2:] / 2
    return jnp.concatenate([boxes[..., :2] - half, boxes[..., :2] + half], -1)


def overlap(a: jax.Array, b: jax.Array, extra: int = 0) -> jax.Array:
    """Intersection over union of corner boxes, broadcast over the leading axes; 0 where the union is empty.

    `extra` is added to every side: 1 for boxes of whole pixels, ends included.
    """
    sides = jnp.minimum(a[..., 2:], b[..., 2:]) - jnp.maximum(a[..., :2], b[..., :2]) + extra
    both = jnp.prod(jnp.maximum(sides, 0), -1)
    union = area(a, extra) + area(b, extra) - both
    return jnp.where(union > 0, both / jnp.where(union > 0, union, 1), 0)


def area(boxes: jax.Array, extra: int = 0) -> jax.Array:
    """Areas of corner boxes; 0 for a box turned inside out."""
    sides = jnp.maximum(boxes[..., 2:] - boxes[..., :2] + extra, 0)
    return jnp.prod(sides, -1)


def suppress(alive: jax.Array, hits: Callable[[jax.Array], jax.Array], count: int) -> jax.Array:
    """Greedy non-maximum suppression: each of the first `count` boxes still alive removes those after it that it hits.

    Args:
        alive: (N,) which boxes take part, best first.
        hits: `i -> (N,)`, the boxes that box i removes if they come after it.
        count: how many boxes may remove others.

    Returns:
        (N,) which boxes survive.
    """
    at = jnp.arange(alive.shape[0], dtype=jnp.int32)

    def step(i: jax.Array, alive: jax.Array) -> jax.Array:
        return alive & ~(alive[i] & hits(i) & (at > i))

    return lax.fori_loop(jnp.int32(0), jnp.int32(min(count, alive.shape[0])), step, alive)
