"""Image operators on (H, W, C) or (N, H, W, C) until `to_tensor`, colour changes, and sampling along grids."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from ...core.errors import ArgumentError
from ..interpolation import resampling, sample_each
from ..registry import op
from ..schema import Floats, Fraction, Ignored, Key, NonNegative, Positive, Shape, Tensor, UntypedTensor
from ..spatial import check_float, check_rank


def _need_image(name: str, data: UntypedTensor) -> None:
    if data.ndim not in (3, 4):
        raise ArgumentError(
            f"{name}: data has shape {data.shape}: expected (height, width, channels) or (N, height, width, channels)"
        )


@op()
def _image_to_tensor(data: UntypedTensor):
    """Return (C, H, W) float32 in [0, 1] of an (H, W, C) image with values 0 to 255; batches likewise."""
    _need_image("_image_to_tensor", data)
    return jnp.moveaxis(data, -1, -3).astype(jnp.float32) / jnp.float32(255)


@op()
def _image_normalize(data: UntypedTensor, *, mean: Floats = (0.0,), std: Floats = (1.0,)):
    """Return (data - mean) / std, per channel, of a (C, H, W) image or an (N, C, H, W) batch of floating type."""
    if data.ndim not in (3, 4) or data.shape[-3] not in (1, 3):
        raise ArgumentError(
            f"_image_normalize: data has shape {data.shape}: expected (C, H, W) or (N, C, H, W) with 1 or 3 channels"
        )
    for name, values in (("mean", mean), ("std", std)):
        if len(values) not in (1, data.shape[-3]):
            raise ArgumentError(
                f"_image_normalize: {name} has {len(values)} values: expected 1 or one of {data.shape[-3]} channels"
            )
    shape, floats = (-1, 1, 1), jnp.issubdtype(data.dtype, jnp.floating)
    wide = data if floats else data.astype(jnp.float32)
    centred = wide - jnp.asarray(mean, wide.dtype).reshape(shape)
    out = centred / jnp.asarray(std, wide.dtype).reshape(shape)
    return out if floats else out.astype(jnp.int64).astype(data.dtype)


@op()
def _image_flip_left_right(data: UntypedTensor):
    """Mirror the images about the vertical axis."""
    _need_image("_image_flip_left_right", data)
    return jnp.flip(data, -2)


@op()
def _image_flip_top_bottom(data: UntypedTensor):
    """Mirror the images about the horizontal axis."""
    _need_image("_image_flip_top_bottom", data)
    return jnp.flip(data, -3)


@op()
def _image_random_flip_left_right(data: UntypedTensor, key: Key, *, p: Fraction = 0.5):
    """Mirror the images about the vertical axis with probability `p`, all or none of a batch."""
    _need_image("_image_random_flip_left_right", data)
    return jnp.where(jax.random.bernoulli(key, p), jnp.flip(data, -2), data)


@op()
def _image_random_flip_top_bottom(data: UntypedTensor, key: Key, *, p: Fraction = 0.5):
    """Mirror the images about the horizontal axis with probability `p`, all or none of a batch."""
    _need_image("_image_random_flip_top_bottom", data)
    return jnp.where(jax.random.bernoulli(key, p), jnp.flip(data, -3), data)


@op()
def _image_crop(data: UntypedTensor, *, x: int, y: int, width: Positive, height: Positive):
    """Return the `width` by `height` window whose upper left corner is column `x`, row `y`."""
    _need_image("_image_crop", data)
    rows, columns = data.shape[-3:-1]
    if x < 0 or y < 0 or x + width > columns or y + height > rows:
        raise ArgumentError(
            f"_image_crop: x={x}, y={y}, width={width}, height={height}: leaves the {columns} by {rows} image"
        )
    return data[..., y : y + height, x : x + width, :]


def _between(n: int, out: int) -> tuple[jax.Array, jax.Array]:
    """Row of length n below each of `out` pixel centres, -1 before the first, and the share of the next in 1/2048."""
    at = ((jnp.arange(out, dtype=jnp.float64) + 0.5) * (n / out) - 0.5).astype(jnp.float32)
    below = jnp.floor(at)
    return below.astype(jnp.int32), jnp.rint((at - below) * 2048).astype(jnp.int32)


def _resized_bytes(data: jax.Array, height: int, width: int) -> jax.Array:
    """Bilinear resize of uint8 images in the whole numbers that OpenCV computes with, so that every byte agrees."""
    wide, (rows, columns) = data.astype(jnp.int32), data.shape[-3:-1]
    if (rows, columns) == (2 * height, 2 * width):
        a, b, c, d = (wide[..., i::2, j::2, :] for i in (0, 1) for j in (0, 1))
        return ((a + b + c + d + 2) >> 2).astype(data.dtype)
    left, share = _between(columns, width)
    # Columns beyond the border count whole; rows there are mixed with themselves.
    share = jnp.where((left < 0) | (left >= columns - 1), 0, share)[:, None]
    near, far = (wide[..., jnp.clip(left + i, 0, columns - 1), :] for i in (0, 1))
    lines = near * (2048 - share) + far * share
    top, share = _between(rows, height)
    share = share[:, None, None]
    near, far = (lines[..., jnp.clip(top + i, 0, rows - 1), :, :] >> 4 for i in (0, 1))
    return ((((2048 - share) * near >> 16) + (share * far >> 16) + 2) >> 2).astype(data.dtype)


def _in_range(x: jax.Array, dtype: Any) -> jax.Array:
    """Floats in `dtype`; integers are rounded, and what is beyond their range is its end."""
    if not jnp.issubdtype(dtype, jnp.integer):
        return x.astype(dtype)
    info = jnp.iinfo(dtype)
    return jnp.clip(jnp.rint(x), info.min, info.max).astype(dtype)


@op()
def _image_resize(data: UntypedTensor, *, size: Shape = (), keep_ratio: bool = False, interp: int = 1):
    """Return the images in `size` = (width, height), pixel centres at .5.

    `interp`: 0 nearest, 1 bilinear, 2 bicubic, 3 by areas, 4 Lanczos over 8×8.

    With one number in `size` the image becomes square, or, with `keep_ratio`, its shorter edge that long.
    """
    _need_image("_image_resize", data)
    if interp not in range(5) or len(size) not in (1, 2) or min(size) < 1:
        raise ArgumentError(f"_image_resize: size={size}, interp={interp}: expected 1 or 2 positive numbers; 0 to 4")
    rows, columns = data.shape[-3:-1]
    width, height = size if len(size) == 2 else (size[0], size[0])
    if keep_ratio and len(size) == 1:
        shorter = min(rows, columns)
        width, height = columns * size[0] // shorter, rows * size[0] // shorter
    shape = (*data.shape[:-3], height, width, data.shape[-1])
    if interp == 0:
        at_row = jnp.arange(height, dtype=jnp.int32) * rows // height
        at_column = jnp.arange(width, dtype=jnp.int32) * columns // width
        return data[..., at_row[:, None], at_column[None, :], :]
    if interp > 1:
        down, across = resampling(interp, (rows, columns), (height, width))
        out = jnp.einsum("hr,...rcd,wc->...hwd", down, data.astype(jnp.float32), across, precision="highest")
        return _in_range(out, data.dtype)
    if data.dtype == jnp.uint8:
        return _resized_bytes(data, height, width)
    out = jax.image.resize(data.astype(jnp.float32), shape, "bilinear", antialias=False)
    return (jnp.rint(out) if jnp.issubdtype(data.dtype, jnp.integer) else out).astype(data.dtype)


GREY = np.array((0.299, 0.587, 0.114), np.float32)
# Eigenvectors of the colours of ImageNet, as columns, times the square roots of their eigenvalues (Krizhevsky et al.).
PCA = np.array(
    [[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]], np.float32
) * np.array((55.46, 4.794, 1.148), np.float32)


def _check(name: str, data: jax.Array) -> None:
    if data.ndim != 3 or data.shape[2] not in (1, 3):
        raise ArgumentError(
            f"{name}: data has shape {data.shape}: expected (height, width, channels) with 1 or 3 channels"
        )


def _as(values: jax.Array, like: jax.Array) -> jax.Array:
    """Cast to the dtype of `like`; whole numbers are cut toward zero and saturate."""
    if jnp.issubdtype(like.dtype, jnp.integer):
        bounds = jnp.iinfo(like.dtype)
        values = jnp.clip(values, bounds.min, bounds.max)
    return values.astype(like.dtype)


def _factor(key: jax.Array, low: float, high: float) -> jax.Array:
    """A factor drawn from [low, high), the bounds in either order."""
    return jax.random.uniform(key, (), jnp.float32, min(low, high), max(low, high))


def _contrast(x: jax.Array, factor: jax.Array) -> jax.Array:
    grey = jnp.mean(x @ GREY) if x.shape[2] == 3 else jnp.mean(x)
    return x * factor + (1 - factor) * grey


def _saturation(x: jax.Array, factor: jax.Array) -> jax.Array:
    return x * factor + (1 - factor) * (x @ GREY)[..., None] if x.shape[2] == 3 else x


def _hue(x: jax.Array, turn: jax.Array) -> jax.Array:
    """Turn the hue by `turn` circles; lightness and saturation stay."""
    if x.shape[2] != 3:
        return x
    high, low = x.max(2), x.min(2)
    span = high - low
    red, green, blue = x[..., 0], x[..., 1], x[..., 2]
    safe = jnp.where(span > 0, span, 1)
    sixth = jnp.where(
        high == red,
        (green - blue) / safe,
        jnp.where(high == green, (blue - red) / safe + 2, (red - green) / safe + 4),
    )
    sixth = jnp.where(span > 0, sixth, 0) + turn * 6
    # Of each channel, how far round the circle its own colour is away.
    away = jnp.abs(jnp.mod(sixth[..., None] - np.array((0, 2, 4), np.float32) + 3, 6) - 3)
    return low[..., None] + span[..., None] * jnp.clip(2 - away, 0, 1)


@op()
def _image_random_brightness(data: UntypedTensor, key: Key, *, min_factor: NonNegative, max_factor: NonNegative):
    """Multiply an (H, W, C) image by a factor drawn from [min_factor, max_factor)."""
    _check("_image_random_brightness", data)
    return _as(data.astype(jnp.float32) * _factor(key, min_factor, max_factor), data)


@op()
def _image_random_contrast(data: UntypedTensor, key: Key, *, min_factor: NonNegative, max_factor: NonNegative):
    """Return f·x + (1 − f)·(mean grey) of an (H, W, C) image, f drawn from [min_factor, max_factor).

    Grey is 0.299·R + 0.587·G + 0.114·B.
    """
    _check("_image_random_contrast", data)
    return _as(_contrast(data.astype(jnp.float32), _factor(key, min_factor, max_factor)), data)


@op()
def _image_random_saturation(data: UntypedTensor, key: Key, *, min_factor: NonNegative, max_factor: NonNegative):
    """Return f·x + (1 − f)·grey of an (H, W, 3) image, f drawn from [min_factor, max_factor); grey images stay.

    Grey is 0.299·R + 0.587·G + 0.114·B (MXNet 1.9.1 leaves out red and green here).
    """
    _check("_image_random_saturation", data)
    return _as(_saturation(data.astype(jnp.float32), _factor(key, min_factor, max_factor)), data)


@op()
def _image_random_hue(data: UntypedTensor, key: Key, *, min_factor: NonNegative, max_factor: NonNegative):
    """Turn the hue of an (H, W, 3) image by a number of circles drawn from [min_factor, max_factor)."""
    _check("_image_random_hue", data)
    return _as(_hue(data.astype(jnp.float32), _factor(key, min_factor, max_factor)), data)


@op()
def _image_random_color_jitter(
    data: UntypedTensor,
    key: Key,
    *,
    brightness: NonNegative,
    contrast: NonNegative,
    saturation: NonNegative,
    hue: NonNegative,
):
    """Change brightness, contrast and saturation of an (H, W, C) image by factors of 1 ± each, the hue by ± `hue`.

    The four follow in random order; those of size 0 do nothing.
    """
    _check("_image_random_color_jitter", data)
    order_key, *keys = jax.random.split(key, 5)
    sizes = (brightness, contrast, saturation, hue)
    drawn = [jax.random.uniform(k, (), jnp.float32, -1, 1) * jnp.float32(s) for k, s in zip(keys, sizes, strict=True)]
    steps = [
        lambda x: x * (1 + drawn[0]),
        lambda x: _contrast(x, 1 + drawn[1]),
        lambda x: _saturation(x, 1 + drawn[2]),
        lambda x: _hue(x, drawn[3]),
    ]
    steps = [step if size else lambda x: x for step, size in zip(steps, sizes, strict=True)]
    out = data.astype(jnp.float32)
    for which in jax.random.permutation(order_key, 4):
        out = _as(jax.lax.switch(which, steps, out), data).astype(jnp.float32)
    return _as(out, data)


def _light(data: jax.Array, alpha: jax.Array) -> jax.Array:
    if data.shape[2] == 1:
        return data
    return _as(data.astype(jnp.float32) + jnp.matmul(PCA, alpha, precision="highest"), data)


@op()
def _image_adjust_lighting(data: UntypedTensor, *, alpha: Floats):
    """Add Σ αᵢ·√λᵢ·vᵢ to an (H, W, 3) image, λ and v the principal components of ImageNet's colours; greys stay.

    Reference: Krizhevsky et al., "ImageNet classification with deep convolutional neural networks".
    """
    _check("_image_adjust_lighting", data)
    if len(alpha) != 3:
        raise ArgumentError(f"_image_adjust_lighting: alpha={alpha}: expected 3 numbers")
    return _light(data, jnp.asarray(alpha, jnp.float32))


@op()
def _image_random_lighting(data: UntypedTensor, key: Key, *, alpha_std: NonNegative = 0.05):
    """`adjust_lighting` with three coefficients drawn from N(0, alpha_std²)."""
    _check("_image_random_lighting", data)
    return _light(data, jax.random.normal(key, (3,), jnp.float32) * jnp.float32(alpha_std))


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
