"""`ImageRecordIter` and its variants: batches of images from record files, decoded and augmented in threads."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from ..core.dtypes import as_dtype
from ..core.errors import ArgumentError, FormatError, MXNetError
from ..core.reader import Content
from ..ndarray import NDArray, array, save
from ..op.schema import Shape
from . import image_codec
from .augment import ImageAugmentation, parse_arg
from .data_batch import DataBatch, DataDesc, overridable_property
from .data_iter import MXDataIter
from .det_augment import DetAugmentation
from .recordio import check_shard, offsets, read_record, shard_indices, shard_start, unpack

# Accepted; they steer threads and memory, which are arranged otherwise here.
_IGNORED = {
    "verbose", "device_id", "ctx", "prefetch_buffer", "shuffle_chunk_size", "shuffle_chunk_seed", "aug_seq",
}  # fmt: skip
_LINE_BYTES = 200  # bytes of what is made of a line of a list


class _ImageRecordBase(MXDataIter):
    """What the iterators over image records share."""

    _who = "ImageRecordIter"
    _dtype: Any = "float32"
    _kind: type[ImageAugmentation] = ImageAugmentation

    def __init__(
        self,
        path_imgrec: str | os.PathLike[str],
        data_shape: Sequence[int],
        batch_size: int,
        path_imglist: str = "",
        path_imgidx: str = "",
        label_width: int = 1,
        num_parts: int = 1,
        part_index: int = 0,
        shuffle: bool = False,
        seed: int = 0,
        seed_aug: int | None = None,
        round_batch: bool = True,
        preprocess_threads: int = 4,
        mean_img: str = "",
        dtype: Any = None,
        data_name: str = "data",
        label_name: str = "softmax_label",
        **changes: Any,
    ):
        known = {f.name for f in fields(self._kind)} | _IGNORED
        super().__init__(parse_arg(self._who, "batch_size", batch_size, int), [n for n in changes if n not in known])
        if self.batch_size < 1:
            raise ArgumentError(f"{self._who}: batch_size={batch_size}: expected 1 or more")
        self.data_shape = parse_arg(self._who, "data_shape", data_shape, Shape)
        if len(self.data_shape) != 3 or self.data_shape[0] not in (1, 3, 4) or min(self.data_shape) < 1:
            raise ArgumentError(f"{self._who}: data_shape={data_shape}: expected (1, 3 or 4, height, width)")
        check_shard(self._who, num_parts, part_index)
        self._augmentation = self._kind.from_args(self._who, changes)
        self._type = as_dtype(self._dtype if dtype is None else dtype)
        self._files = _files(path_imgrec, self._who)
        if path_imgidx and num_parts > 1:
            every = [(f, at) for f in self._files for at in offsets(f)]
            mine = shard_indices(len(every), num_parts, part_index)
            self._at = every[mine.start : mine.stop]
        else:
            self._at = [(f, at) for f in self._files for at in shard_start(f, num_parts, part_index)]
        if not self._at:
            raise ArgumentError(f"{self._who}: part {part_index} of {num_parts} of {path_imgrec!r} holds no record")
        self.label_width = parse_arg(self._who, "label_width", label_width, int)
        self.round_batch, self._shuffle = (
            parse_arg(self._who, n, v, bool) for n, v in (("round_batch", round_batch), ("shuffle", shuffle))
        )
        self._listed = _labels_of(path_imglist) if path_imglist else {}
        self._mean: np.ndarray | None = None
        self._names = (data_name, label_name)
        self._rng = np.random.RandomState(seed)
        self._seeds = np.random.RandomState(seed if seed_aug is None else seed_aug)
        self._threads = ThreadPoolExecutor(max(1, int(preprocess_threads)), "dualmx-images")
        self._start = 0  # images of this epoch that the last batch of the epoch before has used
        self._pending: list[Any] = []
        self._batch: DataBatch | None = None
        self._last: Any = None
        if mean_img:
            self._mean = self._read_mean(mean_img) if os.path.exists(mean_img) else self._new_mean(mean_img)
        self._begin()

    def _new_mean(self, path: str) -> np.ndarray:
        """Write the mean of all images of this part, as they are after their changes of form, to `path`."""
        logging.info("%s: %r does not exist: computing the mean of %d images", self._who, path, len(self._at))
        total = np.zeros(self.data_shape, np.float64)
        for row in range(len(self._at)):
            image, _, rng = self._read(row, 0)
            total += np.moveaxis(self._augmentation.geometry(image, self.data_shape[1], self.data_shape[2], rng), 2, 0)
        mean = (total / len(self._at)).astype(np.float32)
        if path.endswith(".npy"):
            np.save(path, mean)
        else:
            save(path, {"mean_img": array(mean)})
        return mean

    def _read_mean(self, path: str) -> np.ndarray:
        found = _mean(path)
        lengths = zip(found.shape, self.data_shape[-found.ndim :] if found.ndim else (), strict=False)
        if found.ndim > 3 or not all(n in (1, m) for n, m in lengths):
            wrong = Content(b"", repr(path), "a mean image")
            raise wrong.error(f"of shape {found.shape}", None, f"data_shape {tuple(self.data_shape)}")
        return found

    def __del__(self) -> None:
        threads = getattr(self, "_threads", None)
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)

    @overridable_property
    def provide_data(self) -> list[DataDesc]:
        return [DataDesc(self._names[0], (self.batch_size, *self.data_shape), self._type.type)]

    @overridable_property
    def provide_label(self) -> list[DataDesc]:
        shape = (self.batch_size,) if self.label_width == 1 else (self.batch_size, self.label_width)
        return [DataDesc(self._names[1], shape)]

    def _begin(self) -> None:
        order = self._rng.permutation(len(self._at)) if self._shuffle else np.arange(len(self._at))
        self._order = order
        self._next = self._start
        self._pending = []
        self._prefetch()

    def reset(self) -> None:
        self._begin()

    def _prefetch(self) -> None:
        """Start decoding the next batches: two are pending while one is used."""
        while len(self._pending) < 2 and self._next < len(self._order):
            at, n = self._next, len(self._order)
            rows = [int(self._order[i]) for i in range(at, min(at + self.batch_size, n))]
            short = self.batch_size - len(rows)
            if short and self.round_batch:
                rows += [int(self._order[i % n]) for i in range(short)]
            seeds = self._seeds.randint(0, 1 << 31, len(rows))
            made = [self._threads.submit(self._make, r, int(s)) for r, s in zip(rows, seeds, strict=True)]
            self._pending.append((made, short))
            self._next += self.batch_size
            if self._next >= n:
                self._start = short % n if self.round_batch else 0

    def _make(self, row: int, seed: int) -> tuple[np.ndarray, np.ndarray, int]:
        image, header, rng = self._read(row, seed)
        label = self._listed.get(header.id) if self._listed else np.atleast_1d(header.label)
        if label is None:
            raise self._wrong(f"its id {header.id} is not in path_imglist", "one that is")
        return *self._image(image, np.asarray(label, np.float32), rng), header.id

    def _read(self, row: int, seed: int) -> tuple[np.ndarray, Any, np.random.RandomState]:
        path, at = self._at[row]
        rng = np.random.RandomState(seed)
        with open(path, "rb") as f:
            f.seek(at)
            header, data = self._unpacked(read_record(f, path), path, at)
        try:
            image = image_codec.decode(data, 0 if self.data_shape[0] == 1 else 1 if self.data_shape[0] == 3 else -1)
        except FormatError as e:
            where = f"{self._who}: record with id {header.id} at byte {at} of {path!r}"
            raise e.within(where, repr(path)) from None
        return image, header, rng

    def _unpacked(self, record: bytes | None, path: str, at: int) -> tuple[Any, bytes]:
        try:
            return unpack(record or b"")
        except FormatError as e:
            raise e.within(f"{self._who}: record at byte {at} of {path!r}", repr(path)) from None

    def _wrong(self, problem: str, expected: str) -> FormatError:
        """The error of a record whose label does not fit."""
        files = ", ".join(self._files)
        return Content(b"", f"{self._who}: a record of {files!r}", "labels").error(problem, None, expected)

    def _image(self, x: np.ndarray, label: np.ndarray, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
        if label.size != self.label_width:
            raise self._wrong(f"has {label.size} labels, label_width={self.label_width}", "as many")
        changed = self._augmentation.geometry(x, self.data_shape[1], self.data_shape[2], rng)
        if changed.shape[2] != self.data_shape[0]:
            raise self._wrong(f"an image of {changed.shape[2]} channels", f"data_shape {tuple(self.data_shape)}")
        return self._augmentation.normalize(self._augmentation.colour(changed, rng), self._mean, rng), label

    def iter_next(self) -> bool:
        if not self._pending:
            self._batch = None
            return False
        made, short = self._pending.pop(0)
        self._prefetch()
        samples = [f.result() if isinstance(f, Future) else f for f in made]
        if len(samples) < self.batch_size:  # without round_batch what the batch before left there fills it up
            filling = self._last if self._last is not None else samples * self.batch_size
            samples += filling[len(samples) : self.batch_size]
            while len(samples) < self.batch_size:
                samples.append(samples[0])
        self._last = samples
        data = np.stack([x for x, _, _ in samples])
        if self._type.kind in "iu":
            info = np.iinfo(self._type)
            data = np.clip(np.rint(data), info.min, info.max)
        ids = np.array([i for _, _, i in samples], np.uint64)
        self._batch = DataBatch([array(data.astype(self._type), dtype=self._type)], [self._label(samples)], short, ids)
        return True

    def _label(self, samples: list[Any]) -> NDArray:
        rows = np.stack([label for _, label, _ in samples])
        return array(rows[:, 0] if self.label_width == 1 else rows, dtype="float32")

    def _now(self) -> DataBatch:
        if self._batch is None:
            raise MXNetError(f"{self._who}: no batch yet: call next() or iter_next() first")
        return self._batch

    def getdata(self) -> Any:
        return self._now().data[0]

    def getlabel(self) -> Any:
        return next(iter(self._now().label or ()))

    def getpad(self) -> int | None:
        return self._now().pad

    def getindex(self) -> np.ndarray | None:
        return self._now().index


class ImageRecordIter(_ImageRecordBase):
    """Batches of images from a record file: float32 (N, C, H, W), red first, 0 to 255 unless they are normalised.

    An incomplete last batch is filled from the beginning of the part, reported as `pad`, and the next epoch starts
    behind it; with `round_batch=False` what fills it is what the batch before left there.

    Args:
        path_imgrec: record file, or folder of `.rec` files.
        data_shape: (channels, height, width); larger images are cropped in the middle, smaller ones enlarged first.
        batch_size: images in a batch.
        path_imglist: list file with other labels for the records' ids.
        path_imgidx: index of the file, which is scanned all the same; parts are then of equally many records.
        label_width: labels of an image.
        num_parts, part_index: this worker's share; every record is in one part.
        shuffle, seed: a new order for each epoch.
        seed_aug: seed of the random changes.
        round_batch: see above.
        preprocess_threads: threads that decode.
        mean_img: file of a mean image, made by `mx.nd.save` or `numpy.save`; it is computed and written if it does
            not exist.
        dtype: of the data.
        data_name, label_name: names in the descriptions.
        changes: what else is done to the images; see `ImageAugmentation`.

    Raises:
        ArgumentError: an unknown setting or wrong values. MXNetError: a file cannot be read. FormatError: it is
            damaged, or a record has another number of labels.

    Example:
        >>> train = mx.io.ImageRecordIter("train.rec", (3, 224, 224), 128, rand_crop=True)  # doctest: +SKIP
    """


class ImageRecordUInt8Iter(_ImageRecordBase):
    """`ImageRecordIter` with uint8 data, which is not normalised."""

    _who, _dtype = "ImageRecordUInt8Iter", "uint8"


class ImageRecordInt8Iter(_ImageRecordBase):
    """`ImageRecordIter` with int8 data."""

    _who, _dtype = "ImageRecordInt8Iter", "int8"


class ImageDetRecordIter(_ImageRecordBase):
    """Batches of images with boxes from a record file; images are resized to `data_shape`, boxes in shares stay.

    A row of the labels is (channels, height, width, n, the n numbers of the raw label), filled up with
    `label_pad_value` to the width of the longest label, or to that of `label_pad_width` numbers.

    Args:
        path_imgrec, data_shape, batch_size, …: see `ImageRecordIter`.
        label_width: numbers that each label must have; -1 for any.
        label_pad_width: room for that many numbers; 0 or -1 for the longest label of the file.
        label_pad_value: what fills it up.
        changes: what else is done to images and boxes; see `DetAugmentation`.
    """

    _who, _kind = "ImageDetRecordIter", DetAugmentation
    _augmentation: DetAugmentation

    def __init__(
        self, *args: Any, label_width: int = -1, label_pad_width: int = 0, label_pad_value: float = -1.0, **kwargs: Any
    ):
        self._given_width = parse_arg(self._who, "label_width", label_width, int)
        self._pad_width = max(parse_arg(self._who, "label_pad_width", label_pad_width, int), 0)
        self._pad_value = parse_arg(self._who, "label_pad_value", label_pad_value, float)
        for name in ("rand_crop", "random_resized_crop", "max_rotate_angle", "rotate", "pad"):
            if name in kwargs and kwargs.pop(name) not in (-1, 0, False):
                raise ArgumentError(f"{self._who}: {name} would move the boxes; use rand_crop_prob or rand_pad_prob")
        super().__init__(*args, **kwargs)

    def _begin(self) -> None:
        if not self._pad_width or not hasattr(self, "_order"):
            longest = 0
            for path, at in self._at:
                with open(path, "rb") as f:
                    f.seek(at)
                    header = self._unpacked(read_record(f, path), path, at)[0]
                labels = self._listed.get(header.id) if self._listed else np.atleast_1d(header.label)
                longest = max(longest, 0 if labels is None else len(labels))
            if self._pad_width and self._pad_width < longest:
                raise ArgumentError(f"{self._who}: label_pad_width={self._pad_width}: a label has {longest} numbers")
            self._pad_width = self._pad_width or longest
            self.label_width = self._pad_width + 4
        super()._begin()

    def _image(self, x: np.ndarray, label: np.ndarray, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
        if self._given_width not in (-1, label.size):
            raise self._wrong(f"a label of {label.size} numbers", f"label_width={self._given_width}")
        fits = label.size >= 7 and np.isfinite(label[:2]).all()
        begin, width = (int(label[0]), int(label[1])) if fits else (0, 0)
        if not 2 <= begin <= label.size or width < 5 or (label.size - begin) % width:
            raise self._wrong(f"a label of {label.size} numbers, {begin} before boxes of {width}", "numbers that fit")
        c, h, w = self.data_shape
        x, boxes = self._augmentation.apply(x, label[begin:].reshape(-1, width), h, w, rng)
        label = np.concatenate([label[:begin], boxes.ravel()])
        row = np.full(self.label_width, self._pad_value, np.float32)
        row[: 4 + label.size] = [c, *x.shape[:2], label.size, *label]
        if x.shape[:2] != (h, w):
            canvas = np.zeros((h, w, x.shape[2]), x.dtype)
            canvas[: x.shape[0], : x.shape[1]] = x
            x = canvas
        return self._augmentation.normalize(x, self._mean, rng), row


def _files(path: str | os.PathLike[str], who: str) -> list[str]:
    where = Path(path)
    found = sorted(where.glob("*.rec")) if where.is_dir() else [where]
    if not found or not all(f.is_file() for f in found):
        raise MXNetError(f"{who}: path_imgrec={os.fspath(path)!r}: there is no such record file")
    return [str(f) for f in found]


def _labels_of(path: str | os.PathLike[str]) -> dict[int, np.ndarray]:
    out = {}
    content = Content.of_file(path, "lines of index, labels, path between tabs")
    content.reserve(_LINE_BYTES * bytes(content.data).count(b"\n"), "its lines")
    for number, line in content.lines():
        parts = line.strip().split("\t")
        try:
            if parts != [""]:
                out[int(parts[0])] = np.array(parts[1:-1], np.float32)
        except ValueError:
            raise content.error(f"line {number}: {line[:80]!r}") from None
    return out


def _mean(path: str) -> np.ndarray:
    from ..ndarray import load

    if path.endswith(".npy"):
        content = Content.of_file(path, "a mean image")
        found = content.npy()
        if found.dtype.kind not in "biuf":
            raise content.error(f"elements of {found.dtype}", None, "numbers")
        return found.astype(np.float32)
    saved = load(path)
    found = list(saved.values()) if isinstance(saved, dict) else saved
    if not found:
        raise Content(b"", repr(path), "a mean image").error("no array")
    return found[0].asnumpy().astype(np.float32)


__all__ = ["ImageDetRecordIter", "ImageRecordInt8Iter", "ImageRecordIter", "ImageRecordUInt8Iter"]
