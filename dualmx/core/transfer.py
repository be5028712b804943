"""Transfer of a file: mirrors, retries, resumption, and checks of size and checksum."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from typing import BinaryIO
from urllib.parse import unquote

from . import http, knobs
from .errors import DownloadError, without_password
from .http import Reply, TransferError, split
from .progress import Progress
from .reader import sha1_of

_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 0.25, 30.0  # seconds before the second attempt, and at most
_BLOCK_BYTES = 1 << 16
_GAIN = 1 << 20
_STATE_BYTES = 1 << 14


class _PartialFile:
    """The partial file, and the address it came from."""

    def __init__(self, file: BinaryIO, target: str):
        self.file = file
        # A file with a name of its own is not continued.
        self._state = f"{target}.part.json" if file.name == f"{target}.part" else os.devnull

    def size(self) -> int:
        """Return the number of bytes that are there."""
        return self.file.seek(0, os.SEEK_END)

    def clear(self) -> None:
        """Forget all bytes."""
        self.file.seek(0)
        self.file.truncate()

    def source(self) -> tuple[str, str]:
        """Return the address and the validator of the bytes that are there; empty if not known."""
        try:
            with open(self._state, encoding="utf-8") as f:
                state = json.loads(f.read(_STATE_BYTES))
            return str(state["url"]), str(state["validator"])
        except (OSError, ValueError, KeyError, TypeError):
            return "", ""

    def begins(self, url: str, validator: str) -> None:
        """Discard all bytes, and note the address of the next ones."""
        self.clear()  # first: nothing that is there may pass for the beginning of what is noted
        with open(self._state, "w", encoding="utf-8") as f:
            json.dump({"url": without_password(url), "validator": validator}, f)

    def finish(self, target: str) -> None:
        """Move the file into place."""
        self.file.flush()
        os.fsync(self.file.fileno())
        os.replace(self.file.name, target)
        self.forget()

    def forget(self) -> None:
        """Remove the note."""
        if os.path.isfile(self._state):
            os.unlink(self._state)


def _addresses(url: str) -> list[str]:
    """Return the addresses of `url`, in order: those on the mirrors, and `url` itself."""
    addresses = []
    parts = split(url)
    for mirror in knobs.MIRRORS.read().split():
        # "https://origin/=https://mirror/" is for addresses that begin so, "https://mirror/" for those of all hosts.
        *origin, place = re.split("=(?=[a-z]+://)", mirror, maxsplit=1)
        if origin and url.startswith(origin[0]):
            addresses.append(place + url[len(origin[0]) :])
        elif not origin and parts.scheme in ("http", "https"):
            query = f"?{parts.query}" if parts.query and not place.startswith("file:") else ""
            addresses.append(f"{place.rstrip('/')}{parts.path}{query}")
    return [*addresses, url]


def fetch(url: str, target: str, file: BinaryIO, sha1: str | None, attempts: int, verify: bool) -> None:
    """Get the content of `url` into `file`, and rename that to `target`.

    Args:
        file: as `lock.exclusive` opens it.
        sha1, attempts, verify: as `sha1_hash`, `retries` and `verify_ssl` of `download`.

    Raises:
        DownloadError: the content cannot be had. OSError: it cannot be written.
    """
    part, reasons = _PartialFile(file, target), []
    try:
        addresses = _addresses(url)
    except TransferError as e:
        raise DownloadError(f"download: {without_password(url)}: {e}") from None
    for address in addresses:
        try:
            _from(address, target, part, sha1, attempts, verify)
        except TransferError as e:
            reasons.append(f"{without_password(address)}: {e}")
        else:
            part.finish(target)
            return
    if not part.size():
        part.forget()
    raise DownloadError(
        f"download: {'; '.join(reasons)}. Put the file at {os.path.abspath(target)}, or name places that have it in "
        "DUALMX_MIRRORS"
    )


def _from(address: str, target: str, part: _PartialFile, sha1: str | None, attempts: int, verify: bool) -> None:
    attempt, most = 0, part.size()
    while True:
        try:
            continued = _receive(address, target, part, bool(sha1), verify)
            part.file.flush()
            part.file.seek(0)
            if sha1 and (digest := sha1_of(part.file)) != sha1.lower():
                raise TransferError(f"its SHA-1 is {digest}, not {sha1}", lasting=not continued, restart=True)
            return
        except TransferError as e:
            if e.restart:
                part.clear()
            if e.lasting:
                raise
            # An attempt that went on for a good deal does not count.
            gained, most = part.size() - most, max(part.size(), most)
            attempt = 1 if gained >= _GAIN else attempt + 1
            if attempt >= attempts:
                raise TransferError(f"{e} ({attempts} attempts)" if attempts > 1 else str(e)) from None
            growing = min(_MAX_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2 ** (attempt - 1))
            # Processes that failed together do not come again together.
            time.sleep(max(e.pause, growing * random.uniform(0.5, 1.0)))


def _receive(address: str, target: str, part: _PartialFile, checked: bool, verify: bool) -> bool:
    """Fill the part; True if it continued what was there."""
    scheme = split(address).scheme.lower()
    if scheme == "file":
        part.forget()
        with _copied(address) as reply:
            _fill(part, reply, target)
        return False
    if scheme not in ("http", "https"):
        raise TransferError(f"addresses of scheme {scheme!r} are not known: expected http, https or file", lasting=True)
    url, validator = part.source()
    if url != without_password(address):
        validator = ""
    # Bytes of a version that nothing names are continued only if the whole is checked afterwards.
    offset = part.size() if validator or checked else 0
    reply = http.get(address, offset, validator, verify, knobs.DOWNLOAD_TIMEOUT.number(0.001))
    try:
        if not reply.start:
            part.begins(address, reply.validator)
        _fill(part, reply, target)
    finally:
        reply.close()
    return reply.start > 0


@contextmanager
def _copied(address: str) -> Iterator[Reply]:
    """Open the file of a `file://` address."""
    place = address[len("file://") :]
    place = place.removeprefix("localhost") if place.startswith("localhost/") else place
    if not os.path.exists(place):
        place = unquote(place)
    try:
        source = open(place, "rb")
    except OSError as e:
        raise TransferError(f"cannot read {place!r}: {e.strerror or e}", lasting=True) from None
    with source:
        yield Reply(0, os.fstat(source.fileno()).st_size, "", source.read, source.close)


def _fill(part: _PartialFile, reply: Reply, target: str) -> None:
    """Write the reply after the first `reply.start` bytes, and check its length."""
    most = knobs.DOWNLOAD_MAX.integer(1) << 20
    file, total, have = part.file, reply.total, reply.start
    file.seek(have)
    file.truncate()
    if total is not None and total > most:
        raise _too_large(total, most)
    free = shutil.disk_usage(os.path.dirname(os.path.abspath(target))).free
    if total is not None and total - have > free:
        raise TransferError(f"needs {total - have} more bytes, and the disk has {free}", lasting=True)
    with Progress(os.path.basename(target), total, have) as progress:
        while block := _read(reply.read, have, total):
            have += len(block)
            if have > most:
                raise _too_large(have, most)
            if total is not None and have > total:
                raise TransferError(f"sent more than the {total} bytes that it announced", restart=True)
            file.write(block)
            progress.show(have)
    if total is not None and have < total:
        raise TransferError(f"broke off after {have} of {total} bytes")


def _too_large(size: int, most: int) -> TransferError:
    return TransferError(
        f"is larger ({size} bytes or more) than {most} bytes, the limit of DUALMX_DOWNLOAD_MAX_MB", True, True
    )


def _read(read: Callable[[int], bytes], have: int, total: int | None) -> bytes:
    try:
        return read(_BLOCK_BYTES)
    except (OSError, HTTPException, ValueError) as e:
        so_far = f"after {have} of {'an unknown number of' if total is None else total} bytes"
        raise TransferError(f"broke off {so_far}: {http.failure(e)}") from None


__all__ = ["fetch"]
