"""Deterministic image transforms and random flips; NumPy in, NumPy out, as in data workers.

Images are (H, W, C); `ToTensor` moves the channels first, and `Normalize` comes after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .....core.dtypes import as_dtype
from .....core.errors import ArgumentError
from .....io import image_codec
from .....io.worker_mode import wrap_like
from .....namespace import nd
from .....ndarray import NDArray
from ....block import Block, HybridBlock
from ....nn import HybridSequential, Lambda, Sequential
from ...batchify import as_argument, numpy_form, to_device, to_host


class _ComposeBase:
    """Host side of the containers."""

    _children: dict[str, Any]

    def host(self, x: Any) -> Any:
        """Apply the transformations, one after the other, to a NumPy array."""
        for step in self._children.values():
            host = numpy_form(step)
            if host is not None:
                x = host(x)
            else:
                x = to_host(step(as_argument(step, x)))
        return x

    @property
    def batched(self) -> bool:
        """True if `host` accepts batches."""
        return all(getattr(step, "batched", False) and numpy_form(step) for step in self._children.values())


def as_block(transform: Callable[..., Any]) -> Block:
    """Return a transformation as a block; one that is a function is wrapped."""
    return transform if isinstance(transform, Block) else Lambda(transform)


class Compose(_ComposeBase, Sequential):
    """Applies transformations one after the other.

    Args:
        transforms: the transformations: blocks, or functions of an image.

    Example:
        >>> to_input = Compose([ToTensor(), Normalize(0.13, 0.31)])
        >>> to_input(mx.nd.zeros((28, 28, 1), dtype="uint8")).shape
        (1, 28, 28)
    """

    def __init__(self, transforms: Sequence[Callable[..., Any]]):
        super().__init__()
        self.add(*map(as_block, transforms))


class HybridCompose(_ComposeBase, HybridSequential):
    """Like `Compose`, of hybrid transformations only, compiled as one."""

    def __init__(self, transforms: Sequence[HybridBlock]):
        super().__init__()
        self.add(*transforms)
        self.hybridize()


class Transform(HybridBlock):
    """A transformation with a NumPy twin, `host`."""

    batched = False

    def __call__(self, x: Any, *args: Any) -> Any:
        host = numpy_form(self) if isinstance(x, np.ndarray) else None
        if host is not None:
            return host(x, *args)
        if not isinstance(x, np.ndarray):
            return super().__call__(x, *args)
        return to_host(super().__call__(to_device(x), *args))  # a user's subclass computes with arrays

    def host(self, x: np.ndarray) -> np.ndarray:
        """Transform a NumPy array."""
        raise NotImplementedError


class Cast(Transform):
    """Converts to another dtype, float32 by default."""

    batched = True

    def __init__(self, dtype: Any = "float32"):
        super().__init__()
        self._dtype = as_dtype(dtype)

    def host(self, x: np.ndarray) -> np.ndarray:
        return x.astype(self._dtype)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.cast(x, dtype=self._dtype.name)


class ToTensor(Transform):
    """(H, W, C) with values 0 to 255 → (C, H, W) float32 in [0, 1]; batches (N, H, W, C) likewise."""

    batched = True

    def host(self, x: np.ndarray) -> np.ndarray:
        _need_image(self, x)
        return np.moveaxis(x, -1, -3).astype(np.float32, order="C") / np.float32(255)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.to_tensor(x)


class Normalize(Transform):
    """(x - mean) / std, per channel, of (C, H, W) or (N, C, H, W).

    Args:
        mean: one number, or one per channel.
        std: likewise.
    """

    batched = True

    def __init__(self, mean: float | Sequence[float] = 0.0, std: float | Sequence[float] = 1.0):
        super().__init__()
        self._mean, self._std = np.atleast_1d(mean).tolist(), np.atleast_1d(std).tolist()

    def host(self, x: np.ndarray) -> np.ndarray:
        mean, std = (np.asarray(v, x.dtype).reshape(-1, 1, 1) for v in (self._mean, self._std))
        return (x - mean) / std

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.normalize(x, mean=tuple(self._mean), std=tuple(self._std))


class _RandomFlip(Transform):
    _axis = 0

    def __init__(self, p: float = 0.5):
        super().__init__()
        if not 0 <= p <= 1:
            raise ArgumentError(f"{type(self).__name__}: p={p}: expected 0 to 1")
        self._p = p

    def host(self, x: np.ndarray) -> np.ndarray:
        return np.flip(x, self._axis) if np.random.random() < self._p else x


class RandomFlipLeftRight(_RandomFlip):
    """Mirrors the image about its vertical axis with probability `p`."""

    _axis = -2

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_flip_left_right(x, p=self._p)


class RandomFlipTopBottom(_RandomFlip):
    """Mirrors the image about its horizontal axis with probability `p`."""

    _axis = -3

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_flip_top_bottom(x, p=self._p)


class Resize(Transform):
    """Resizes the image.

    Args:
        size: (width, height), or one number.
        keep_ratio: with one number, make the shorter edge that long and keep the proportions.
        interpolation: 1 bilinear, 0 nearest; by OpenCV, on the host: 2 bicubic, 3 area, 4 Lanczos.
    """

    def __init__(self, size: int | Sequence[int], keep_ratio: bool = False, interpolation: int = 1):
        super().__init__()
        self._size = (size,) if isinstance(size, int) else tuple(size)
        self._keep, self._interp = keep_ratio, interpolation
        if interpolation not in range(5):
            raise ArgumentError(f"Resize: interpolation={interpolation}: expected 0 to 4")

    def __call__(self, x: Any, *args: Any) -> Any:
        if self._interp > 1 and isinstance(x, NDArray):
            return wrap_like(self.host(x.asnumpy()), x)
        return super().__call__(x, *args)

    def host(self, x: np.ndarray) -> np.ndarray:
        _need_image(self, x)
        rows, columns = x.shape[-3:-1]
        width, height = self._size if len(self._size) == 2 else self._size * 2
        if self._keep and len(self._size) == 1:
            shorter = min(rows, columns)
            width, height = columns * self._size[0] // shorter, rows * self._size[0] // shorter
        return resize(x, width, height, self._interp)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.resize(x, size=self._size, keep_ratio=self._keep, interp=self._interp)


class CropResize(Transform):
    """Crops a window, and resizes it if `size` is given.

    Args:
        x, y: column and row of the upper left corner.
        width, height: size of the window.
        size: (width, height) of the result.
        interpolation: 1 bilinear, 0 nearest.
    """

    def __init__(self, x: int, y: int, width: int, height: int, size: Any = None, interpolation: int | None = None):
        super().__init__()
        self._window = {"x": x, "y": y, "width": width, "height": height}
        self._resize = None if size is None else Resize(size, False, 1 if interpolation is None else interpolation)

    def host(self, x: np.ndarray) -> np.ndarray:
        _need_image(self, x)
        w = self._window
        out = crop(x, x0=w["x"], y0=w["y"], width=w["width"], height=w["height"])
        return out if self._resize is None else self._resize.host(out)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        out = F.image.crop(x, **self._window)
        return out if self._resize is None else self._resize(out)


class CenterCrop(Block):
    """Cuts out the middle; an image that is too small gives its largest middle part, resized.

    Args:
        size: (width, height), or one number for both.
        interpolation: for images that are too small: 1 bilinear, 0 nearest.
    """

    def __init__(self, size: int | Sequence[int], interpolation: int = 1):
        super().__init__()
        self._size = (size, size) if isinstance(size, int) else tuple(size)
        self._interp = interpolation

    def __call__(self, x: Any, *args: Any) -> Any:
        host = numpy_form(self) if isinstance(x, np.ndarray) else None
        return super().__call__(x, *args) if host is None else host(x)

    def _window(self, shape: tuple[int, ...]) -> dict[str, Any]:
        rows, columns = shape[-3:-1]
        shrink = min(1.0, columns / self._size[0], rows / self._size[1])
        width, height = int(self._size[0] * shrink), int(self._size[1] * shrink)
        return {"x": (columns - width) // 2, "y": (rows - height) // 2, "width": width, "height": height}

    def host(self, x: np.ndarray) -> np.ndarray:
        """Transform a NumPy array."""
        _need_image(self, x)
        w = self._window(x.shape)
        out = crop(x, x0=w["x"], y0=w["y"], width=w["width"], height=w["height"])
        return out if out.shape[-3:-1] == self._size[::-1] else resize(out, self._size[0], self._size[1], self._interp)

    def forward(self, x: Any) -> Any:
        if self._interp > 1:
            return wrap_like(self.host(x.asnumpy()), x)
        out = nd.image.crop(x, **self._window(x.shape))
        if out.shape[-3:-1] != self._size[::-1]:
            out = nd.image.resize(out, size=self._size, interp=self._interp)
        return x.wrap_array(out)


def crop(x: np.ndarray, *, x0: int, y0: int, width: int, height: int) -> np.ndarray:
    """Return the window of (…, H, W, C) images whose upper left corner is column `x0`, row `y0`."""
    out = x[..., y0 : y0 + height, x0 : x0 + width, :]
    if min(x0, y0) < 0 or out.shape[-3:-1] != (height, width):
        raise ArgumentError(f"crop: {width} by {height} pixels at x={x0}, y={y0}: leaves the image of shape {x.shape}")
    return out


def resize(x: np.ndarray, width: int, height: int, interp: int = 1) -> np.ndarray:
    """Return (…, H, W, C) images resized: bilinear (1) or nearest (0), pixel centres at .5, dtype kept; 2 to 4: OpenCV.

    Bytes are OpenCV's; other integer results are rounded.
    """
    if interp > 1 or (interp == 1 and x.dtype == np.uint8):
        images = x.reshape(-1, *x.shape[-3:])
        out = np.stack([image_codec.resize(i, width, height, interp) for i in images])
        return out.reshape(*x.shape[:-3], height, width, x.shape[-1])
    if interp == 0:
        at_row = np.arange(height) * x.shape[-3] // height
        at_column = np.arange(width) * x.shape[-2] // width
        return x[..., at_row[:, None], at_column[None, :], :]
    out = _blend(_blend(x.astype(np.float32), -3, height), -2, width)
    return (np.rint(out) if x.dtype.kind in "iu" else out).astype(x.dtype)


def _blend(x: np.ndarray, axis: int, size: int) -> np.ndarray:
    n = x.shape[axis]
    at = np.clip((np.arange(size) + 0.5) * n / size - 0.5, 0, n - 1)
    low = np.floor(at).astype(np.intp)
    share = (at - low).astype(np.float32).reshape(-1, *(1,) * (-axis - 1))
    below, above = np.take(x, low, axis), np.take(x, np.minimum(low + 1, n - 1), axis)
    return below * (1 - share) + above * share


def _need_image(block: Any, x: np.ndarray) -> None:
    if x.ndim not in (3, 4):
        raise ArgumentError(
            f"{type(block).__name__}: got shape {x.shape}: expected (height, width, channels) or a batch of that"
        )


__all__ = [
    "Cast", "CenterCrop", "Compose", "CropResize", "HybridCompose", "Normalize", "RandomFlipLeftRight",
    "RandomFlipTopBottom", "Resize", "ToTensor",
]  # fmt: skip
