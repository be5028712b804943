"""Image classification datasets, local or downloaded."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ....core import np_mode
from ....core.errors import FormatError, unreadable
from ....core.knobs import HOME
from ....core.reader import Content
from ....core.repository import fetch_file, fetch_unpacked
from ....image import imdecode, imread
from ....image.iterator import read_list
from ....io.mnist import read_images_and_labels
from ....io.recordio import unpack
from ....ndarray import array
from ...pytree import to_np_class
from ..batchify import to_host, worker_mode
from ..dataset import Dataset, RecordFileDataset


def _local(root: Path, names: Sequence[str]) -> Path | None:
    return next((root / name for name in names if (root / name).is_file()), None)


class _ImageArrayDataset(Dataset):
    """(image (H, W, C) uint8, label int32) pairs in memory, classic or NumPy arrays by `npx.set_np()` at creation."""

    _folder: str
    _images: np.ndarray
    _classes: np.ndarray

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        train: bool = True,
        transform: Callable[..., Any] | None = None,
    ):
        folder = Path(HOME.read(), "datasets", self._folder) if root is None else Path(root)
        self._root, self._train, self._transform = folder.expanduser(), train, transform
        self._numpy = np_mode.array.get()
        self._get_data()

    def _get_data(self) -> None:
        raise NotImplementedError

    @property
    def _data(self) -> Any:
        """All images, as an array."""
        return self._as_array(self._images)

    @_data.setter
    def _data(self, images: Any) -> None:
        self._images = np.asarray(to_host(images))

    @property
    def _label(self) -> Any:
        """All labels, as NumPy array; as `mx.np.ndarray` after `npx.set_np()`."""
        return self._as_array(self._classes) if self._numpy else self._classes

    @_label.setter
    def _label(self, labels: Any) -> None:
        self._classes = np.asarray(to_host(labels))

    def as_arrays(self) -> tuple[Any, Any]:
        """Return all images and all labels."""
        return self._data, self._label

    def _as_array(self, values: Any) -> Any:
        if worker_mode.worker:
            return values
        made = array(values, dtype=values.dtype)
        return to_np_class(made) if self._numpy else made

    def __len__(self) -> int:
        return len(self._classes)

    def __getitem__(self, idx: int) -> Any:
        image, label = self._as_array(self._images[idx]), self._classes[idx]
        label = self._as_array(label) if self._numpy else label
        return (image, label) if self._transform is None else self._transform(image, label)

    def host_item(self, idx: int) -> Any:
        return (self._images[idx], self._classes[idx]) if self._transform is None else to_host(self[idx])

    def host_batch(self, indices: Sequence[int]) -> Any:
        if self._transform is not None:
            return super().host_batch(indices)
        rows = np.asarray(indices)
        return [self._images[rows], self._classes[rows]]


class MNIST(_ImageArrayDataset):
    """Handwritten digits: images (28, 28, 1) uint8 and labels 0 to 9, int32.

    Files that are not in `root` are downloaded into it.

    Args:
        root: folder of the four idx files, plain or gzipped; `$MXNET_HOME/datasets/mnist` by default.
        train: the 60 000 training images, or the 10 000 test images.
        transform: called as `transform(image, label)` for each item.

    Raises:
        DownloadError: a file is missing and cannot be downloaded. FormatError: a file is not what it should be.

    Example:
        >>> digits = MNIST(root="mnist", train=False)  # doctest: +SKIP
        >>> image, label = digits[0]  # doctest: +SKIP
    """

    _kind, _folder = "MNIST", "mnist"
    _checksums = {
        "train-images-idx3-ubyte.gz": "6c95f4b05d2bf285e1bfb0e7960c31bd3b3f8a7d",
        "train-labels-idx1-ubyte.gz": "2a80914081dc54586dbdf242f9805a6b8d2a15fc",
        "t10k-images-idx3-ubyte.gz": "c3a25af1f52dad7f726cce8cacb138654b760d48",
        "t10k-labels-idx1-ubyte.gz": "763e7fa3757d93b0cdec073cef058b2004252c17",
    }

    def _get_data(self) -> None:
        part = "train" if self._train else "t10k"
        self.sources = [self._file(f"{part}-{what}") for what in ("images-idx3", "labels-idx1")]
        images, labels = read_images_and_labels(*self.sources)
        self._images, self._classes = images[..., None], labels.astype(np.int32)

    def _file(self, stem: str) -> Path:
        packed = f"{stem}-ubyte.gz"
        local = _local(self._root, (packed, f"{stem}-ubyte"))
        target, place = str(self._root / packed), f"dataset/{self._folder}/{packed}"
        return local or Path(fetch_file(self._kind, place, target, self._checksums[packed]))


class FashionMNIST(MNIST):
    """Pictures of clothes in the format of `MNIST`; in `$MXNET_HOME/datasets/fashion-mnist` by default."""

    _kind, _folder = "FashionMNIST", "fashion-mnist"
    _checksums = {
        "train-images-idx3-ubyte.gz": "0cf37b0d40ed5169c6b3aba31069a9770ac9043d",
        "train-labels-idx1-ubyte.gz": "236021d52f1e40852b06a4c3008d8de8aef1e40b",
        "t10k-images-idx3-ubyte.gz": "626ed6a7c06dd17c0eec72fa3be1740f146a2863",
        "t10k-labels-idx1-ubyte.gz": "17f9ab60e7257a1620f4ad76bbbaf857c3920701",
    }


class CIFAR10(_ImageArrayDataset):
    """Photographs (32, 32, 3) uint8 of 10 classes, from the files of the binary version.

    Files that are not in `root` are downloaded into it.

    Args:
        root: folder of `data_batch_1.bin` … `data_batch_5.bin`, `test_batch.bin`; `$MXNET_HOME/datasets/cifar10`.
        train: the 50 000 training images, or the 10 000 test images.
        transform: called as `transform(image, label)` for each item.
    """

    _kind, _folder, _labels = "CIFAR10", "cifar10", 1
    _archive = ("cifar-10-binary.tar.gz", "fab780a1e191a7eda0f345501ccd62d20f7ed891")
    _files = (tuple(f"data_batch_{i}.bin" for i in range(1, 6)), ("test_batch.bin",))

    def _get_data(self) -> None:
        width = self._labels + 3 * 32 * 32
        parts = []
        names = self._files[0 if self._train else 1]
        self._fetch(names)
        for name in names:
            content = Content.of_file(self._root / name, f"a file of {self._kind}", f"{self._kind}: cannot read")
            raw = np.frombuffer(content.data, np.uint8)
            if not raw.size or raw.size % width:
                raise content.error(f"{raw.size} bytes", None, f"a multiple of {width}")
            parts.append(raw.reshape(-1, width))
        rows = np.concatenate(parts)
        self._images = np.ascontiguousarray(rows[:, self._labels :].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        self._classes = rows[:, self._label_column].astype(np.int32)

    def _fetch(self, names: Sequence[str]) -> None:
        """Download the archive unless all files are there."""

        def there() -> bool:
            return all((self._root / name).is_file() for name in names)

        def choose(member: str) -> str | None:
            name = member.rpartition("/")[2]  # some copies of the archive have a folder
            return name if any(name in part for part in self._files) else None

        if there():
            return
        archive, sha1 = self._archive
        fetch_unpacked(self._kind, f"dataset/{self._folder}/{archive}", str(self._root), choose, there, sha1)
        if not there():
            raise FormatError(f"{self._kind}: {archive} was fetched, but lacks one of {', '.join(names)}")

    @property
    def _label_column(self) -> int:
        return 0


class CIFAR100(CIFAR10):
    """Photographs (32, 32, 3) uint8 of 100 classes in 20 groups, from `train.bin` and `test.bin`.

    Args:
        root: folder of the files; `$MXNET_HOME/datasets/cifar100` by default.
        fine_label: label with the class instead of the group.
        train: the 50 000 training images, or the 10 000 test images.
        transform: called as `transform(image, label)` for each item.
    """

    _kind, _folder, _labels = "CIFAR100", "cifar100", 2
    _archive = ("cifar-100-binary.tar.gz", "a0bb982c76b83111308126cc779a992fa506b90b")
    _files = (("train.bin",), ("test.bin",))

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        fine_label: bool = False,
        train: bool = True,
        transform: Callable[..., Any] | None = None,
    ):
        self._fine = fine_label
        super().__init__(root, train, transform)

    @property
    def _label_column(self) -> int:
        return int(self._fine)


class ImageRecordDataset(RecordFileDataset):
    """(image (H, W, C) uint8, label) pairs of an indexed record file of images.

    Args:
        filename: the `.rec` file; the `.idx` file stands beside it.
        flag: 1 for three channels, 0 for one.
        transform: called as `transform(image, label)` for each item.
    """

    def __init__(self, filename: str, flag: int = 1, transform: Callable[..., Any] | None = None):
        super().__init__(filename)
        self._flag, self._transform = flag, transform

    def __getitem__(self, idx: int) -> Any:
        header, data = unpack(super().__getitem__(idx))
        image = imdecode(data, self._flag)
        return (image, header.label) if self._transform is None else self._transform(image, header.label)


class ImageFolderDataset(Dataset):
    """(image (H, W, C) uint8, label) pairs of the image files in the folders of a folder, one folder a class.

    Args:
        root: the folder.
        flag: 1 for three channels, 0 for one.
        transform: called as `transform(image, label)` for each item.

    Attributes:
        synsets: names of the classes; their order gives the labels.
        items: (file, label) of each item.

    Raises:
        MXNetError: `root` cannot be read.
    """

    _endings = (".jpg", ".jpeg", ".png")

    def __init__(self, root: str | os.PathLike[str], flag: int = 1, transform: Callable[..., Any] | None = None):
        self._root, self._flag, self._transform = os.path.expanduser(root), flag, transform
        self.synsets: list[str] = []
        self.items: list[tuple[str, int]] = []
        try:
            folders = sorted(os.listdir(self._root))
        except OSError as e:
            raise unreadable(f"ImageFolderDataset: cannot read {self._root!r}", e) from None
        for name in folders:
            path = os.path.join(self._root, name)
            if not os.path.isdir(path):
                warnings.warn(f"ImageFolderDataset: {path} is no folder: left out", stacklevel=2)
                continue
            label = len(self.synsets)
            self.synsets.append(name)
            for file in sorted(os.listdir(path)):
                if file.lower().endswith(self._endings):
                    self.items.append((os.path.join(path, file), label))
                else:
                    warnings.warn(f"ImageFolderDataset: {os.path.join(path, file)} is no image: left out", stacklevel=2)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, idx: int) -> Any:
        file, label = self.items[idx]
        image = imread(file, self._flag)
        return (image, label) if self._transform is None else self._transform(image, label)


class ImageListDataset(Dataset):
    """(image (H, W, C) uint8, label) pairs of image files in a list.

    Args:
        root: folder of the files.
        imglist: a list file with `index`, labels and path between tabs; or a list of `[label…, path]`.
        flag: 1 for three channels, 0 for one.

    Raises:
        FormatError: a line of the file, or an entry of the list, has another form.
    """

    def __init__(self, root: str | os.PathLike[str] = ".", imglist: Any = None, flag: int = 1):
        self._root, self._flag = os.path.expanduser(root), flag
        self.items: list[tuple[str, Any]] = []
        if isinstance(imglist, (str, os.PathLike)):
            entries: Any = [(*labels.tolist(), file) for _, labels, file in read_list(imglist)]
        else:
            entries = imglist or ()
        for entry in entries:
            if not isinstance(entry, (list, tuple)) or len(entry) < 2 or not isinstance(entry[-1], str):
                raise FormatError(f"ImageListDataset: {entry!r}: expected [label…, path]")
            labels = np.array(entry[0] if len(entry) == 2 else entry[:-1], np.float32).reshape(-1)
            self.items.append((os.path.join(self._root, entry[-1]), labels if labels.size > 1 else labels[0]))

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, idx: int) -> Any:
        file, label = self.items[idx]
        return imread(file, self._flag), label


__all__ = [
    "CIFAR10", "CIFAR100", "FashionMNIST", "ImageFolderDataset", "ImageListDataset", "ImageRecordDataset", "MNIST",
]  # fmt: skip
