"""Decode, resize, crop, rotate and normalize single images, (H, W, C) in RGB; NumPy in, NumPy out."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.argcheck import integer
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError
from ..io import image_codec
from ..io.worker_mode import to_numpy, wrap_like
from ..ndarray import NDArray


def imdecode(buf: Any, flag: int = 1, to_rgb: bool | int = True, out: Any = None) -> Any:
    """Decode an image file in memory to (H, W, C) uint8.

    Args:
        buf: the bytes of the file: bytes, bytearray, or a uint8 array.
        flag: 1 for three channels, 0 for one.
        to_rgb: red first; else blue first.
        out: NDArray to write to.

    Raises:
        ArgumentError: `buf` is a string. FormatError: it holds no image.

    Example:
        >>> picture = mx.nd.full((4, 6, 3), 200, dtype="uint8")
        >>> record = mx.recordio.pack_img((0, 1.0, 0, 0), picture, img_fmt=".png")
        >>> mx.image.imdecode(mx.recordio.unpack(record)[1]).shape
        (4, 6, 3)
    """
    if isinstance(buf, str) or not isinstance(buf, (bytes, bytearray, memoryview, np.ndarray, NDArray)):
        raise ArgumentError(f"imdecode: buf: got {type(buf).__name__}: expected bytes or a uint8 array")
    data = buf.asnumpy() if isinstance(buf, NDArray) else buf
    image = wrap_like(image_codec.decode(data, flag, bool(to_rgb)), None)
    if out is not None:
        out[:] = image
        return out
    return image


def imread(filename: str | os.PathLike[str], flag: int = 1, to_rgb: bool | int = True, out: Any = None) -> Any:
    """Read and decode an image file; see `imdecode`.

    Raises:
        MXNetError: the file cannot be read.
    """
    try:
        with open(filename, "rb") as f:
            content = f.read()
    except OSError as e:
        raise MXNetError(f"imread: cannot read {os.fspath(filename)!r}: {e.strerror or e}") from None
    return imdecode(content, flag, to_rgb, out)


def imresize(src: Any, w: int, h: int, interp: int = 1, out: Any = None) -> Any:
    """Resize to width `w` and height `h`.

    Args:
        src: (H, W, C).
        w, h: the new size.
        interp: 0 nearest, 1 bilinear, 2 bicubic, 3 area, 4 Lanczos; 9 chooses by the sizes, 10 at random.
        out: NDArray to write to.
    """
    image = to_numpy(src)
    interp = integer("imresize", "interp", interp)
    method = _method(interp, (*image.shape[:2], h, w)) if interp in (9, 10) else interp
    result = wrap_like(image_codec.resize(image, int(w), int(h), method), src)
    if out is not None:
        out[:] = result
        return out
    return result


def copyMakeBorder(
    src: Any, top: int, bot: int, left: int, right: int, type: int = 0, value: float = 0.0, values: Any = ()
) -> Any:
    """Add rows and columns around an image.

    Args:
        src: (H, W, C).
        top, bot, left, right: how many.
        type: 0 constant, 1 edge pixels, 2 mirrored with and 4 without the edge, 3 wrapped around.
        value: the constant; `values` gives one for each channel.
    """
    return wrap_like(
        image_codec.pad_border(to_numpy(src), (top, bot, left, right), type, tuple(values) or (value,)), src
    )


def _method(interp: int, sizes: Sequence[int] = ()) -> int:
    """Interpolation 9: area to shrink, bicubic to enlarge, bilinear for both; 10: any."""
    if interp == 9:
        if not sizes:
            return 2
        old_h, old_w, new_h, new_w = sizes
        if new_h > old_h and new_w > old_w:
            return 2
        return 3 if new_h < old_h and new_w < old_w else 1
    if interp == 10:
        return random.randint(0, 4)
    if interp not in range(5):
        raise ArgumentError(f"interp={interp!r}: expected 0, 1, 2, 3, 4, 9 or 10")
    return interp


def scale_down(src_size: Sequence[int], size: Sequence[int]) -> tuple[int, int]:
    """Return (width, height) `size`, shrunk in proportion until it fits into `src_size`.

    Example:
        >>> mx.image.scale_down((640, 480), (720, 120))
        (640, 106)
    """
    w, h = size
    sw, sh = src_size
    if sh < h:
        w, h = float(w * sh) / h, sh
    if sw < w:
        w, h = sw, float(h * sw) / w
    return int(w), int(h)


def resize_short(src: Any, size: int, interp: int = 2) -> Any:
    """Resize so that the shorter edge is `size` long, in proportion."""
    h, w = src.shape[:2]
    new_h, new_w = (size * h // w, size) if h > w else (size, size * w // h)
    return imresize(src, new_w, new_h, _method(interp, (h, w, new_h, new_w)))


def fixed_crop(src: Any, x0: int, y0: int, w: int, h: int, size: Sequence[int] | None = None, interp: int = 2) -> Any:
    """Cut out the window of width `w` and height `h` at column `x0`, row `y0`, then resize to `size` (w, h).

    Raises:
        ArgumentError: nothing of the image is in the window.
    """
    out = to_numpy(src)[y0 : y0 + h, x0 : x0 + w]  # a program would be compiled for each window
    if not out.size:
        raise ArgumentError(f"fixed_crop: x0={x0}, y0={y0}, w={w}, h={h}: nothing is left of {src.shape[:2]}")
    if size is not None and (w, h) != tuple(size):
        out = imresize(out, size[0], size[1], _method(interp, (h, w, size[1], size[0])))
    return wrap_like(out, src)


def random_crop(src: Any, size: Sequence[int], interp: int = 2) -> tuple[Any, tuple[int, int, int, int]]:
    """Cut out a window of (width, height) `size` somewhere; a smaller image is enlarged.

    Returns:
        The image, and (x, y, width, height) of the window.
    """
    h, w = src.shape[:2]
    new_w, new_h = scale_down((w, h), size)
    x0, y0 = random.randint(0, w - new_w), random.randint(0, h - new_h)
    return fixed_crop(src, x0, y0, new_w, new_h, size, interp), (x0, y0, new_w, new_h)


def center_crop(src: Any, size: Sequence[int], interp: int = 2) -> tuple[Any, tuple[int, int, int, int]]:
    """Cut out the middle of (width, height) `size`; a smaller image is enlarged.

    Returns:
        The image, and (x, y, width, height) of the window.
    """
    h, w = src.shape[:2]
    new_w, new_h = scale_down((w, h), size)
    x0, y0 = int((w - new_w) / 2), int((h - new_h) / 2)
    return fixed_crop(src, x0, y0, new_w, new_h, size, interp), (x0, y0, new_w, new_h)


def random_size_crop(
    src: Any, size: Sequence[int], area: float | Sequence[float], ratio: Sequence[float], interp: int = 2, **kwargs: Any
) -> tuple[Any, tuple[int, int, int, int]]:
    """Cut out a window of random area and shape, and resize it to (width, height) `size`.

    Args:
        src: (H, W, C).
        size: of the result.
        area: least share of the image's area, or (least, most).
        ratio: (least, most) width / height.
        interp: of the resizing.
        min_area: older name of `area`.

    Returns:
        The image, and (x, y, width, height) of the window.
    """
    if "min_area" in kwargs:
        area = kwargs.pop("min_area")
    if kwargs:
        raise ArgumentTypeError(f"random_size_crop: unexpected arguments {', '.join(map(repr, kwargs))}")
    limits = (area, 1.0) if isinstance(area, (int, float)) else (area[0], area[1])
    window = draw_window(src.shape, limits, ratio)
    if window is None:
        return center_crop(src, size, interp)
    return fixed_crop(src, *window, size, interp), window


def draw_window(
    shape: Sequence[int], area: tuple[float, float], ratio: Sequence[float]
) -> tuple[int, int, int, int] | None:
    """Draw (x, y, width, height) of a window in an (H, W, …) image; None if ten attempts did not fit."""
    h, w = shape[:2]
    low, high = np.log(ratio[0]), np.log(ratio[1])
    for _ in range(10):
        target = random.uniform(*area) * h * w
        new_ratio = np.exp(random.uniform(low, high))
        new_w, new_h = round(math.sqrt(target * new_ratio)), round(math.sqrt(target / new_ratio))
        if 0 < new_w <= w and 0 < new_h <= h:
            return random.randint(0, w - new_w), random.randint(0, h - new_h), new_w, new_h
    return None


def color_normalize(src: Any, mean: Any, std: Any = None) -> Any:
    """Return (src - mean) / std; each of the two may be None."""
    if isinstance(src, np.ndarray):
        mean, std = (None if v is None else to_numpy(v).astype(src.dtype) for v in (mean, std))
    elif isinstance(mean, np.ndarray) or isinstance(std, np.ndarray):
        return wrap_like(color_normalize(to_numpy(src), mean, std), src)
    out = src if mean is None else src - mean
    return out if std is None else out / std


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


__all__ = [
    "center_crop",
    "color_normalize",
    "copyMakeBorder",
    "fixed_crop",
    "imdecode",
    "imread",
    "imresize",
    "imrotate",
    "random_crop",
    "random_rotate",
    "random_size_crop",
    "resize_short",
    "scale_down",
]
