"""Augmenters: callables that change an image. Random ones draw from Python's `random`."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import ArgumentError
from ..io.augment import EIGENVALUES, EIGENVECTORS, GRAY, turn_hue
from ..io.worker_mode import to_numpy, wrap_like
from ..ndarray import NDArray
from .functions import (
    center_crop,
    color_normalize,
    imresize,
    random_crop,
    random_size_crop,
    resize_short,
)


class Settings:
    """Something with settings that can be shown.

    Args:
        kwargs: settings, shown by `dumps`.
    """

    def __init__(self, **kwargs: Any):
        self._kwargs = {k: plain(v) for k, v in kwargs.items()}

    def dumps(self) -> Any:
        """Name and settings as JSON; containers return nested lists."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])


class Augmenter(Settings):
    """Base of augmenters: define `__call__(src)`, which returns the changed image.

    Args:
        kwargs: settings, shown by `dumps`.
    """

    def __call__(self, src: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __call__")


def apply(augmenter: Any, src: Any) -> Any:
    """Return `augmenter(src)`; augmenters of other packages get an NDArray where `src` is a NumPy array."""
    if isinstance(src, np.ndarray) and not type(augmenter).__module__.startswith(__name__.rpartition(".")[0]):
        return to_numpy(augmenter(wrap_like(src, None)))
    return augmenter(src)


def plain(value: Any) -> Any:
    """Return a setting as JSON takes it."""
    if isinstance(value, NDArray):
        return value.asnumpy().tolist()
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


class SequentialAug(Augmenter):
    """Applies augmenters one after the other."""

    def __init__(self, ts: Sequence[Augmenter]):
        super().__init__()
        self.ts = ts

    def dumps(self) -> Any:
        return [type(self).__name__.lower(), [t.dumps() for t in self.ts]]

    def __call__(self, src: Any) -> Any:
        for t in self.ts:
            src = apply(t, src)
        return src


class RandomOrderAug(SequentialAug):
    """Apply augmenters in a new random order each time."""

    def __call__(self, src: Any) -> Any:
        self.ts = list(self.ts)
        random.shuffle(self.ts)
        return super().__call__(src)


class ResizeAug(Augmenter):
    """Makes the shorter edge `size` long, in proportion."""

    def __init__(self, size: int, interp: int = 2):
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp

    def __call__(self, src: Any) -> Any:
        return resize_short(src, self.size, self.interp)


class ForceResizeAug(Augmenter):
    """Resizes to (width, height) `size`."""

    def __init__(self, size: Sequence[int], interp: int = 2):
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp

    def __call__(self, src: Any) -> Any:
        return imresize(src, self.size[0], self.size[1], self.interp)


class RandomCropAug(Augmenter):
    """Cuts out a window of (width, height) `size` somewhere."""

    def __init__(self, size: Sequence[int], interp: int = 2):
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp

    def __call__(self, src: Any) -> Any:
        return random_crop(src, self.size, self.interp)[0]


class RandomSizedCropAug(Augmenter):
    """Cuts out a window of random area and shape, and resizes it; see `random_size_crop`."""

    def __init__(self, size: Sequence[int], area: Any, ratio: Sequence[float], interp: int = 2, **kwargs: Any):
        super().__init__(size=size, area=area, ratio=ratio, interp=interp)
        self.size, self.area, self.ratio, self.interp = size, kwargs.pop("min_area", area), ratio, interp
        if kwargs:
            raise ArgumentError(f"RandomSizedCropAug: unexpected arguments {', '.join(map(repr, kwargs))}")

    def __call__(self, src: Any) -> Any:
        return random_size_crop(src, self.size, self.area, self.ratio, self.interp)[0]


class CenterCropAug(Augmenter):
    """Cuts out the middle of (width, height) `size`."""

    def __init__(self, size: Sequence[int], interp: int = 2):
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp

    def __call__(self, src: Any) -> Any:
        return center_crop(src, self.size, self.interp)[0]


class _FloatAugmenter(Augmenter):
    """Computes in float32; integer images give float32 as well."""

    def change(self, x: np.ndarray) -> np.ndarray:
        """Return the changed float32 (H, W, 3) image."""
        raise NotImplementedError

    def __call__(self, src: Any) -> Any:
        return wrap_like(self.change(to_numpy(src).astype(np.float32)).astype(np.float32), src)


class BrightnessJitterAug(_FloatAugmenter):
    """Multiplies by 1 ± up to `brightness`."""

    def __init__(self, brightness: float):
        super().__init__(brightness=brightness)
        self.brightness = brightness

    def change(self, x: np.ndarray) -> np.ndarray:
        return x * np.float32(1.0 + random.uniform(-self.brightness, self.brightness))


class ContrastJitterAug(_FloatAugmenter):
    """Blends with the mean grey of the image: 1 ± up to `contrast`."""

    def __init__(self, contrast: float):
        super().__init__(contrast=contrast)
        self.contrast = contrast

    def change(self, x: np.ndarray) -> np.ndarray:
        alpha = 1.0 + random.uniform(-self.contrast, self.contrast)
        gray = x * GRAY
        return x * np.float32(alpha) + np.float32(3.0 * (1.0 - alpha) / gray.size * gray.sum(dtype=np.float64))


class SaturationJitterAug(_FloatAugmenter):
    """Blends with the grey of each pixel: 1 ± up to `saturation`."""

    def __init__(self, saturation: float):
        super().__init__(saturation=saturation)
        self.saturation = saturation

    def change(self, x: np.ndarray) -> np.ndarray:
        alpha = 1.0 + random.uniform(-self.saturation, self.saturation)
        gray = (x * GRAY).sum(axis=2, keepdims=True)
        return x * np.float32(alpha) + gray * np.float32(1.0 - alpha)


class HueJitterAug(_FloatAugmenter):
    """Turns the colours in the YIQ space by up to ±`hue` half turns."""

    def __init__(self, hue: float):
        super().__init__(hue=hue)
        self.hue = hue

    def change(self, x: np.ndarray) -> np.ndarray:
        return turn_hue(x, random.uniform(-self.hue, self.hue) * np.pi)


class ColorJitterAug(RandomOrderAug):
    """Brightness, contrast and saturation in random order; what is 0 is left out."""

    def __init__(self, brightness: float, contrast: float, saturation: float):
        kinds = ((brightness, BrightnessJitterAug), (contrast, ContrastJitterAug), (saturation, SaturationJitterAug))
        super().__init__([kind(value) for value, kind in kinds if value > 0])


class LightingAug(_FloatAugmenter):
    """Adds noise along the principal components of colour.

    Args:
        alphastd: standard deviation of the noise (NumPy's global generator).
        eigval, eigvec: (3,) and (3, 3).
    """

    def __init__(self, alphastd: float, eigval: Any, eigvec: Any):
        super().__init__(alphastd=alphastd, eigval=eigval, eigvec=eigvec)
        self.alphastd, self.eigval, self.eigvec = alphastd, to_numpy(eigval), to_numpy(eigvec)

    def change(self, x: np.ndarray) -> np.ndarray:
        alpha = np.random.normal(0, self.alphastd, size=(3,))
        return x + np.dot(self.eigvec * alpha, self.eigval).astype(np.float32)


class ColorNormalizeAug(Augmenter):
    """Returns (src - mean) / std."""

    def __init__(self, mean: Any, std: Any):
        super().__init__(mean=mean, std=std)
        self.mean = None if mean is None else to_numpy(mean).astype(np.float32)
        self.std = None if std is None else to_numpy(std).astype(np.float32)

    def __call__(self, src: Any) -> Any:
        return wrap_like(color_normalize(to_numpy(src), self.mean, self.std), src)


class RandomGrayAug(_FloatAugmenter):
    """Makes the image grey with probability `p`."""

    def __init__(self, p: float):
        super().__init__(p=p)
        self.p = p

    def __call__(self, src: Any) -> Any:
        return super().__call__(src) if random.random() < self.p else src

    def change(self, x: np.ndarray) -> np.ndarray:
        return np.repeat(x @ np.array([[0.21], [0.72], [0.07]], np.float32), 3, axis=2)


class HorizontalFlipAug(Augmenter):
    """Mirrors left and right with probability `p`."""

    def __init__(self, p: float):
        super().__init__(p=p)
        self.p = p

    def __call__(self, src: Any) -> Any:
        return wrap_like(np.ascontiguousarray(to_numpy(src)[:, ::-1]), src) if random.random() < self.p else src


class CastAug(Augmenter):
    """Converts to another dtype, float32 by default."""

    def __init__(self, typ: str = "float32"):
        super().__init__(type=typ)
        self.typ = typ

    def __call__(self, src: Any) -> Any:
        return src.astype(self.typ)


IMAGENET_MEAN = np.array([123.68, 116.28, 103.53], np.float32)
IMAGENET_STD = np.array([58.395, 57.12, 57.375], np.float32)


def statistics(value: Any, known: np.ndarray, what: str) -> np.ndarray | None:
    """Return a mean or deviation of three channels: `known` for True, None for None.

    Raises:
        ArgumentError: neither one nor three numbers.
    """
    if value is None or value is False:
        return None
    out = known if value is True else to_numpy(value)
    if out.shape not in ((1,), (3,)):
        raise ArgumentError(f"{what}: got shape {out.shape}: expected one number or three")
    return out


def CreateAugmenter(
    data_shape: Sequence[int],
    resize: int = 0,
    rand_crop: bool = False,
    rand_resize: bool = False,
    rand_mirror: bool = False,
    mean: Any = None,
    std: Any = None,
    brightness: float = 0,
    contrast: float = 0,
    saturation: float = 0,
    hue: float = 0,
    pca_noise: float = 0,
    rand_gray: float = 0,
    inter_method: int = 2,
) -> list[Augmenter]:
    """Return the usual list of augmenters for classification.

    Args:
        data_shape: (channels, height, width) of the result.
        resize: first make the shorter edge that long.
        rand_crop: crop at random, else in the middle. rand_resize: crop at random area and shape.
        rand_mirror: mirror every second image.
        mean, std: True for those of ImageNet, or three numbers.
        brightness, contrast, saturation, hue, pca_noise: strengths of the jitters.
        rand_gray: probability of grey images.
        inter_method: interpolation; see `imresize`.

    Raises:
        ArgumentError: `rand_resize` without `rand_crop`, or a mean of another shape.

    Example:
        >>> [type(a).__name__ for a in mx.image.CreateAugmenter((3, 24, 24), rand_mirror=True)]
        ['CenterCropAug', 'HorizontalFlipAug', 'CastAug']
    """
    out: list[Augmenter] = []
    if resize > 0:
        out.append(ResizeAug(resize, inter_method))
    size = (data_shape[2], data_shape[1])
    if rand_resize:
        if not rand_crop:
            raise ArgumentError("CreateAugmenter: rand_resize crops at random: it needs rand_crop=True")
        out.append(RandomSizedCropAug(size, 0.08, (3.0 / 4.0, 4.0 / 3.0), inter_method))
    else:
        out.append((RandomCropAug if rand_crop else CenterCropAug)(size, inter_method))
    if rand_mirror:
        out.append(HorizontalFlipAug(0.5))
    out.append(CastAug())
    out += color_augmenters(brightness, contrast, saturation, hue, pca_noise, rand_gray)
    mean, std = statistics(mean, IMAGENET_MEAN, "mean"), statistics(std, IMAGENET_STD, "std")
    if mean is not None or std is not None:
        out.append(ColorNormalizeAug(mean, std))
    return out


def color_augmenters(
    brightness: float, contrast: float, saturation: float, hue: float, pca_noise: float, rand_gray: float
) -> list[Augmenter]:
    """Return the augmenters of colour; what is 0 is left out."""
    out: list[Augmenter] = []
    if brightness or contrast or saturation:
        out.append(ColorJitterAug(brightness, contrast, saturation))
    if hue:
        out.append(HueJitterAug(hue))
    if pca_noise > 0:
        out.append(LightingAug(pca_noise, EIGENVALUES, EIGENVECTORS))
    if rand_gray > 0:
        out.append(RandomGrayAug(rand_gray))
    return out


__all__ = [
    "Augmenter",
    "BrightnessJitterAug",
    "CastAug",
    "CenterCropAug",
    "ColorJitterAug",
    "ColorNormalizeAug",
    "ContrastJitterAug",
    "CreateAugmenter",
    "ForceResizeAug",
    "HorizontalFlipAug",
    "HueJitterAug",
    "LightingAug",
    "RandomCropAug",
    "RandomGrayAug",
    "RandomOrderAug",
    "RandomSizedCropAug",
    "ResizeAug",
    "SaturationJitterAug",
    "SequentialAug",
]
