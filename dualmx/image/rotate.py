"""Rotation of (C, H, W) images about their centre."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError
from ..io.place import to_numpy, wrap_like
from ..ndarray import NDArray


def _turned(image: np.ndarray, degrees: float, zoom_in: bool, zoom_out: bool) -> np.ndarray:
    """(C, H, W) turned; bilinear, zeros outside."""
    _, h, w = image.shape
    angle = np.deg2rad(degrees)
    half_h, half_w = (h - 1) / 2, (w - 1) / 2
    y, x = np.meshgrid(np.arange(h) - half_h, np.arange(w) - half_w, indexing="ij")
    c, s = np.cos(angle), np.sin(angle)
    scale = 1.0
    if zoom_in or zoom_out:
        wide = abs(c) + abs(s) * h / w  # of the turned image, compared with the old one
        high = abs(c) + abs(s) * w / h
        scale = max(wide, high) if zoom_out else 1 / max(wide, high)
    from_x, from_y = (x * c - y * s) * scale + half_w, (x * s + y * c) * scale + half_h
    x0, y0 = np.floor(from_x).astype(np.intp), np.floor(from_y).astype(np.intp)
    share_x, share_y = (from_x - x0).astype(np.float32), (from_y - y0).astype(np.float32)
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1)))

    def at(yy: np.ndarray, xx: np.ndarray) -> np.ndarray:
        inside = (yy >= -1) & (yy <= h) & (xx >= -1) & (xx <= w)
        return np.where(inside, padded[:, np.clip(yy, -1, h) + 1, np.clip(xx, -1, w) + 1], np.float32(0))

    above = at(y0, x0) * (1 - share_x) + at(y0, x0 + 1) * share_x
    below = at(y0 + 1, x0) * (1 - share_x) + at(y0 + 1, x0 + 1) * share_x
    return (above * (1 - share_y) + below * share_y).astype(np.float32)


def imrotate(src: Any, rotation_degrees: Any, zoom_in: bool = False, zoom_out: bool = False) -> Any:
    """Rotate images about their centre.

    Args:
        src: float32 (C, H, W) or (N, C, H, W).
        rotation_degrees: one angle, or one for each image of a batch.
        zoom_in: enlarge until no corner is empty. zoom_out: shrink until the whole image is seen.

    Raises:
        ArgumentTypeError: no float32, or angles that do not fit. ArgumentError: both zooms, or another shape.

    Example:
        >>> mx.image.imrotate(mx.nd.ones((3, 8, 8)), 90).shape
        (3, 8, 8)
    """
    if zoom_in and zoom_out:
        raise ArgumentError("imrotate: zoom_in and zoom_out cannot both be true")
    if np.dtype(src.dtype) != np.float32:
        raise ArgumentTypeError(f"imrotate: got {np.dtype(src.dtype).name}: only float32 images can be rotated")
    images = to_numpy(src)
    if images.ndim not in (3, 4):
        raise ArgumentError(f"imrotate: got shape {images.shape}: expected (C, H, W) or (N, C, H, W)")
    several = isinstance(rotation_degrees, (NDArray, np.ndarray, list, tuple))
    if images.ndim == 3 and several:
        raise ArgumentTypeError("imrotate: a single image takes a single angle")
    if images.ndim == 3:
        return wrap_like(_turned(images, rotation_degrees, zoom_in, zoom_out), src)
    angles = to_numpy(rotation_degrees).reshape(-1) if several else np.full(len(images), rotation_degrees)
    if len(angles) != len(images):
        raise ArgumentError(f"imrotate: {len(angles)} angles for {len(images)} images: expected one for each")
    pairs = zip(images, angles, strict=True)
    return wrap_like(np.stack([_turned(i, float(a), zoom_in, zoom_out) for i, a in pairs]), src)


def random_rotate(src: Any, angle_limits: Sequence[float], zoom_in: bool = False, zoom_out: bool = False) -> Any:
    """Rotate by an angle between the two of `angle_limits`, each image of a batch by its own; see `imrotate`."""
    low, high = angle_limits
    if len(src.shape) == 3:
        return imrotate(src, random.uniform(low, high), zoom_in, zoom_out)
    return imrotate(src, np.random.uniform(low, high, src.shape[0]), zoom_in, zoom_out)


__all__ = ["imrotate", "random_rotate"]
