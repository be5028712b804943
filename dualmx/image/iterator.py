"""`ImageIter`: batches of augmented images from a record file, a list file or a list."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.dtypes import as_dtype
from ..core.errors import ArgumentError, FormatError, MXNetError
from ..core.reader import Content
from ..io import image_codec
from ..io.data_batch import DataBatch, DataDesc, overridable_property
from ..io.data_iter import DataIter
from ..io.recordio import check_shard, offsets, read_record, shard_indices, unpack
from ..io.worker_mode import to_numpy
from ..ndarray import NDArray, array
from .augment import Augmenter, CreateAugmenter, apply

_LINE_BYTES = 300  # bytes of what is made of a line of a list


def read_list(path: str | os.PathLike[str]) -> list[tuple[int, np.ndarray, str]]:
    """Return (index, labels, file) of each line of a list file: `index`, labels and relative path between tabs.

    Raises:
        MXNetError: the file cannot be read. FormatError: a line has another form.
    """
    name = os.fspath(path)
    content = Content.of_file(name, "lines of index, label, path between tabs")
    content.reserve(_LINE_BYTES * bytes(content.data).count(b"\n"), "its lines")
    out = []
    for number, line in content.lines():
        fields = line.strip().split("\t")
        if fields == [""]:
            continue
        try:
            index, labels = int(float(fields[0])), np.array(fields[1:-1], np.float32)
        except (ValueError, OverflowError):
            index, labels = 0, np.empty(0)
        if not labels.size:
            raise content.error(f"line {number}: {line[:80]!r}", None, "index, label, path between tabs")
        out.append((index, labels, fields[-1]))
    return out


class ImageIter(DataIter):
    """Batches of images, float32 (N, C, H, W), and their labels.

    The images come from `path_imgrec` (with `path_imglist` or alone), from the files named by `path_imglist`, or
    from those named by `imglist`. A broken image is an error that names it.

    Args:
        batch_size: images in a batch.
        data_shape: (channels, height, width) that the augmenters make.
        label_width: labels of an image.
        path_imgrec: record file. path_imgidx: its index; accepted, the file is scanned without one.
        path_imglist: list file; see `read_list`. imglist: list of `[label…, file]` or `[labels, file]`.
        path_root: folder of the files.
        shuffle: a new order for each epoch, by Python's `random`.
        part_index, num_parts: this worker's share; every image is in one part.
        aug_list: augmenters; by default those that `CreateAugmenter(data_shape, **kwargs)` returns.
        data_name, label_name: names in the descriptions.
        dtype: int32, int64, float32 or float64: of the labels in lists; batches are float32 all the same.
        last_batch_handle: `"pad"` begins again and reports `pad`, `"discard"` drops an incomplete batch,
            `"roll_over"` opens the next epoch with it.

    Raises:
        ArgumentError: no source, another number of channels, or an unknown `last_batch_handle`.

    Example:
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "a.rec")
        >>> with mx.recordio.MXRecordIO(path, "w") as out:
        ...     for i in range(4):
        ...         picture = np.full((8, 8, 3), 50 * i, "uint8")
        ...         out.write(mx.recordio.pack_img((0, float(i), i, 0), picture, 9, ".png"))
        >>> batch = next(mx.image.ImageIter(2, (3, 8, 8), path_imgrec=path))
        >>> batch.data[0].shape, batch.label[0].asnumpy().tolist()
        ((2, 3, 8, 8), [0.0, 1.0])
    """

    def __init__(
        self,
        batch_size: int,
        data_shape: Sequence[int],
        label_width: int = 1,
        path_imgrec: str | None = None,
        path_imglist: str | None = None,
        path_root: str | None = None,
        path_imgidx: str | None = None,
        shuffle: bool = False,
        part_index: int = 0,
        num_parts: int = 1,
        aug_list: Sequence[Augmenter] | None = None,
        imglist: Sequence[Any] | None = None,
        data_name: str = "data",
        label_name: str = "softmax_label",
        dtype: Any = "float32",
        last_batch_handle: str = "pad",
        **kwargs: Any,
    ):
        super().__init__(int(batch_size))
        who = type(self).__name__
        if batch_size < 1 or label_width < 1:
            raise ArgumentError(f"{who}: batch_size={batch_size}, label_width={label_width}: expected 1 or more")
        if last_batch_handle not in ("pad", "discard", "roll_over"):
            raise ArgumentError(f"{who}: last_batch_handle={last_batch_handle!r}: expected pad, discard or roll_over")
        check_shard(who, num_parts, part_index)
        self.data_shape = tuple(data_shape)
        self.check_data_shape(self.data_shape)
        self._label_type = as_dtype(dtype)
        if self._label_type.name not in ("int32", "int64", "float32", "float64"):
            raise ArgumentError(f"{who}: dtype={dtype!r}: expected int32, int64, float32 or float64, for labels")
        self.label_width, self.shuffle = label_width, shuffle
        self.path_root, self.last_batch_handle = path_root, last_batch_handle
        self.imglist: dict[Any, tuple[np.ndarray, str]] = {}
        self.imgrec: Any = None
        self._names = (data_name, label_name)
        seq = self._sources(path_imgrec, path_imglist, imglist)
        self.seq: list[Any] = [seq[i] for i in shard_indices(len(seq), num_parts, part_index)]
        if not self.seq:
            raise ArgumentError(f"{who}: part {part_index} of {num_parts}: no images")
        self.auglist = list(CreateAugmenter(data_shape, **kwargs) if aug_list is None else aug_list)
        if aug_list is not None and kwargs:
            raise ArgumentError(f"{who}: {', '.join(kwargs)}: not together with aug_list")
        self.cur = 0
        self.num_image = len(self.seq)
        self._kept: list[tuple[Any, np.ndarray]] = []
        self._over = False
        self.reset()

    def _sources(self, rec: str | None, listed: str | None, imglist: Sequence[Any] | None) -> list[Any]:
        if not (rec or listed or isinstance(imglist, (list, tuple))):
            raise ArgumentError(f"{type(self).__name__}: expected path_imgrec, path_imglist or imglist")
        if listed:
            self.imglist = {i: (labels.astype(self._label_type), file) for i, labels, file in read_list(listed)}
        elif not rec:
            for i, entry in enumerate(imglist or ()):
                labels = entry[0] if len(entry) == 2 else entry[:-1]
                self.imglist[i] = (np.array(labels, self._label_type).reshape(-1), entry[-1])
        if rec:
            places = offsets(rec)
            self.imgrec = open(rec, "rb")  # noqa: SIM115 - read as long as the iterator lives
            if not self.imglist:
                return places
            wanted = {}
            for at in places:
                wanted[unpack(self._record(at))[0].id] = at
            missing = [i for i in self.imglist if i not in wanted]
            if missing:
                raise FormatError(f"{rec!r}: no record has the id {missing[0]} of {listed!r}")
            self.imglist = {wanted[i]: entry for i, entry in self.imglist.items()}
        return list(self.imglist)

    def _record(self, at: int) -> bytes:
        self.imgrec.seek(at)
        record = read_record(self.imgrec, self.imgrec.name)
        if record is None:
            raise FormatError(f"{self.imgrec.name!r}: no record at byte {at}")
        return record

    def __del__(self) -> None:
        if getattr(self, "imgrec", None) is not None:
            self.imgrec.close()

    @overridable_property
    def provide_data(self) -> list[DataDesc]:
        return [DataDesc(self._names[0], (self.batch_size, *self.data_shape))]

    @overridable_property
    def provide_label(self) -> list[DataDesc]:
        shape = (self.batch_size, self.label_width) if self.label_width > 1 else (self.batch_size,)
        return [DataDesc(self._names[1], shape)]

    def check_data_shape(self, data_shape: Sequence[int]) -> None:
        """Raise `ArgumentError` unless `data_shape` is (3, height, width)."""
        if len(data_shape) != 3 or data_shape[0] != 3:
            raise ArgumentError(f"{type(self).__name__}: data_shape={tuple(data_shape)}: expected (3, height, width)")

    def hard_reset(self) -> None:
        """Return to the beginning, forgetting images that were to be rolled over."""
        self._kept = []
        self.reset()

    def reset(self) -> None:
        """Return to the beginning; with `roll_over`, images left over come first."""
        if self.shuffle:
            random.shuffle(self.seq)
        self.cur = 0
        self._over = False

    def next_sample(self) -> tuple[Any, bytes]:
        """Return the label and the compressed bytes of the next image; `StopIteration` at the end."""
        if self.cur >= len(self.seq):
            raise StopIteration
        key = self.seq[self.cur]
        self.cur += 1
        if self.imgrec is not None:
            try:
                header, data = unpack(self._record(key))
            except FormatError as e:
                raise self._inside(e) from None
            return (self.imglist[key][0] if self.imglist else header.label), data
        labels, file = self.imglist[key]
        return labels, self.read_image(file)

    def read_image(self, fname: str) -> bytes:
        """Return the bytes of an image file."""
        path = os.path.join(self.path_root or "", fname)
        try:
            with open(path, "rb") as f:
                return f.read()
        except OSError as e:
            raise MXNetError(f"{type(self).__name__}: cannot read {path!r}: {e.strerror or e}") from None

    def imdecode(self, s: bytes) -> Any:
        """Decode an image; a subclass may do it otherwise."""
        return image_codec.decode(s)

    def augmentation_transform(self, data: Any) -> Any:
        """Apply the augmenters to an (H, W, C) image."""
        for aug in self.auglist:
            data = apply(aug, data)
        return data

    def postprocess_data(self, datum: Any) -> Any:
        """Put channels first."""
        return datum.transpose((2, 0, 1))

    def check_valid_image(self, data: Any) -> None:
        """Raise `FormatError` for an empty image."""
        if len(data[0].shape) == 0:
            raise FormatError("the image is empty")

    def _sample(self) -> tuple[np.ndarray, np.ndarray]:
        label, raw = self.next_sample()
        try:
            decoded = self.imdecode(raw)
        except FormatError as e:
            raise self._inside(e) from None
        image = to_numpy(self.postprocess_data(self.augmentation_transform(decoded)))
        if image.shape != self.data_shape:
            raise ArgumentError(
                f"{type(self).__name__}: an augmented image has shape {image.shape}: expected data_shape "
                f"{self.data_shape}; do the augmenters crop or resize?"
            )
        return image, self._label_row(label)

    def _source(self) -> str:
        """Where the image that was read last is, in quotes."""
        key = self.seq[self.cur - 1]
        return repr(self.imgrec.name if self.imgrec is not None else self.imglist[key][1])

    def _label_row(self, label: Any) -> np.ndarray:
        row = np.array(label.asnumpy() if isinstance(label, NDArray) else label, np.float32).reshape(-1)
        if row.size != self.label_width:
            raise self._wrong(f"a label of {row.size} numbers", f"label_width={self.label_width}")
        return row

    def _inside(self, error: FormatError) -> FormatError:
        """An error of the image that was read last, with its place."""
        source = self._source()
        return error.within(f"{type(self).__name__}: image {self.cur - 1} of this epoch of {source}", source)

    def _wrong(self, problem: str, expected: str) -> FormatError:
        """The error of the image that was read last."""
        what = f"{type(self).__name__}: image {self.cur - 1} of this epoch of {self._source()}"
        return Content(b"", what, "an image with its label").error(problem, None, expected)

    def _fill(self, batch: list[Any]) -> None:
        while len(batch) < self.batch_size:
            try:
                batch.append(self._sample())
            except StopIteration:
                return

    def next(self) -> DataBatch:
        if self._over:
            raise StopIteration
        batch, self._kept = self._kept, []
        pad = self.batch_size - len(batch) if batch else 0  # MXNet counts so where images were rolled over
        self._fill(batch)
        if len(batch) < self.batch_size:
            self._over = True
            if not batch or self.last_batch_handle == "discard":
                raise StopIteration
            if self.last_batch_handle == "roll_over":
                self._kept = batch
                raise StopIteration
            pad = self.batch_size - len(batch)
            while len(batch) < self.batch_size:
                self.cur = 0
                self._fill(batch)
        data = array(np.stack([image for image, _ in batch]), dtype="float32")
        return DataBatch([data], [self._labels([row for _, row in batch])], pad)

    def _labels(self, rows: list[np.ndarray]) -> Any:
        stacked = np.stack(rows)
        return array(stacked if self.label_width > 1 else stacked[:, 0], dtype="float32")


__all__ = ["ImageIter", "read_list"]
