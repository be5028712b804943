"""`MNISTIter` and the idx file format of MNIST, plain or gzipped."""

from __future__ import annotations

import logging
import math
import os
import struct
from typing import Any

import numpy as np

from ..core.dtypes import as_dtype, is_float
from ..core.errors import ArgumentError
from ..core.reader import Content, Cursor
from ..ndarray import NDArray, array
from .augment import parse_arg
from .data_batch import DataDesc, overridable_property
from .data_iter import MXDataIter
from .recordio import check_shard


def read_idx(path: str | os.PathLike[str]) -> np.ndarray:
    """Return the uint8 array in an idx file; a gzipped one is recognised by its content.

    Raises:
        MXNetError: the file cannot be read. FormatError: it is not an idx file of unsigned bytes, or is cut off.
    """
    content = Content.of_file(path, "an idx file of unsigned bytes")
    if bytes(content.data[:2]) == b"\x1f\x8b":
        unpacked = content.gunzip()
        content = Content(unpacked, content.source, content.kind)
    cursor = Cursor(content)
    if (magic := bytes(cursor.take(3, "magic number"))) != b"\0\0\x08":
        cursor.fail(f"is {magic.hex()}", "000008")
    ndim = cursor.number("B", "number of axes")
    if ndim > 16:
        cursor.fail(f"is {ndim}", "at most 16")
    shape = struct.unpack(f">{ndim}I", cursor.take(4 * ndim, "shape"))
    if cursor.left != math.prod(shape):
        cursor.fail(f"is {shape}, followed by {cursor.left} bytes", f"{math.prod(shape)} bytes")
    with content.parsing(ValueError):  # an empty array with other lengths that no array can have
        return np.frombuffer(content.data, np.uint8, offset=cursor.at).reshape(shape)


def read_images_and_labels(image: str | os.PathLike[str], label: str | os.PathLike[str]) -> tuple[Any, Any]:
    """Return `(images (N, H, W), labels (N,))`, uint8, of a pair of idx files."""
    images, labels = read_idx(image), read_idx(label)
    if images.ndim != 3 or labels.shape != images.shape[:1]:
        shapes = f"shape {images.shape}, and {os.fspath(label)!r} of shape {labels.shape}"
        raise Content(b"", repr(os.fspath(image)), "images with labels").error(shapes, None, "N images and N labels")
    return images, labels


class MNISTIter(MXDataIter):
    """Batches of MNIST-like images, float32 in [0, 1): pixel values are divided by 256.

    An incomplete last batch is dropped. The order is drawn once, from `seed`, and stays the same in every epoch.

    Args:
        image: idx file of images, plain or gzipped.
        label: idx file of labels.
        batch_size: rows in a batch.
        shuffle: draw an order at the start.
        flat: shape (N, H·W) instead of (N, 1, H, W).
        seed: seed of the order.
        silent: log nothing.
        num_parts, part_index: part `i` covers the rows from `int(n / parts * i)` to `int(n / parts * (i + 1))`.
        dtype: element type of images and labels, one of the floating types.
        data_name, label_name: names in the descriptions.
        input_shape: accepted without effect, as in MXNet, because older scripts give it; the file tells the shape.

    Raises:
        ArgumentError: `part_index` outside of the parts, or a part smaller than a batch.

    Example:
        >>> train = MNISTIter("train-images-idx3-ubyte", "train-labels-idx1-ubyte", batch_size=100)  # doctest: +SKIP
        >>> train.next().data[0].shape  # doctest: +SKIP
        (100, 1, 28, 28)
    """

    def __init__(
        self,
        image: str | os.PathLike[str] = "./train-images-idx3-ubyte",
        label: str | os.PathLike[str] = "./train-labels-idx1-ubyte",
        batch_size: int = 128,
        shuffle: bool = True,
        flat: bool = False,
        seed: int = 0,
        silent: bool = False,
        num_parts: int = 1,
        part_index: int = 0,
        prefetch_buffer: int = 4,
        dtype: Any = None,
        data_name: str = "data",
        label_name: str = "softmax_label",
        ctx: Any = None,
        input_shape: Any = None,
        **unknown: Any,
    ):
        super().__init__(parse_arg("MNISTIter", "batch_size", batch_size, int), unknown)
        shuffle, flat, silent = (
            parse_arg("MNISTIter", name, value, bool)
            for name, value in (("shuffle", shuffle), ("flat", flat), ("silent", silent))
        )
        self._dtype = np.dtype(np.float32) if dtype is None else as_dtype(dtype)
        if not is_float(self._dtype):
            raise ArgumentError(f"MNISTIter: dtype={dtype!r}: expected a floating type, for values in [0, 1)")
        check_shard("MNISTIter", num_parts, part_index)
        images, labels = read_images_and_labels(image, label)
        n = len(images)
        part = slice(n * part_index // num_parts, n * (part_index + 1) // num_parts)
        images, labels = images[part], labels[part]
        if not 1 <= self.batch_size <= len(images):
            raise ArgumentError(
                f"MNISTIter: batch_size={batch_size}: expected 1 to {len(images)}, the images there are"
            )
        order = np.arange(len(images))
        if shuffle:
            order = np.random.RandomState(seed).permutation(len(images))
            images, labels = images[order], labels[order]
        self._index = order.astype(np.uint64) + np.uint64(part.start)
        self._images = images.reshape(len(images), -1) if flat else images[:, None]
        self._labels = labels
        self._names = (data_name, label_name)
        self._at = -1
        if not silent:
            shape = (self.batch_size, *self._images.shape[1:])
            logging.info("MNISTIter: load %d images, shuffle=%d, shape=%s", len(images), shuffle, shape)

    @overridable_property
    def provide_data(self) -> list[DataDesc]:
        return [DataDesc(self._names[0], (self.batch_size, *self._images.shape[1:]), self._dtype.type)]

    @overridable_property
    def provide_label(self) -> list[DataDesc]:
        return [DataDesc(self._names[1], (self.batch_size,), self._dtype.type)]

    def reset(self) -> None:
        self._at = -1

    def iter_next(self) -> bool:
        self._at += 1
        return (self._at + 1) * self.batch_size <= len(self._images)

    @property
    def _now(self) -> slice:
        return slice(max(self._at, 0) * self.batch_size, (max(self._at, 0) + 1) * self.batch_size)

    def getdata(self) -> NDArray:
        return array(self._images[self._now].astype(self._dtype) * self._dtype.type(1 / 256), dtype=self._dtype)

    def getlabel(self) -> NDArray:
        return array(self._labels[self._now].astype(self._dtype), dtype=self._dtype)

    def getindex(self) -> np.ndarray:
        return self._index[self._now]
