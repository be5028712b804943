"""Extract untrusted zip and tar archives: only regular files, inside one folder, of bounded size."""

from __future__ import annotations

import gzip
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO

from . import knobs
from .errors import FormatError
from .lock import exclusive

_BLOCK_BYTES = 1 << 20
_MAX_MEMBERS = 1_000_000
_DAMAGED = (
    zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError, ValueError,
    RuntimeError,
)  # fmt: skip


def unpack(archive: str, folder: str, choose: Callable[[str], str | None] | None = None) -> list[str]:
    """Unpack a zip or tar file into a folder.

    Args:
        archive: the file.
        folder: where its files go; links and devices in it are left out.
        choose: gives the path inside `folder` of a member by its name, None to leave it out; by default all members
            keep their names.

    Returns:
        The paths of the files, in the archive's order.

    Raises:
        FormatError: the archive is damaged, a member would lie outside `folder`, or the files are larger than
            `DUALMX_DOWNLOAD_MAX_MB`.
        OSError: a file cannot be read or written.

    Example:
        >>> import os, tempfile, zipfile
        >>> folder = tempfile.mkdtemp()
        >>> with zipfile.ZipFile(os.path.join(folder, "a.zip"), "w") as z:
        ...     z.writestr("inside/b.txt", "content")
        >>> [os.path.relpath(path, folder) for path in unpack(os.path.join(folder, "a.zip"), folder)]
        ['inside/b.txt']
    """
    most = knobs.DOWNLOAD_MAX.integer(1) << 20
    done: list[str] = []
    try:
        for number, (name, content) in enumerate(_members(archive)):
            if number >= _MAX_MEMBERS:
                raise FormatError(f"{archive!r}: more than {_MAX_MEMBERS} members")
            place = choose(name) if choose else name
            if place is None:
                continue
            target = _inside(archive, folder, place)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with content() as source, exclusive(target) as part:
                most -= _copy(source, part, most, archive)
                os.replace(part.name, target)
            done.append(target)
    except FormatError:
        raise
    except _DAMAGED as e:
        raise FormatError(f"{archive!r}: damaged, or no zip or tar file: {e}") from None
    return done


def _members(archive: str) -> Iterator[tuple[str, Callable[[], IO[bytes]]]]:
    """Yield the name of each file of the archive, and what opens it."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as z:
            for item in z.infolist():
                if not item.is_dir():
                    yield item.filename, lambda item=item: z.open(item)
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isreg():
                # A regular file has content.
                yield member.name, lambda member=member: tar.extractfile(member)  # type: ignore[return-value]


def _inside(archive: str, folder: str, name: str) -> str:
    base = os.path.realpath(folder)
    target = os.path.realpath(os.path.join(base, name))
    if os.path.commonpath([base, target]) != base or target == base:
        raise FormatError(f"{archive!r}: member {name!r} would lie outside {folder!r}")
    return os.path.join(folder, name)


def _copy(source: IO[bytes], out: IO[bytes], most: int, archive: str) -> int:
    size = 0
    out.truncate(0)
    try:
        while block := source.read(_BLOCK_BYTES):
            size += len(block)
            if size > most:
                raise FormatError(f"{archive!r}: its files are larger than the limit of DUALMX_DOWNLOAD_MAX_MB")
            out.write(block)
        out.flush()
    except BaseException:
        out.seek(0)
        out.truncate()  # which lets `exclusive` remove it
        raise
    return size


__all__ = ["unpack"]
