"""Trained parameters in a local folder, under the names and with the checksums of MXNet's model store."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

from ...core.errors import ArgumentError, FormatError, MXNetError, suggest
from ..split import check_sha1, download

DEFAULT_ROOT = os.path.join("~", ".mxnet", "models")
apache_repo_url = "https://apache-mxnet.s3-accelerate.dualstack.amazonaws.com/"
# First eight hexadecimal digits of the SHA-1 of each parameter file, by which the files are named.
CHECKSUMS = {
    "alexnet": "44335d1f", "densenet121": "f27dbf2d", "densenet161": "b6c8a957", "densenet169": "2603f878",
    "densenet201": "1cdbc116", "inceptionv3": "ed47ec45", "mobilenet0.25": "9f83e440", "mobilenet0.5": "8e9d539c",
    "mobilenet0.75": "529b2c7f", "mobilenet1.0": "6b8c5106", "mobilenetv2_0.25": "ae8f9392",
    "mobilenetv2_0.5": "aabd26cd", "mobilenetv2_0.75": "e2be7b72", "mobilenetv2_1.0": "36da4ff1",
    "resnet101_v1": "d988c13d", "resnet101_v2": "18e93e4f", "resnet152_v1": "671c637a", "resnet152_v2": "f2695542",
    "resnet18_v1": "a0666292", "resnet18_v2": "a81db45f", "resnet34_v1": "48216ba9", "resnet34_v2": "9d6b80bb",
    "resnet50_v1": "0aee57f9", "resnet50_v2": "ecdde353", "squeezenet1.0": "264ba497", "squeezenet1.1": "33ba0f93",
    "vgg11": "dd221b16", "vgg11_bn": "ee79a809", "vgg13": "6bc5de58", "vgg13_bn": "7d97a06c", "vgg16": "e660d456",
    "vgg16_bn": "7f01cf05", "vgg19": "ad2f660d", "vgg19_bn": "f360b758",
}  # fmt: skip


def short_hash(name: str) -> str:
    """Return the part of the checksum that is in the file name of a model's parameters.

    Raises:
        ArgumentError: no parameters are known for this model.
    """
    if name not in CHECKSUMS:
        raise ArgumentError(f"Pretrained model for {name} is not available: {suggest(name, CHECKSUMS)}")
    return CHECKSUMS[name]


def _is_right(path: Path, name: str) -> bool:
    import hashlib

    digest = hashlib.sha1(usedforsecurity=False)
    with open(path, "rb") as f:
        while block := f.read(1 << 20):
            digest.update(block)
    return digest.hexdigest().startswith(short_hash(name))


def get_model_file(name: str, root: str = DEFAULT_ROOT) -> str:
    """Return the path of a model's parameter file, downloaded into `root` unless it is there already.

    Args:
        name: of the model.
        root: the folder; the file in it is `<name>-<short hash>.params`.

    Raises:
        ArgumentError: unknown model. MXNetError: there is no file, and it cannot be downloaded. FormatError: a
        downloaded file has the wrong checksum.
    """
    short = short_hash(name)
    folder = Path(root).expanduser()
    path = folder / f"{name}-{short}.params"
    if path.exists() and _is_right(path, name):
        return str(path)
    folder.mkdir(parents=True, exist_ok=True)
    packed = folder / f"{name}-{short}.zip"
    url = f"{os.environ.get('MXNET_GLUON_REPO', apache_repo_url).rstrip('/')}/gluon/models/{packed.name}"
    try:
        if not packed.exists():
            download(url, path=str(packed), overwrite=True, retries=1)
        with zipfile.ZipFile(packed) as z:
            z.extract(path.name, folder)
        packed.unlink()
    except (OSError, MXNetError, KeyError, zipfile.BadZipFile) as e:
        state = "has another checksum than the model store's" if path.exists() else "does not exist"
        raise MXNetError(
            f"pretrained {name!r}: {str(path)!r} {state}, and {url} cannot be fetched ({e}); put the file "
            f"{path.name} (or {packed.name}) of MXNet's model store into {str(folder)!r}, or pass root="
        ) from e
    if not _is_right(path, name):
        raise FormatError(f"pretrained {name!r}: {str(path)!r} was fetched, but its SHA-1 does not begin with {short}")
    return str(path)


def purge(root: str = DEFAULT_ROOT) -> None:
    """Remove the parameter files in `root`."""
    for path in Path(root).expanduser().glob("*.params"):
        path.unlink()


def load_pretrained(net: Any, name: str, root: str, ctx: Any) -> None:
    """Load the parameters of `name` into `net`."""
    net.load_parameters(get_model_file(name, root=root), ctx=ctx)


__all__ = ["check_sha1", "download", "get_model_file", "purge", "short_hash"]
