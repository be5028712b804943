"""Data sets and other files that tests and tutorials download."""

from __future__ import annotations

import bz2
import gzip
import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .. import gluon
from ..core.archive import unpack
from ..core.errors import MXNetError
from ..io import MNISTIter


def download(
    url: str, fname: str | None = None, dirname: str | None = None, overwrite: bool = False, retries: int = 5
) -> str:
    """Fetch the file at `url` unless it is there, and return its local path; see `gluon.utils.download`.

    Args:
        url: of scheme http, https or file.
        fname: name of the local file; the last part of `url` by default.
        dirname: its directory.
        overwrite: fetch it even if it is there.
        retries: attempts.

    Raises:
        DownloadError: the file cannot be had.
    """
    target = fname or url.split("/")[-1]
    if dirname is not None:
        target = os.path.join(dirname, target)
    return gluon.utils.download(url, target, overwrite, retries=retries)


def download_model(
    model_name: str, dst_dir: str = "./", meta_info: Mapping[str, Mapping[str, str]] | None = None
) -> tuple[str, int]:
    """Fetch symbol and parameters of a model and return its prefix and epoch, 0.

    Args:
        model_name: name, a key of `meta_info`.
        dst_dir: where the files go.
        meta_info: addresses under "symbol" and "params" by name.

    Raises:
        MXNetError: the model is unknown, or a file is not there.
    """
    if not meta_info or model_name not in meta_info:
        raise MXNetError(f"download_model: {model_name!r} is not in meta_info: {sorted(meta_info or {})}")
    prefix = os.path.join(dst_dir, model_name)
    download(meta_info[model_name]["symbol"], f"{prefix}-symbol.json")
    download(meta_info[model_name]["params"], f"{prefix}-0000.params")
    return prefix, 0


def get_zip_data(data_dir: str, url: str, data_origin_name: str) -> None:
    """Fetch a zip file into `data_dir` and unpack it there."""
    unpack(download(url, data_origin_name, data_dir), data_dir)


def get_bz2_data(data_dir: str, data_name: str, url: str, data_origin_name: str) -> None:
    """Fetch a bz2 file into `data_dir`, unpack it to `data_name`, and remove the packed file."""
    target = os.path.join(data_dir, data_name)
    if os.path.exists(target):
        return
    path = download(url, data_origin_name, data_dir)
    with bz2.open(path, "rb") as packed, open(target, "wb") as out:
        shutil.copyfileobj(packed, out)
    os.remove(path)


_MNIST = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def get_mnist_ubyte() -> None:
    """Make sure that `data` has the four files of MNIST, unpacked.

    They come from the folder of `gluon.data.vision.MNIST`, into which they are downloaded if need be.

    Raises:
        DownloadError: they are in neither place, and cannot be downloaded.
    """
    os.makedirs("data", exist_ok=True)
    for train, stems in ((True, _MNIST[:2]), (False, _MNIST[2:])):
        targets = [os.path.join("data", stem) for stem in stems]
        if all(os.path.exists(target) for target in targets):
            continue
        for target, source in zip(targets, gluon.data.vision.MNIST(train=train).sources, strict=True):
            opened = gzip.open(source, "rb") if source.suffix == ".gz" else open(source, "rb")
            with opened as f, open(target, "wb") as out:
                shutil.copyfileobj(f, out)


def get_mnist_pkl() -> None:
    """Make sure that `data/mnist.pkl.gz` is there: MNIST as pickled by the tutorials of Theano. dualmx never reads it.

    Raises:
        DownloadError: it cannot be downloaded.
    """
    download("http://deeplearning.net/data/mnist/mnist.pkl.gz", dirname="data")


def get_cifar10() -> None:
    """Make sure that `data/cifar` has the record files of CIFAR-10.

    Raises:
        DownloadError: they cannot be downloaded.
    """
    if not all(os.path.exists(os.path.join("data", "cifar", name)) for name in ("train.rec", "test.rec")):
        get_zip_data("data", "http://data.mxnet.io/mxnet/data/cifar10.zip", "cifar10.zip")


def get_mnist() -> dict[str, np.ndarray]:
    """Return MNIST: "train_data" and "test_data" (n, 1, 28, 28) float32 in [0, 1], "train_label" and "test_label".

    Raises:
        DownloadError: the files are not there and cannot be downloaded; see `gluon.data.vision.MNIST`.
    """
    found = {}
    for key, train in (("train", True), ("test", False)):
        data = gluon.data.vision.MNIST(train=train)
        images, labels = data.as_arrays()
        found[f"{key}_data"] = (images.reshape(-1, 1, 28, 28) / 255).astype(np.float32)
        found[f"{key}_label"] = np.asarray(labels)
    return found


def get_mnist_iterator(
    batch_size: int, input_shape: Sequence[int], num_parts: int = 1, part_index: int = 0
) -> tuple[MNISTIter, MNISTIter]:
    """Return iterators over the training and the test images of MNIST, flat if `input_shape` has one axis."""
    get_mnist_ubyte()
    flat = len(input_shape) != 3
    common: dict[str, Any] = {
        "batch_size": batch_size, "flat": flat, "num_parts": num_parts,
        "part_index": part_index,
    }  # fmt: skip
    train, test = (
        MNISTIter(image=f"data/{_MNIST[i]}", label=f"data/{_MNIST[i + 1]}", shuffle=i == 0, **common) for i in (0, 2)
    )
    return train, test


def get_im2rec_path(home_env: str = "MXNET_HOME") -> str:
    """Return the path of the tool that packs images into record files."""
    from ..tools import im2rec

    return os.path.abspath(im2rec.__file__)


@contextmanager
def discard_stderr() -> Iterator[None]:
    """Throw away what is written to the standard error stream, by libraries too.

    Example:
        >>> with mx.test_utils.discard_stderr():
        ...     pass
    """
    sys.stderr.flush()
    kept, sink = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(sink, 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
        os.close(sink)


def has_tvm_ops() -> bool:
    """Return False: XLA compiles all operators."""
    return False


def is_op_runnable() -> bool:
    """Return True: every operator runs on every device."""
    return True


def is_cd_run() -> bool:
    """True where the variable CD_JOB says that this is a job of continuous delivery."""
    return os.environ.get("CD_JOB", "0") == "1"


def is_aarch64_run() -> bool:
    """True on 64-bit ARM processors."""
    return platform.machine() == "aarch64"


__all__ = [
    "discard_stderr", "download", "download_model", "get_bz2_data", "get_cifar10", "get_im2rec_path", "get_mnist",
    "get_mnist_iterator", "get_mnist_pkl", "get_mnist_ubyte", "get_zip_data", "has_tvm_ops", "is_aarch64_run",
    "is_cd_run", "is_op_runnable",
]  # fmt: skip
