"""Colours of images: brightness, contrast, saturation, hue, and lighting noise, fixed or drawn."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ...core.errors import ArgumentError
from ..registry import op
from ..schema import Floats, Key, NonNegative, UntypedTensor

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
