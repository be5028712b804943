"""Augmentation in `ImageRecordIter`: resize, rotate, crop, mirror, colours, normalize."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_type_hints

import numpy as np

from ..core.errors import ArgumentError
from ..op.schema import converter
from . import image_codec

GRAY = np.array([0.299, 0.587, 0.114], np.float32)
_TO_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
_FROM_YIQ = np.array([[1.0, 0.956, 0.621], [1.0, -0.272, -0.647], [1.0, -1.107, 1.705]])
# Principal components of the colours of ImageNet.
EIGENVALUES = np.array([55.46, 4.794, 1.148])
EIGENVECTORS = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])


@dataclass
class ImageAugmentation:
    """What is done to each image; the names and defaults are MXNet's.

    Attributes:
        resize: length of the shorter edge, first of all.
        rand_crop, random_resized_crop: crop somewhere; crop at random area and shape and resize.
        max_aspect_ratio, min_aspect_ratio: of a random crop. max_random_area, min_random_area: its share of the area.
        max_crop_size, min_crop_size: edge of a random square crop. max_random_scale, min_random_scale: of the size.
        max_rotate_angle, rotate: degrees. max_shear_ratio: of rows against each other.
        max_img_size, min_img_size: bounds of the edges of an image that was turned or scaled.
        fill_value: of what rotation, shearing and `pad` add. pad: rows and columns around.
        inter_method: 0 nearest, 1 bilinear, 2 bicubic, 3 area, 4 Lanczos, 9 by size, 10 random.
        mirror, rand_mirror: always, or every second time.
        brightness, contrast, saturation, pca_noise: strengths, where grey is 0.299·R + 0.587·G + 0.114·B (MXNet 1.9.1
            takes red for blue here). random_h, random_s, random_l: shifts in HSL.
        mean_r … std_a, scale: (x - mean) * scale / std, per channel.
        max_random_contrast, max_random_illumination: strengths of a factor and of a summand before `scale`.
    """

    resize: int = -1
    rand_crop: bool = False
    random_resized_crop: bool = False
    max_rotate_angle: int = 0
    rotate: int = -1
    max_aspect_ratio: float = 0.0
    min_aspect_ratio: float | None = None
    max_shear_ratio: float = 0.0
    max_crop_size: int = -1
    min_crop_size: int = -1
    max_random_scale: float = 1.0
    min_random_scale: float = 1.0
    max_random_area: float = 1.0
    min_random_area: float = 1.0
    max_img_size: float = 1e10
    min_img_size: float = 0.0
    fill_value: int = 255
    pad: int = 0
    inter_method: int = 1
    mirror: bool = False
    rand_mirror: bool = False
    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    pca_noise: float = 0.0
    random_h: int = 0
    random_s: int = 0
    random_l: int = 0
    mean_r: float = 0.0
    mean_g: float = 0.0
    mean_b: float = 0.0
    mean_a: float = 0.0
    std_r: float = 1.0
    std_g: float = 1.0
    std_b: float = 1.0
    std_a: float = 1.0
    scale: float = 1.0
    max_random_contrast: float = 0.0
    max_random_illumination: float = 0.0

    @classmethod
    def from_args(cls, who: str, given: Mapping[str, Any]) -> ImageAugmentation:
        """Return the changes that arguments describe, which may be texts as in MXNet.

        Raises:
            ArgumentError: a value of another type.
        """
        types = get_type_hints(cls, include_extras=True)
        return cls(**{name: parse_arg(who, name, value, types[name]) for name, value in given.items() if name in types})

    def _interp(self, rng: np.random.RandomState, old: Sequence[int], new: Sequence[int]) -> int:
        if self.inter_method == 10:
            return int(rng.randint(0, 5))
        if self.inter_method == 9:
            if new[0] > old[0] and new[1] > old[1]:
                return 2
            return 3 if new[0] < old[0] and new[1] < old[1] else 1
        return self.inter_method

    def _resized(self, x: np.ndarray, h: int, w: int, rng: np.random.RandomState) -> np.ndarray:
        return x if x.shape[:2] == (h, w) else image_codec.resize(x, w, h, self._interp(rng, x.shape, (h, w)))

    def geometry(self, x: np.ndarray, height: int, width: int, rng: np.random.RandomState) -> np.ndarray:
        """Return the image resized, turned, cropped and mirrored to `height` by `width`."""
        if self.resize > 0:
            h, w = x.shape[:2]
            small = (int(h * self.resize / w), self.resize) if w < h else (self.resize, int(w * self.resize / h))
            x = self._resized(x, *small, rng)
        x = self._affine(x, rng)
        if self.pad > 0:
            x = image_codec.pad_border(x, (self.pad,) * 4, 0, (self.fill_value,))
        if self.random_resized_crop:
            x = self._resized_crop(x, height, width, rng)
        else:
            x = self._crop(x, height, width, rng)
        flip = self.mirror or (self.rand_mirror and rng.random_sample() < 0.5)
        return x[:, ::-1] if flip else x

    def _affine(self, x: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        random = self.max_rotate_angle > 0
        angle = rng.randint(-self.max_rotate_angle, self.max_rotate_angle + 1) if random else 0
        angle = self.rotate if self.rotate > 0 else angle
        shear = rng.uniform(-self.max_shear_ratio, self.max_shear_ratio) if self.max_shear_ratio > 0 else 0.0
        scaled = self.min_random_scale != 1.0 or self.max_random_scale != 1.0
        scale = rng.uniform(self.min_random_scale, self.max_random_scale) if scaled else 1.0
        squeezed = self.max_aspect_ratio != 0 and not self.random_resized_crop
        ratio = rng.uniform(*self._aspects()) if squeezed else 1.0
        h, w = x.shape[:2]
        if not (angle or shear or scaled or squeezed):
            return x
        edges = np.clip([w * scale, h * scale], self.min_img_size, self.max_img_size)
        size = max(1, int(edges[0])), max(1, int(edges[1]))
        across = 2 * scale / (1 + ratio)
        down = ratio * across
        a, b = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
        matrix = np.array([[across * a - shear * b * down, across * b + shear * a * down], [-b * down, a * down]])
        middle = np.array([w, h]) / 2
        shift = edges / 2 - matrix @ middle
        cv2 = image_codec.cv2()
        full = np.concatenate([matrix, shift[:, None]], 1)
        fill = (self.fill_value,) * x.shape[2]
        turned = cv2.warpAffine(np.ascontiguousarray(x), full, size, flags=cv2.INTER_LINEAR, borderValue=fill)
        return turned.reshape(size[1], size[0], x.shape[2])

    def _resized_crop(self, x: np.ndarray, height: int, width: int, rng: np.random.RandomState) -> np.ndarray:
        h, w = x.shape[:2]
        low, high = self._aspects()
        for _ in range(10):
            area = rng.uniform(self.min_random_area, self.max_random_area) * h * w
            ratio = rng.uniform(low, high)
            new_w, new_h = round(np.sqrt(area * ratio)), round(np.sqrt(area / ratio))
            if rng.random_sample() > 0.5:
                new_w, new_h = new_h, new_w
            if 0 < new_w <= w and 0 < new_h <= h:
                y0, x0 = rng.randint(0, h - new_h + 1), rng.randint(0, w - new_w + 1)
                return self._resized(x[y0 : y0 + new_h, x0 : x0 + new_w], height, width, rng)
        return self._crop(x, height, width, rng)

    def _aspects(self) -> tuple[float, float]:
        if self.min_aspect_ratio is not None:
            return self.min_aspect_ratio, self.max_aspect_ratio
        return 1 - self.max_aspect_ratio, 1 + self.max_aspect_ratio

    def _crop(self, x: np.ndarray, height: int, width: int, rng: np.random.RandomState) -> np.ndarray:
        crop_h, crop_w = height, width
        if self.max_crop_size > 0 or self.min_crop_size > 0:
            crop_h = crop_w = int(rng.randint(max(self.min_crop_size, 1), max(self.max_crop_size, 1) + 1))
        h, w = x.shape[:2]
        if h < crop_h:
            x = self._resized(x, crop_h, max(1, w * crop_h // h), rng)
            h, w = x.shape[:2]
        if w < crop_w:
            x = self._resized(x, h * crop_w // w, crop_w, rng)
            h, w = x.shape[:2]
        if self.rand_crop:
            y0, x0 = rng.randint(0, h - crop_h + 1), rng.randint(0, w - crop_w + 1)
        else:
            y0, x0 = (h - crop_h) // 2, (w - crop_w) // 2
        return self._resized(x[y0 : y0 + crop_h, x0 : x0 + crop_w], height, width, rng)

    def colour(self, x: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """Return the image with its colours changed, in its own dtype unless they were changed."""
        if x.shape[2] == 3:
            x = shifted_hls(x, (self.random_h, self.random_l, self.random_s), rng)
        if not (self.brightness or self.contrast or self.saturation or self.pca_noise):
            return x
        x = x.astype(np.float32)
        if self.brightness:
            x = x * np.float32(1 + rng.uniform(-self.brightness, self.brightness))
        if self.contrast and x.shape[2] == 3:
            alpha = 1 + rng.uniform(-self.contrast, self.contrast)
            x = x * np.float32(alpha) + np.float32((1 - alpha) * (x @ GRAY).mean())
        if self.saturation and x.shape[2] == 3:
            alpha = 1 + rng.uniform(-self.saturation, self.saturation)
            x = x * np.float32(alpha) + (x @ GRAY)[..., None] * np.float32(1 - alpha)
        if self.pca_noise and x.shape[2] == 3:
            x = x + (EIGENVECTORS @ (EIGENVALUES * rng.normal(0, self.pca_noise, 3))).astype(np.float32)
        return x

    def normalize(self, x: np.ndarray, mean: np.ndarray | None, rng: np.random.RandomState) -> np.ndarray:
        """Return a float32 (C, H, W) image: (x - mean) * scale / std, with another contrast and illumination."""
        x = np.moveaxis(x, 2, 0).astype(np.float32)
        c = len(x)
        means = mean if mean is not None else self._each("mean", c)
        std = self._each("std", c) / np.float32(self.scale)
        return self._adjust_light(x - means, rng) / std

    def _adjust_light(self, x: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        if not (self.max_random_contrast or self.max_random_illumination):
            return x
        factor = 1 + rng.uniform(-self.max_random_contrast, self.max_random_contrast)
        summand = rng.uniform(-self.max_random_illumination, self.max_random_illumination)
        return x * np.float32(factor) + np.float32(summand)

    def _each(self, what: str, channels: int) -> np.ndarray:
        values = [getattr(self, f"{what}_{c}") for c in "rgba"[:channels]]
        return np.array(values, np.float32).reshape(-1, 1, 1)


def shifted_hls(x: np.ndarray, most: Sequence[int], rng: np.random.RandomState) -> np.ndarray:
    """Return a uint8 RGB image with hue, lightness and saturation shifted by up to `most` each."""
    if not any(most):
        return x
    cv2 = image_codec.cv2()
    hls = cv2.cvtColor(np.ascontiguousarray(x), cv2.COLOR_RGB2HLS).astype(np.int32)
    for channel, (shift, top) in enumerate(zip(most, (180, 255, 255), strict=True)):
        hls[..., channel] = np.clip(hls[..., channel] + rng.randint(-shift, shift + 1), 0, top)
    return cv2.cvtColor(hls.astype(np.uint8), cv2.COLOR_HLS2RGB)


def turn_hue(x: np.ndarray, angle: float) -> np.ndarray:
    """Return a float32 (H, W, 3) image whose colours are turned by `angle` radians in the YIQ space."""
    c, s = np.cos(angle), np.sin(angle)
    matrix = _FROM_YIQ @ np.array([[1, 0, 0], [0, c, -s], [0, s, c]]) @ _TO_YIQ
    return x @ matrix.T.astype(np.float32)


def parse_arg(who: str, name: str, value: Any, kind: Any) -> Any:
    """Return an argument as a value of type `kind`, a text too.

    Raises:
        ArgumentError: it is none.
    """
    try:
        return converter(kind)(value)
    except (TypeError, ValueError) as e:
        raise ArgumentError(f"{who}: {name}={value!r}: {e}") from None


__all__ = ["EIGENVALUES", "EIGENVECTORS", "GRAY", "ImageAugmentation", "parse_arg", "shifted_hls", "turn_hue"]
