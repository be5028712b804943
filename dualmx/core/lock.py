"""Make a file in one process at a time, and move it into place atomically."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


@contextmanager
def exclusive(target: str) -> Iterator[BinaryIO]:
    """Open `target` + ".part" for reading and writing, while no other process and thread has it open by this function.

    The caller looks again whether `target` is there, fills the file, and renames it to `target`. A file with content
    that is not renamed stays, so that work can be continued; an empty one is removed. Where the file system knows no
    locks, the file has a name of its own, and does not stay.

    Raises:
        OSError: the file cannot be opened.

    Example:
        >>> import os, tempfile
        >>> target = os.path.join(tempfile.mkdtemp(), "made-once")
        >>> with exclusive(target) as part:
        ...     if not os.path.exists(target):
        ...         _ = part.write(b"content")
        ...         part.flush()
        ...         os.replace(part.name, target)
    """
    part = _locked(f"{target}.part")
    shared = part is not None
    if part is None:
        part = open(f"{target}.{uuid.uuid4().hex}.part", "w+b")
    try:
        yield part
    finally:
        try:
            if _is_at(part, part.name) and (not shared or not os.fstat(part.fileno()).st_size):
                os.unlink(part.name)
        finally:
            part.close()


def _locked(path: str) -> BinaryIO | None:
    """Open and lock `path`; None if locks cannot be had there."""
    if fcntl is None:
        return None
    while True:
        part = open(path, "r+b", opener=lambda name, flags: os.open(name, flags | os.O_CREAT, 0o666))
        try:
            try:
                fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print(f"waiting for another process that makes {path.removesuffix('.part')}", file=sys.stderr)
                fcntl.flock(part, fcntl.LOCK_EX)
        except OSError:
            part.close()
            return None
        if _is_at(part, path):
            return part
        part.close()  # the process that had it has renamed or removed it


def _is_at(part: BinaryIO, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(part.fileno()), os.stat(path))
    except OSError:
        return False
