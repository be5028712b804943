"""`ImageDetIter`: batches of images with boxes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..core.errors import ArgumentError, FormatError
from ..io import codec
from ..io.batch import DataDesc, overridable_property
from ..io.place import to_numpy
from ..ndarray import NDArray, array
from .augment import IMAGENET_MEAN, IMAGENET_STD, statistics
from .boxes import CreateDetAugmenter, DetAugmenter
from .iterator import ImageIter


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
        cv2 = codec.cv2()
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


__all__ = ["ImageDetIter"]
