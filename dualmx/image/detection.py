"""Images with boxes: augmenters and `ImageDetIter`. A label row is (class, left, top, right, bottom, …)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..core.errors import ArgumentError, FormatError
from ..io import image_codec
from ..io.data_batch import DataDesc, overridable_property
from ..io.worker_mode import to_numpy, wrap_like
from ..ndarray import NDArray, array
from .augment import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    Augmenter,
    CastAug,
    ColorNormalizeAug,
    ForceResizeAug,
    ResizeAug,
    Settings,
    apply,
    color_augmenters,
    statistics,
)
from .functions import fixed_crop
from .iterator import ImageIter


class DetAugmenter(Settings):
    """Base of augmenters of images with boxes: define `__call__(src, label)`, which returns both, changed.

    Args:
        kwargs: settings, shown by `dumps`.
    """

    def __call__(self, src: Any, label: np.ndarray) -> tuple[Any, np.ndarray]:
        raise NotImplementedError(f"{type(self).__name__} must define __call__")


class DetBorrowAug(DetAugmenter):
    """Applies an augmenter that leaves boxes where they are, as those of colours and `ForceResizeAug` do."""

    def __init__(self, augmenter: Augmenter):
        if not isinstance(augmenter, Augmenter):
            raise ArgumentError(f"DetBorrowAug: got {type(augmenter).__name__}: expected an Augmenter")
        super().__init__()
        self.augmenter = augmenter

    def dumps(self) -> Any:
        return [type(self).__name__.lower(), self.augmenter.dumps()]

    def __call__(self, src: Any, label: np.ndarray) -> tuple[Any, np.ndarray]:
        return apply(self.augmenter, src), label


class DetRandomSelectAug(DetAugmenter):
    """Applies one of several augmenters, or, with probability `skip_prob`, none."""

    def __init__(self, aug_list: Sequence[DetAugmenter], skip_prob: float = 0):
        super().__init__(skip_prob=skip_prob)
        augs: list[Any] = list(aug_list) if isinstance(aug_list, (list, tuple)) else [aug_list]
        if not all(isinstance(a, DetAugmenter) for a in augs):
            raise ArgumentError("DetRandomSelectAug: aug_list: expected DetAugmenters")
        self.aug_list: list[Any] = augs
        self.skip_prob = skip_prob if augs else 1.0

    def dumps(self) -> Any:
        return [type(self).__name__.lower(), [a.dumps() for a in self.aug_list]]

    def __call__(self, src: Any, label: np.ndarray) -> tuple[Any, np.ndarray]:
        if random.random() < self.skip_prob:
            return src, label
        random.shuffle(self.aug_list)
        return self.aug_list[0](src, label)


class DetHorizontalFlipAug(DetAugmenter):
    """Mirrors image and boxes left and right with probability `p`."""

    def __init__(self, p: float):
        super().__init__(p=p)
        self.p = p

    def __call__(self, src: Any, label: np.ndarray) -> tuple[Any, np.ndarray]:
        if random.random() >= self.p:
            return src, label
        label = label.copy()
        label[:, [1, 3]] = 1.0 - label[:, [3, 1]]
        return wrap_like(np.ascontiguousarray(to_numpy(src)[:, ::-1]), src), label


def _pair(value: Any) -> tuple[float, float]:
    """Least and most; a single number is both."""
    return (value[0], value[1]) if isinstance(value, (list, tuple)) else (value, value)


class DetRandomCropAug(DetAugmenter):
    """Cuts out a window of random area and shape that covers enough of the boxes.

    Args:
        min_object_covered: more than this share of every box that the window touches must be in it.
        aspect_ratio_range: (least, most) width / height of the window. area_range: its share of the image. A single
            number is both.
        min_eject_coverage: boxes of which a smaller share is left are dropped.
        max_attempts: windows that are tried.
    """

    def __init__(
        self,
        min_object_covered: float = 0.1,
        aspect_ratio_range: Any = (0.75, 1.33),
        area_range: Any = (0.05, 1.0),
        min_eject_coverage: float = 0.3,
        max_attempts: int = 50,
    ):
        ratios, areas = _pair(aspect_ratio_range), _pair(area_range)
        super().__init__(
            min_object_covered=min_object_covered, aspect_ratio_range=ratios, area_range=areas,
            min_eject_coverage=min_eject_coverage, max_attempts=max_attempts,
        )  # fmt: skip
        self.min_object_covered, self.min_eject_coverage = min_object_covered, min_eject_coverage
        self.aspect_ratio_range, self.area_range, self.max_attempts = ratios, areas, max_attempts

    def __call__(self, src: Any, label: np.ndarray) -> tuple[Any, np.ndarray]:
        h, w = src.shape[:2]
        low, high = self.area_range[0] * h * w, min(self.area_range[1], 1.0) * h * w
        for _ in range(self.max_attempts if 0 < high and low <= high else 0):
            ratio = random.uniform(*self.aspect_ratio_range)
            if ratio <= 0:
                continue
            most = min(round(np.sqrt(high / ratio)), h)
            if round(most * ratio) > w:
                most = int((w + 0.4999999) / ratio)
            least = min(round(np.sqrt(low / ratio)), most)
            new_h = random.randint(least, most) if least < most else most
            new_w = round(new_h * ratio)
            if new_w * new_h < low:
                new_h += 1
            elif new_w * new_h > high:
                new_h -= 1
            new_w = round(new_h * ratio)
            if not (0 < new_w <= w and 0 < new_h <= h and low <= new_w * new_h <= high):
                continue
            y, x = random.randint(0, h - new_h), random.randint(0, w - new_w)
            boxes = self._seen(label, x / w, y / h, new_w / w, new_h / h)
            if boxes is not None:
                return fixed_crop(src, x, y, new_w, new_h), boxes
        return src, label

    def _seen(self, label: np.ndarray, x: float, y: float, w: float, h: float) -> np.ndarray | None:
        """The boxes in shares of the window; None if it does not cover enough of them."""
        wide, high = label[:, 3] - label[:, 1], label[:, 4] - label[:, 2]
        left, right = np.maximum(label[:, 1], x), np.minimum(label[:, 3], x + w)
        top, bottom = np.maximum(label[:, 2], y), np.minimum(label[:, 4], y + h)
        inside = np.maximum(right - left, 0) * np.maximum(bottom - top, 0)
        area = wide * high
        covered = np.divide(inside, area, out=np.zeros_like(area), where=area > 0)
        touched = covered > 0
        if not touched.any() or covered[touched].min() <= self.min_object_covered:
            return None
        kept = covered > self.min_eject_coverage
        if not kept.any():
            return None
        out = label[kept].copy()
        out[:, [1, 3]] = np.clip((out[:, [1, 3]] - x) / w, 0, 1)
        out[:, [2, 4]] = np.clip((out[:, [2, 4]] - y) / h, 0, 1)
        return out


class DetRandomPadAug(DetAugmenter):
    """Puts the image somewhere on a larger canvas.

    Args:
        aspect_ratio_range: (least, most) width / height of the canvas. area_range: its area in those of the image.
        max_attempts: canvases that are tried.
        pad_val: colour of the canvas.
    """

    def __init__(
        self,
        aspect_ratio_range: Any = (0.75, 1.33),
        area_range: Any = (1.0, 3.0),
        max_attempts: int = 50,
        pad_val: Any = (128, 128, 128),
    ):
        ratios, areas = _pair(aspect_ratio_range), _pair(area_range)
        colour = tuple(pad_val) if isinstance(pad_val, (list, tuple)) else (pad_val,)
        super().__init__(aspect_ratio_range=ratios, area_range=areas, max_attempts=max_attempts, pad_val=colour)
        self.aspect_ratio_range, self.area_range = ratios, areas
        self.max_attempts, self.pad_val = max_attempts, colour

    def __call__(self, src: Any, label: np.ndarray) -> tuple[Any, np.ndarray]:
        h, w = src.shape[:2]
        low, high = max(self.area_range[0], 1.0) * h * w, self.area_range[1] * h * w
        for _ in range(self.max_attempts if high > h * w and low <= high else 0):
            ratio = random.uniform(*self.aspect_ratio_range)
            if ratio <= 0:
                continue
            most, least = round(np.sqrt(high / ratio)), round(np.sqrt(low / ratio))
            if round(least * ratio) < w:
                least = int((w + 0.499999) / ratio)
            least = min(max(least, h), most)
            new_h = random.randint(least, most) if least < most else most
            new_w = round(new_h * ratio)
            if new_h - h < 2 or new_w - w < 2:  # too little to be of use
                continue
            y, x = random.randint(0, new_h - h), random.randint(0, new_w - w)
            edges = (y, new_h - h - y, x, new_w - w - x)
            out = label.copy()
            out[:, [1, 3]] = (out[:, [1, 3]] * w + x) / new_w
            out[:, [2, 4]] = (out[:, [2, 4]] * h + y) / new_h
            return wrap_like(image_codec.pad_border(to_numpy(src), edges, 0, self.pad_val), src), out
        return src, label


def CreateMultiRandCropAugmenter(
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = (0.75, 1.33),
    area_range: Any = (0.05, 1.0),
    min_eject_coverage: Any = 0.3,
    max_attempts: Any = 50,
    skip_prob: float = 0,
) -> DetRandomSelectAug:
    """Return a choice among croppings; each argument is one value for all, or a list of one for each.

    Raises:
        ArgumentError: lists of different lengths.
    """
    given = [min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts]
    lists = [v if isinstance(v, list) else [v] for v in given]
    count = max(len(v) for v in lists)
    if any(len(v) not in (1, count) for v in lists):
        lengths = [len(v) for v in lists]
        raise ArgumentError(f"CreateMultiRandCropAugmenter: lists of {lengths} values: expected one length")
    rows = zip(*(v * count if len(v) == 1 else v for v in lists), strict=True)
    return DetRandomSelectAug([DetRandomCropAug(*row) for row in rows], skip_prob)


def CreateDetAugmenter(
    data_shape: Sequence[int],
    resize: int = 0,
    rand_crop: float = 0,
    rand_pad: float = 0,
    rand_gray: float = 0,
    rand_mirror: bool = False,
    mean: Any = None,
    std: Any = None,
    brightness: float = 0,
    contrast: float = 0,
    saturation: float = 0,
    pca_noise: float = 0,
    hue: float = 0,
    inter_method: int = 2,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = (0.75, 1.33),
    area_range: Any = (0.05, 3.0),
    min_eject_coverage: Any = 0.3,
    max_attempts: int = 50,
    pad_val: Any = (127, 127, 127),
) -> list[DetAugmenter]:
    """Return the usual list of augmenters for detection.

    Args:
        data_shape: (channels, height, width) of the result.
        resize: first make the shorter edge that long.
        rand_crop, rand_pad, rand_gray: probabilities of cropping, padding, grey images.
        rand_mirror: mirror every second image.
        mean, std: True for those of ImageNet, or three numbers.
        brightness, contrast, saturation, pca_noise, hue: strengths of the jitters.
        inter_method: interpolation; see `imresize`.
        min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts: see `DetRandomCropAug`.
        pad_val: see `DetRandomPadAug`.

    Example:
        >>> [type(a).__name__ for a in mx.image.CreateDetAugmenter((3, 24, 24), rand_mirror=True)]
        ['DetHorizontalFlipAug', 'DetBorrowAug', 'DetBorrowAug']
    """
    out: list[DetAugmenter] = []
    if resize > 0:
        out.append(DetBorrowAug(ResizeAug(resize, inter_method)))
    if rand_crop > 0:
        settings = (min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts)
        out.append(CreateMultiRandCropAugmenter(*settings, skip_prob=1 - rand_crop))
    if rand_mirror:
        out.append(DetHorizontalFlipAug(0.5))
    if rand_pad > 0:
        pad = DetRandomPadAug(aspect_ratio_range, (1.0, _pair(area_range)[1]), max_attempts, pad_val)
        out.append(DetRandomSelectAug([pad], 1 - rand_pad))
    out.append(DetBorrowAug(ForceResizeAug((data_shape[2], data_shape[1]), inter_method)))
    out.append(DetBorrowAug(CastAug()))
    for aug in color_augmenters(brightness, contrast, saturation, hue, pca_noise, rand_gray):
        out.append(DetBorrowAug(aug))
    mean, std = statistics(mean, IMAGENET_MEAN, "mean"), statistics(std, IMAGENET_STD, "std")
    if mean is not None or std is not None:
        out.append(DetBorrowAug(ColorNormalizeAug(mean, std)))
    return out


class ImageDetIter(ImageIter):
    """Batches of images, float32 (N, C, H, W), and boxes (N, most boxes of an image, width), -1 where there is none.

    A raw label is (n, width, … n numbers in all …, box, box, …); a box is (class, left, top, right, bottom, …) in
    shares of width and height. Boxes without area are dropped.

    Args:
        batch_size, data_shape, path_imgrec, path_imglist, path_root, path_imgidx, shuffle, part_index, num_parts,
            imglist, data_name, last_batch_handle: see `ImageIter`.
        aug_list: augmenters; by default those that `CreateDetAugmenter(data_shape, **kwargs)` returns.
        label_name: name in the description.

    Attributes:
        label_shape: (most boxes, width).

    Raises:
        FormatError: a label of another form, or without a box.
    """

    def __init__(
        self,
        batch_size: int,
        data_shape: Sequence[int],
        path_imgrec: str | None = None,
        path_imglist: str | None = None,
        path_root: str | None = None,
        path_imgidx: str | None = None,
        shuffle: bool = False,
        part_index: int = 0,
        num_parts: int = 1,
        aug_list: Sequence[DetAugmenter] | None = None,
        imglist: Sequence[Any] | None = None,
        data_name: str = "data",
        label_name: str = "label",
        last_batch_handle: str = "pad",
        **kwargs: Any,
    ):
        super().__init__(
            batch_size, data_shape, 1, path_imgrec, path_imglist, path_root, path_imgidx, shuffle, part_index,
            num_parts, [], imglist, data_name, label_name, "float32", last_batch_handle,
        )  # fmt: skip
        self.auglist: list[Any] = list(CreateDetAugmenter(data_shape, **kwargs) if aug_list is None else aug_list)
        self.label_shape = self._estimate_label_shape()

    @overridable_property
    def provide_label(self) -> list[DataDesc]:
        return [DataDesc(self._names[1], (self.batch_size, *self.label_shape))]

    def _estimate_label_shape(self) -> tuple[int, int]:
        """Most boxes of an image, and the width of a box."""
        most, width = 0, 5
        self.reset()
        while self.cur < len(self.seq):
            boxes = self._parse_label(self.next_sample()[0])
            most, width = max(most, len(boxes)), max(width, boxes.shape[1])
        self.reset()
        return most, width

    def _parse_label(self, label: Any) -> np.ndarray:
        """Boxes (N, width) of a raw label."""
        raw = np.asarray(label.asnumpy() if isinstance(label, NDArray) else label, np.float32).ravel()
        if raw.size < 7:
            raise self._wrong(f"a label of {raw.size} numbers", "7 or more")
        begin, width = (int(n) if np.isfinite(n) else 0 for n in raw[:2])
        if not 2 <= begin <= raw.size or width < 5 or (raw.size - begin) % width:
            raise self._wrong(f"a label of {raw.size} numbers, {begin} before boxes of {width}", "numbers that fit")
        boxes = raw[begin:].reshape(-1, width)
        boxes = boxes[(boxes[:, 3] > boxes[:, 1]) & (boxes[:, 4] > boxes[:, 2])]
        if not len(boxes):
            raise self._wrong("a label without a box of positive area", "one or more")
        return boxes

    def augmentation_transform(self, data: Any, label: Any = None) -> Any:
        """Apply the augmenters to an (H, W, C) image and its boxes."""
        for aug in self.auglist:
            data, label = aug(data, label)
        return data, label

    def _sample(self) -> tuple[np.ndarray, np.ndarray]:
        label, raw = self.next_sample()
        try:
            decoded = self.imdecode(raw)
        except FormatError as e:
            raise self._inside(e) from None
        image, boxes = self.augmentation_transform(decoded, self._parse_label(label))
        image = to_numpy(self.postprocess_data(image))
        if image.shape != self.data_shape:
            raise ArgumentError(
                f"{type(self).__name__}: an augmented image has shape {image.shape}: expected {self.data_shape}"
            )
        padded = np.full(self.label_shape, -1, np.float32)
        boxes = boxes[: len(padded)]
        padded[: len(boxes), : boxes.shape[1]] = boxes
        return image, padded

    def _labels(self, rows: list[np.ndarray]) -> Any:
        return array(np.stack(rows), dtype="float32")

    def check_label_shape(self, label_shape: Sequence[int]) -> None:
        """Raise `ArgumentError` unless all boxes fit into (most boxes, width) `label_shape`."""
        if len(label_shape) != 2 or label_shape[0] < self.label_shape[0] or label_shape[1] != self.label_shape[1]:
            raise ArgumentError(
                f"{type(self).__name__}: label_shape={tuple(label_shape)}: expected {self.label_shape}, or more boxes"
            )

    def reshape(self, data_shape: Sequence[int] | None = None, label_shape: Sequence[int] | None = None) -> None:
        """Change the shapes of images and labels; the labels may only get room for more boxes."""
        if data_shape is not None:
            self.check_data_shape(data_shape)
            self.data_shape = tuple(data_shape)
        if label_shape is not None:
            self.check_label_shape(label_shape)
            self.label_shape = (int(label_shape[0]), int(label_shape[1]))

    def draw_next(
        self,
        color: Sequence[int] | None = None,
        thickness: int = 2,
        mean: Any = None,
        std: Any = None,
        clip: bool = True,
        waitKey: int | None = None,
        window_name: str = "draw_next",
        id2labels: Any = None,
    ) -> Iterator[np.ndarray]:
        """Yield augmented images (H, W, C), blue first, with their boxes drawn.

        Args:
            color: of the boxes; by default a random one for each. thickness: of their lines, in pixels.
            mean, std: undo this normalisation first; True for that of ImageNet.
            clip: keep values within 0 to 255.
            waitKey: show each image for that many milliseconds in the window `window_name` (0: until a key).
            id2labels: names of the classes, by number.
        """
        mean, std = statistics(mean, IMAGENET_MEAN, "mean"), statistics(std, IMAGENET_STD, "std")
        cv2 = image_codec.cv2()
        while self.cur < len(self.seq):
            planes, boxes = self._sample()
            image = planes.transpose(1, 2, 0).astype(np.float64)
            image = image * (1.0 if std is None else std) + (0.0 if mean is None else mean)
            image = np.clip(image, 0, 255) if clip else image
            drawn = np.ascontiguousarray(np.rint(image[..., ::-1]).astype(np.uint8))
            h, w = drawn.shape[:2]
            for kind, *edges in boxes[boxes[:, 0] >= 0][:, :5].tolist():
                x0, y0, x1, y1 = (int(e * size) for e, size in zip(edges, (w, h, w, h), strict=True))
                paint = tuple(int(c) for c in (np.random.randint(0, 256, 3) if color is None else color))
                cv2.rectangle(drawn, (x0, y0), (x1, y1), paint, thickness)
                if id2labels is not None:
                    cv2.putText(drawn, str(id2labels[int(kind)]), (x0 + 5, y0 + 15), 0, 0.5, paint)
            if waitKey is not None:
                cv2.imshow(window_name, drawn)
                cv2.waitKey(waitKey)
            yield drawn

    def sync_label_shape(self, it: ImageDetIter, verbose: bool = False) -> ImageDetIter:
        """Give this iterator and `it` the greater label shape of the two; returns `it`."""
        if not isinstance(it, ImageDetIter):
            raise ArgumentError(f"sync_label_shape: got {type(it).__name__}: expected an ImageDetIter")
        both = (max(self.label_shape[0], it.label_shape[0]), max(self.label_shape[1], it.label_shape[1]))
        self.reshape(label_shape=both)
        it.reshape(label_shape=both)
        return it


__all__ = [
    "CreateDetAugmenter",
    "CreateMultiRandCropAugmenter",
    "DetAugmenter",
    "DetBorrowAug",
    "DetHorizontalFlipAug",
    "DetRandomCropAug",
    "DetRandomPadAug",
    "DetRandomSelectAug",
    "ImageDetIter",
]
