"""Sampling images along a grid: grid generation, bilinear sampling, spatial transformers."""

from __future__ import annotations

from typing import Annotated, Literal

import jax
import jax.numpy as jnp

from ...core.errors import ArgumentError
from ..bilinear import sample_each
from ..registry import op
from ..schema import Ignored, Shape, Tensor
from ..spatial import check_float, check_rank


def _along(n: int, dtype: jnp.dtype) -> jax.Array:
    """The `n` positions from -1 to 1."""
    return jnp.linspace(-1, 1, n, dtype=dtype) if n > 1 else jnp.full((1,), -1, dtype)


def _affine_grid(name: str, theta: jax.Array, height: int, width: int) -> jax.Array:
    """Positions (N, 2, height, width), x then y, of the affine maps `theta` (N, 6)."""
    if theta.ndim != 2 or theta.shape[1] != 6:
        raise ArgumentError(f"{name}: the transformation has shape {theta.shape}: expected (N, 6), rows of 2 x 3 maps")
    y, x = jnp.meshgrid(_along(height, theta.dtype), _along(width, theta.dtype), indexing="ij")
    target = jnp.stack([x.ravel(), y.ravel(), jnp.ones(height * width, theta.dtype)])
    source = jnp.matmul(theta.reshape(-1, 2, 3), target, precision="highest")
    return source.reshape(-1, 2, height, width)


def _target(name: str, target_shape: tuple[int, ...]) -> tuple[int, int]:
    if len(target_shape) != 2 or min(target_shape) < 1:
        raise ArgumentError(f"{name}: target_shape={target_shape}: expected (height, width), both positive")
    return target_shape[0], target_shape[1]


def _sample_grid(data: jax.Array, grid: jax.Array) -> jax.Array:
    height, width = data.shape[2:]
    x, y = (grid[:, 0] + 1) * (width - 1) / 2, (grid[:, 1] + 1) * (height - 1) / 2
    return sample_each(data, y, x)


@op(floating=True)
def GridGenerator(
    data: Tensor, *, transform_type: Literal["affine", "warp"], target_shape: Shape = (0, 0)
) -> jax.Array:
    """Make the sampling grid (N, 2, H, W), x then y in [-1, 1], that `BilinearSampler` reads.

    "affine": data (N, 6) holds maps θ (2, 3); the grid of `target_shape` = (H, W) is θ·(x, y, 1) of its normalised
    positions. "warp": data (N, 2, H, W) is a flow in pixels, added to each pixel's own position, then normalised.
    """
    if transform_type == "affine":
        return _affine_grid("GridGenerator", data, *_target("GridGenerator", target_shape))
    if data.ndim != 4 or data.shape[1] != 2:
        raise ArgumentError(f"GridGenerator: data has shape {data.shape}: expected a flow (N, 2, H, W)")
    height, width = data.shape[2:]
    x = data[:, 0] + jnp.arange(width, dtype=data.dtype)
    y = data[:, 1] + jnp.arange(height, dtype=data.dtype)[:, None]
    return jnp.stack([2 * x / max(width - 1, 1) - 1, 2 * y / max(height - 1, 1) - 1], 1)


@op()
def BilinearSampler(data: Tensor, grid: Tensor, *, cudnn_off: Annotated[bool | None, Ignored] = None) -> jax.Array:
    """Read images at the positions of `grid`, between pixels bilinearly; 0 outside the image.

    Shapes: data (N, C, H, W), grid (N, 2, H', W') with x, y in [-1, 1] from the first to the last pixel centre ->
    (N, C, H', W'). Both inputs get gradients.
    """
    check_rank("BilinearSampler", data.shape, 2, "sampling images")
    check_float("BilinearSampler", data)
    if grid.ndim != 4 or grid.shape[:2] != (data.shape[0], 2):
        raise ArgumentError(f"BilinearSampler: grid has shape {grid.shape}: expected ({data.shape[0]}, 2, H, W)")
    return _sample_grid(data, grid)


def _affine_loc(p, shapes):
    return {"loc": (shapes["data"][0], 6)} if "data" in shapes else {}


@op(complete=_affine_loc, floating=True)
def SpatialTransformer(
    data: Tensor,
    loc: Tensor,
    *,
    target_shape: Shape = (0, 0),
    transform_type: Literal["affine"],
    sampler_type: Literal["bilinear"],
    cudnn_off: Annotated[bool | None, Ignored] = None,
) -> jax.Array:
    """Sample images through affine maps: `BilinearSampler(data, GridGenerator(loc, "affine", target_shape))`.

    Shapes: data (N, C, H, W), loc (N, 6) -> (N, C, *target_shape).
    """
    check_rank("SpatialTransformer", data.shape, 2, "transforming images")
    if loc.shape[:1] != data.shape[:1]:
        raise ArgumentError(f"SpatialTransformer: loc has shape {loc.shape}: expected ({data.shape[0]}, 6)")
    height, width = _target("SpatialTransformer", target_shape)
    return _sample_grid(data, _affine_grid("SpatialTransformer", loc, height, width))
