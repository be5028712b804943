"""Image operators: images are (H, W, C), batches of them (N, H, W, C), until `to_tensor` puts the channels first."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ...core.errors import ArgumentError
from ..registry import op
from ..resample import resampling
from ..schema import Floats, Fraction, Key, Positive, Shape, UntypedTensor


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
    if data.ndim not in (3, 4):
        raise ArgumentError(f"_image_normalize: data has shape {data.shape}: expected (C, H, W) or (N, C, H, W)")
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
