"""Augmentation of images with boxes in `ImageDetRecordIter`: colours, mirror, pad, crop, resize."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..core.errors import ArgumentError
from ..op.schema import Floats, Shape
from . import image_codec
from .augment import ImageAugmentation, shifted_hls

_RANGES = (
    "crop_scales", "crop_aspect_ratios", "crop_overlaps", "crop_sample_coverages", "crop_object_coverages",
)  # fmt: skip


@dataclass
class DetAugmentation(ImageAugmentation):
    """What is done to each image with boxes; the names and defaults are MXNet's.

    Attributes:
        resize: length of the shorter edge, first of all.
        rand_mirror_prob, rand_pad_prob, rand_crop_prob: how often each is done.
        max_pad_scale: edges of the padded image in those of the image, at most. fill_value: its colour.
        num_crop_sampler: kinds of crops; one that succeeds is taken. What follows has a value for each, or one for all.
        min_crop_scales, max_crop_scales: root of the crop's share of the area.
        min_crop_aspect_ratios, max_crop_aspect_ratios: width / height of the crop.
        min_crop_overlaps, max_crop_overlaps: intersection over union of crop and some box.
        min_crop_sample_coverages, max_crop_sample_coverages: share of the crop that this box covers.
        min_crop_object_coverages, max_crop_object_coverages: share of this box in the crop.
        max_crop_trials: crops that are tried.
        crop_emit_mode: `"center"` drops boxes whose middle is outside, `"overlap"` those of which less than
            `emit_overlap_thresh` is inside. A crop without boxes fails.
        max_random_hue, max_random_saturation, max_random_illumination: shifts in HSL; random_hue_prob,
            random_saturation_prob, random_illumination_prob: how often.
        max_random_contrast: strength of a factor for all values; random_contrast_prob: how often.
        resize_mode: `"force"` to the shape of the data; `"shrink"` and `"fit"` keep the ratio of the edges and leave
            zeros right or below, where `"shrink"` does not enlarge.
    """

    fill_value: int = 127
    rand_mirror_prob: float = 0.0
    rand_pad_prob: float = 0.0
    max_pad_scale: float = 1.0
    rand_crop_prob: float = 0.0
    num_crop_sampler: int = 1
    min_crop_scales: Floats = (0.0,)
    max_crop_scales: Floats = (1.0,)
    min_crop_aspect_ratios: Floats = (1.0,)
    max_crop_aspect_ratios: Floats = (1.0,)
    min_crop_overlaps: Floats = (0.0,)
    max_crop_overlaps: Floats = (1.0,)
    min_crop_sample_coverages: Floats = (0.0,)
    max_crop_sample_coverages: Floats = (1.0,)
    min_crop_object_coverages: Floats = (0.0,)
    max_crop_object_coverages: Floats = (1.0,)
    max_crop_trials: Shape = (25,)
    crop_emit_mode: Literal["center", "overlap"] = "center"
    emit_overlap_thresh: float = 0.3
    max_random_hue: int = 0
    random_hue_prob: float = 0.0
    max_random_saturation: int = 0
    random_saturation_prob: float = 0.0
    max_random_illumination: int = 0
    random_illumination_prob: float = 0.0
    max_random_contrast: float = 0.0
    random_contrast_prob: float = 0.0
    resize_mode: Literal["force", "shrink", "fit"] = "force"

    def __post_init__(self) -> None:
        self.max_crop_trials = self._for_each("max_crop_trials")
        self._ranges = {
            name: list(zip(self._for_each(f"min_{name}"), self._for_each(f"max_{name}"), strict=True))
            for name in _RANGES
        }
        for name, pairs in self._ranges.items():
            for low, high in pairs:
                if not 0 <= low <= high or (name != "crop_aspect_ratios" and high > 1):
                    raise ArgumentError(f"min_{name}={low}, max_{name}={high}: expected 0 or more, in order, at most 1")

    def _for_each(self, name: str) -> tuple:
        values, n = getattr(self, name), self.num_crop_sampler
        if len(values) not in (1, n):
            raise ArgumentError(f"{name}={values}: expected one value, or one for each of {n} crop samplers")
        return tuple(values) * n if len(values) == 1 else tuple(values)

    def apply(
        self, x: np.ndarray, boxes: np.ndarray, height: int, width: int, rng: np.random.RandomState
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return an image of at most `height` by `width` and its boxes, rows (class, left, top, right, bottom, …)."""
        if self.resize > 0:
            h, w = x.shape[:2]
            small = (h * self.resize // w, self.resize) if w < h else (self.resize, w * self.resize // h)
            x = self._resized(x, *small, rng)
        x = self.colour(x, rng)
        if self.mirror or rng.random_sample() < max(self.rand_mirror_prob, 0.5 * self.rand_mirror):
            x, boxes = x[:, ::-1], boxes.copy()
            boxes[:, [1, 3]] = 1 - boxes[:, [3, 1]]
        if rng.random_sample() < self.rand_pad_prob and self.max_pad_scale > 1:
            x, boxes = self._padded(x, boxes, rng)
        if rng.random_sample() < self.rand_crop_prob:
            x, boxes = self._cropped(x, boxes, rng)
        return self._resized(x, *self._size(x.shape, height, width), rng), boxes

    def _size(self, shape: Sequence[int], height: int, width: int) -> tuple[int, int]:
        h, w = shape[:2]
        if self.resize_mode == "force":
            return height, width
        if self.resize_mode == "shrink" and h <= height and w <= width:
            return h, w
        if height * w < width * h:
            return height, max(1, w * height // h)
        return max(1, h * width // w), width

    def colour(self, x: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        if x.shape[2] == 3:
            most = [
                (self.max_random_hue, self.random_hue_prob),
                (self.max_random_illumination, self.random_illumination_prob),
                (self.max_random_saturation, self.random_saturation_prob),
            ]
            x = shifted_hls(x, [m if m and rng.random_sample() < p else 0 for m, p in most], rng)
        if self.max_random_contrast and rng.random_sample() < self.random_contrast_prob:
            factor = 1 + rng.uniform(-self.max_random_contrast, self.max_random_contrast)
            x = np.clip(np.rint(x * factor), 0, 255).astype(np.uint8)
        return super().colour(x, rng)

    def _adjust_light(self, x: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        return x  # contrast and illumination belong to the colours here

    def _padded(self, x: np.ndarray, boxes: np.ndarray, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
        h, w = x.shape[:2]
        scale = rng.uniform(1, self.max_pad_scale)
        high, wide = int(h * scale), int(w * scale)
        top, left = rng.randint(0, high - h + 1), rng.randint(0, wide - w + 1)
        boxes = boxes.copy()
        boxes[:, [1, 3]] = (boxes[:, [1, 3]] * w + left) / wide
        boxes[:, [2, 4]] = (boxes[:, [2, 4]] * h + top) / high
        edges = (top, high - h - top, left, wide - w - left)
        return image_codec.pad_border(x, edges, 0, (self.fill_value,)), boxes

    def _cropped(self, x: np.ndarray, boxes: np.ndarray, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
        h, w = x.shape[:2]
        for sampler in rng.permutation(self.num_crop_sampler):
            for _ in range(self.max_crop_trials[sampler]):
                scale = rng.uniform(*self._ranges["crop_scales"][sampler])
                ratio = np.sqrt(rng.uniform(*self._ranges["crop_aspect_ratios"][sampler]))
                edge = scale * np.sqrt(h * w)
                wide, high = min(round(edge * ratio), w), min(round(edge / ratio), h) if ratio else 0
                if wide < 1 or high < 1:
                    continue
                left, top = rng.randint(0, w - wide + 1), rng.randint(0, h - high + 1)
                window = np.array([left / w, top / h, (left + wide) / w, (top + high) / h])
                kept = self._boxes_in(window, boxes, sampler)
                if len(kept):
                    return x[top : top + high, left : left + wide], kept
        return x, boxes

    def _boxes_in(self, window: np.ndarray, boxes: np.ndarray, sampler: int) -> np.ndarray:
        """Boxes that stay in a crop, in shares of it; none if the crop is not as the sampler wants it."""
        low, high = np.maximum(boxes[:, 1:3], window[:2]), np.minimum(boxes[:, 3:5], window[2:])
        inside = np.prod(np.maximum(high - low, 0), axis=1)
        area, window_area = np.prod(boxes[:, 3:5] - boxes[:, 1:3], axis=1), np.prod(window[2:] - window[:2])
        covered = np.divide(inside, area, out=np.zeros_like(area), where=area > 0)
        good = np.ones(len(boxes), bool)
        for name, share in (
            ("crop_overlaps", inside / (area + window_area - inside)),
            ("crop_sample_coverages", inside / window_area),
            ("crop_object_coverages", covered),
        ):
            least, most = self._ranges[name][sampler]
            good &= (share >= least) & (share <= most)
        if not good.any():
            return boxes[:0]
        if self.crop_emit_mode == "center":
            middle = (boxes[:, 1:3] + boxes[:, 3:5]) / 2
            stays = ((middle >= window[:2]) & (middle <= window[2:])).all(axis=1)
        else:
            stays = covered >= self.emit_overlap_thresh
        kept = boxes[stays].copy()
        kept[:, 1:5] = np.clip((kept[:, 1:5] - np.tile(window[:2], 2)) / np.tile(window[2:] - window[:2], 2), 0, 1)
        return kept


__all__ = ["DetAugmentation"]
