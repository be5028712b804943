"""Data sets, models and word vectors from MXNet's repository, or the one that `MXNET_GLUON_REPO` names."""

from __future__ import annotations

import os
from collections.abc import Callable

from . import knobs
from .download import download
from .errors import DownloadError
from .lock import exclusive


def fetch_file(kind: str, place: str, target: str, sha1: str | None = None) -> str:
    """Download `gluon/<place>` of the repository to `target`, unless it is there, and return its path.

    Args:
        kind: what wants the file, for the error.
        sha1: the checksum that it must have.

    Raises:
        DownloadError: it cannot be had.
    """
    base = knobs.REPO.read().rstrip("/")
    try:
        return download(f"{base}/gluon/{place}", path=target, sha1_hash=sha1)
    except DownloadError as e:
        raise DownloadError(f"{kind}: {e}, or a repository that has it in MXNET_GLUON_REPO") from None


def fetch_unpacked(
    kind: str, place: str, folder: str, choose: Callable[[str], str | None], there: Callable[[], bool], sha1: str = ""
) -> None:
    """Download the archive `gluon/<place>` of the repository and unpack it into `folder`, unless `there()`.

    An archive of that name that lies in `folder` already is used.

    Args:
        kind: what wants the files, for errors.
        choose: see `archive.unpack`.
        sha1: checksum of the archive.

    Raises:
        DownloadError: the archive cannot be had. FormatError: it is damaged.
    """
    os.makedirs(folder, exist_ok=True)
    archive = os.path.join(folder, place.rpartition("/")[2])
    with exclusive(f"{archive}.files"):  # other processes wait until the files are there
        if there():
            return
        from .archive import unpack  # which takes time to import

        keep = os.path.exists(archive)
        fetch_file(kind, place, archive, sha1 or None)
        try:
            unpack(archive, folder, choose)
        finally:
            if not keep:  # a damaged one would be taken for the user's next time
                os.unlink(archive)


__all__ = ["fetch_file", "fetch_unpacked"]
