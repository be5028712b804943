"""Pretrained parameters of MXNet's model store, cached locally under its names and checked by its checksums."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ...base import data_dir
from ...core.download import check_sha1, download
from ...core.errors import ArgumentError, DownloadError, FormatError, suggest
from ...core.knobs import REPO
from ...core.repository import fetch_unpacked

DEFAULT_ROOT = os.path.join(data_dir(), "models")
apache_repo_url = REPO.default
# SHA-1 of each parameter file; the files are named by the first eight digits.
CHECKSUMS = dict(line.split() for line in Path(__file__).with_name("checksums.txt").read_text("ascii").splitlines())


def short_hash(name: str) -> str:
    """Return the part of the checksum that is in the file name of a model's parameters.

    Raises:
        ArgumentError: no parameters are known for this model.
    """
    if name not in CHECKSUMS:
        raise ArgumentError(f"Pretrained model for {name} is not available: {suggest(name, CHECKSUMS)}")
    return CHECKSUMS[name][:8]


def get_model_file(name: str, root: str = DEFAULT_ROOT) -> str:
    """Return the path of a model's parameter file, downloaded into `root` unless it is there already.

    Args:
        name: of the model.
        root: the folder; the file in it is `<name>-<short hash>.params`.

    Raises:
        ArgumentError: unknown model. DownloadError: there is no file, and it cannot be downloaded. FormatError: a
        downloaded file has the wrong checksum.
    """
    file = f"{name}-{short_hash(name)}.params"
    folder = os.path.expanduser(root)
    path = os.path.join(folder, file)

    def there() -> bool:
        return os.path.exists(path) and check_sha1(path, CHECKSUMS[name])

    if there():
        return path
    packed = file.replace(".params", ".zip")
    try:
        fetch_unpacked(f"pretrained {name!r}", f"models/{packed}", folder, lambda n: n if n == file else None, there)
    except (OSError, FormatError) as e:
        state = "has another checksum than the model store's" if os.path.exists(path) else "does not exist"
        raise DownloadError(
            f"{path!r} {state}: {e}; the file is {file} (or {packed}) of MXNet's model store; root= names its folder"
        ) from e
    if not there():
        raise FormatError(f"pretrained {name!r}: {path!r} was fetched, but its SHA-1 is not {CHECKSUMS[name]}")
    return path


def purge(root: str = DEFAULT_ROOT) -> None:
    """Remove the parameter files in `root`."""
    for path in Path(root).expanduser().glob("*.params"):
        path.unlink()


def load_pretrained(net: Any, name: str, root: str, ctx: Any) -> None:
    """Load the parameters of `name` into `net`."""
    net.load_parameters(get_model_file(name, root=root), ctx=ctx)


__all__ = ["check_sha1", "download", "get_model_file", "purge", "short_hash"]
