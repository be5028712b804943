"""Image decoding and resampling by OpenCV, imported on first use."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import ArgumentError, MXNetError
from ..core.reader import Content
from .image_size import memory_of

MAX_PIXELS = 1 << 30


@functools.cache
def cv2() -> Any:
    """Return the module `cv2`.

    Raises:
        MXNetError: it is not installed.
    """
    try:
        return importlib.import_module("cv2")
    except ImportError as e:
        raise MXNetError(
            f"images are decoded and resized by OpenCV, which cannot be imported ({e}): "
            "pip install opencv-python-headless"
        ) from None


def decode(data: Any, flag: int = 1, rgb: bool = True) -> np.ndarray:
    """Return the (H, W, C) uint8 image in compressed bytes.

    Args:
        data: JPEG, PNG, … as bytes or uint8 array.
        flag: 1 for three channels, 0 for one, -1 as the image has them.
        rgb: red first, else blue first.

    Raises:
        FormatError: no image, or one that would take much more memory than its compressed bytes.
    """
    raw = np.frombuffer(data, np.uint8) if isinstance(data, (bytes, bytearray, memoryview)) else np.asarray(data)
    raw = np.ascontiguousarray(raw.reshape(-1), np.uint8)
    content = Content(raw.data, "imdecode", "a JPEG, PNG or other image file")
    if not raw.size:
        raise content.error("the buffer is empty", 0)
    content.reserve(memory_of(content, flag), "the image")
    with content.parsing(cv2().error):
        image = cv2().imdecode(raw, flag)
    if image is None:
        raise content.error(f"{raw.size} bytes that begin with {bytes(raw[:8]).hex()}: not a readable image")
    if image.ndim == 2:
        return image[:, :, None]
    if rgb and image.shape[2] >= 3:
        code = cv2().COLOR_BGR2RGB if image.shape[2] == 3 else cv2().COLOR_BGRA2RGBA
        image = cv2().cvtColor(image, code)
    return image


def encode(image: Any, quality: int = 95, form: str = ".jpg") -> bytes:
    """Return a compressed image; `image` is (H, W, C), blue first.

    Raises:
        ArgumentError: an unknown format, or an array that is no image.
    """
    kind = form.lower()
    if kind in (".jpg", ".jpeg"):
        options = [cv2().IMWRITE_JPEG_QUALITY, int(quality)]
    elif kind == ".png":
        options = [cv2().IMWRITE_PNG_COMPRESSION, min(int(quality), 9)]
    else:
        options = []
    try:
        good, out = cv2().imencode(form, np.ascontiguousarray(image), options)
    except cv2().error as e:
        raise ArgumentError(f"cannot encode an array {np.shape(image)} as {form!r}: {str(e)[:200]}") from None
    if not good:
        raise ArgumentError(f"cannot encode an array {np.shape(image)} as {form!r}")
    return out.tobytes()


def resize(image: np.ndarray, width: int, height: int, interp: int = 1) -> np.ndarray:
    """Return an (H, W, C) image resampled: 0 nearest, 1 bilinear, 2 bicubic, 3 area, 4 Lanczos over 8×8.

    Raises:
        ArgumentError: no image, a size below 1, or an unknown `interp`.
    """
    if image.ndim != 3 or not image.size:
        raise ArgumentError(f"imresize: got shape {image.shape}: expected (height, width, channels)")
    if width < 1 or height < 1 or width * height > MAX_PIXELS:
        raise ArgumentError(f"imresize: w={width}, h={height}: expected 1 or more, at most {MAX_PIXELS} pixels")
    if interp not in range(5):
        raise ArgumentError(f"imresize: interp={interp!r}: expected 0, 1, 2, 3 or 4 (here also 9 and 10)")
    kept = image
    if image.dtype not in (np.uint8, np.uint16, np.int16, np.float32, np.float64):
        kept = image.astype(np.float32)
    out = cv2().resize(np.ascontiguousarray(kept), (int(width), int(height)), interpolation=interp)
    return out.reshape(height, width, image.shape[2]).astype(image.dtype, copy=False)


def pad_border(image: np.ndarray, edges: Sequence[int], kind: int, values: Sequence[float]) -> np.ndarray:
    """Return an (H, W, C) image with `edges` (top, bottom, left, right) more rows and columns.

    Args:
        kind: 0 constant, 1 edge pixels, 2 mirrored with and 4 without the edge, 3 wrapped around.
        values: constants of the channels; a single one is for all.
    """
    top, bottom, left, right = edges
    if min(edges) < 0 or kind not in range(5):
        raise ArgumentError(f"copyMakeBorder: {tuple(edges)}, type={kind}: expected widths of 0 or more, type 0 to 4")
    widths = ((top, bottom), (left, right), (0, 0))
    if kind == 0:
        each = np.resize(np.asarray(values or [0.0], np.float64), image.shape[2])
        info = np.iinfo(image.dtype) if image.dtype.kind in "iu" else None
        each = np.clip(np.rint(each), info.min, info.max) if info else each
        out = np.empty((image.shape[0] + top + bottom, image.shape[1] + left + right, image.shape[2]), image.dtype)
        out[...] = each.astype(image.dtype)
        out[top : top + image.shape[0], left : left + image.shape[1]] = image
        return out
    return np.pad(image, widths, mode={1: "edge", 2: "symmetric", 3: "wrap", 4: "reflect"}[kind])  # type: ignore[call-overload]


__all__ = ["cv2", "decode", "encode", "pad_border", "resize"]
