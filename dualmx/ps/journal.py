"""Journal: append-only log from which the successor of a server or scheduler restores its state.

A record is a frame with a checksum, written before anybody learns of the change. Replay ends at the first incomplete
record: the process died while writing it, so nobody relies on it. When the disk is full, the process waits for space:
changes that nobody has learned of can wait.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from ..core.errors import FormatError, MXNetError
from ..core.reader import Content
from .van.frame import NOTICE, Decoder, Message, encode

MIN_LOG_BYTES = 64 << 20  # bytes of a journal before a snapshot takes its place
_REMEDY = "it is damaged, or of another version; begin with an empty folder"
GROWTH_LIMIT = 4  # times the size of a snapshot
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
PAUSE, REPORT = 0.1, 10.0  # seconds between two tries on a full disk, and between two warnings
_log = logging.getLogger("dualmx.dist")


class JournalError(MXNetError):
    """The journal cannot be written, so that the process must end."""


class Journal:
    """Snapshots and journals of one process in a folder.

    Args:
        folder: on a disk that the process's successor sees as well.
        rank: of the process.
        sync: wait until each record is on the disk, so that it outlives the host and not only the process.
        role: of the process.
        timeout: seconds to wait for room on a full disk, with calls of `meanwhile`.
    """

    def __init__(
        self,
        folder: str | Path,
        rank: int,
        sync: bool = False,
        role: str = "server",
        timeout: float = 0.0,
        meanwhile: Callable[[], None] | None = None,
    ):
        self._folder, self._name, self._sync = Path(folder), f"{role}-{rank}", sync
        self._timeout, self._meanwhile = timeout, meanwhile
        self._generation, self._size, self._limit = 0, 0, MIN_LOG_BYTES
        self._file = -1

    def _path(self, generation: int, kind: str) -> Path:
        return self._folder / f"{self._name}.{generation}.{kind}"

    @property
    def content(self) -> Content:
        """What is read, for errors: the files of a process."""
        return Content(b"", f"DUALMX_JOURNAL: {str(self._folder / self._name)!r}", "a journal", _REMEDY)

    def replay(self) -> Iterator[Message]:
        """The records of the last snapshot and of its journal, oldest first; then `append` appends.

        Raises:
            MXNetError: the folder cannot be used. FormatError: a damaged snapshot.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            pattern = re.compile(rf"{self._name}\.(\d+)\.(snapshot|journal)")
            found = [int(m[1]) for p in self._folder.iterdir() if (m := pattern.fullmatch(p.name))]
            self._generation = max((g for g in found if self._path(g, "snapshot").exists()), default=0)
            if self._generation:
                snapshot = self._path(self._generation, "snapshot")
                self._set_limit(snapshot.stat().st_size)
                yield from self._snapshot_records(snapshot)
            journal = self._path(self._generation, "journal")
            end = 0
            if journal.exists():
                for at, message in self._positions(journal):
                    end = at
                    yield message
            self._file = os.open(journal, os.O_RDWR | os.O_CREAT, 0o600)
            os.ftruncate(self._file, end)
            self._size = os.lseek(self._file, 0, os.SEEK_END)
        except OSError as e:
            raise MXNetError(f"DUALMX_JOURNAL={str(self._folder)!r}: {e.strerror or e}") from None

    def _set_limit(self, snapshot: int) -> None:
        self._limit = max(MIN_LOG_BYTES, GROWTH_LIMIT * snapshot)

    def _positions(self, path: Path) -> Iterator[tuple[int, Message]]:
        decoder, at = Decoder(), 0
        with open(path, "rb", buffering=0) as f:
            while True:
                room = decoder.buffer()
                n = f.readinto(room)
                if not n:
                    return
                at += n
                try:
                    message = decoder.advance(n)
                except FormatError:
                    return
                if message is not None:
                    yield at, message

    def _snapshot_records(self, path: Path) -> Iterator[Message]:
        """The records of a snapshot, which are numbered from 1; an empty one tells the end.

        Those of earlier versions have no numbers, and no end but that of the file.
        """
        end, is_complete = 0, False
        for count, (at, message) in enumerate(self._positions(path), 1):
            is_end = message.request == count and not message.meta
            end, is_complete = at, is_end or not message.request
            if not is_end:
                yield message
        if not is_complete or end != path.stat().st_size:
            raise self.content.error(f"damaged snapshot {path.name}", end)

    def append(self, meta: dict[str, Any], payload: Iterable[Any] = ()) -> bool:
        """Append a record; True when it is time for a `snapshot`.

        Raises:
            JournalError: it cannot be written, or there was no room for it for too long.
        """
        self._size += self._wait_for_room(lambda: self._append(encode(Message(NOTICE, 0, meta, list(payload)), True)))
        return self._size > self._limit

    def _append(self, frame: list[memoryview]) -> int:
        try:
            size = _write(self._file, frame)
            if self._sync:
                os.fdatasync(self._file)
        except OSError:
            os.ftruncate(self._file, self._size)  # nobody may take the beginning of a record for one
            os.lseek(self._file, self._size, os.SEEK_SET)
            raise
        return size

    def _wait_for_room(self, write: Callable[[], int]) -> int:
        """Call `append` until it has room, or timeout ends."""
        began = reported = 0.0
        while True:
            try:
                return write()
            except OSError as e:
                now = time.monotonic()
                began = began or now
                where = f"DUALMX_JOURNAL={str(self._folder)!r}: {e.strerror or e}"
                if e.errno not in FULL or now - began > self._timeout:
                    raise JournalError(
                        f"{where}; nothing that was promised is lost: make room, and start again"
                    ) from None
                if not reported or now - reported > REPORT:
                    reported = now
                    _log.warning("%s: %s; waiting for room, for %g s at most", self._name, where, self._timeout)
            if self._meanwhile is not None:
                self._meanwhile()
            time.sleep(PAUSE)

    def snapshot(self, records: Iterable[tuple[dict[str, Any], list[Any]]]) -> None:
        """Write a snapshot and start a new journal; on a full disk continue the current one."""
        new = self._generation + 1
        draft = self._path(new, "draft")
        try:
            self._set_limit(self._replace(new, draft, records))
        except OSError as e:
            draft.unlink(missing_ok=True)
            if e.errno not in FULL:
                raise JournalError(f"DUALMX_JOURNAL={str(self._folder)!r}: {e.strerror or e}") from None
            self._limit = self._size + MIN_LOG_BYTES

    def _replace(self, new: int, draft: Path, records: Iterable[tuple[dict[str, Any], list[Any]]]) -> int:
        """Replace the journal by a snapshot, or keep it; return its size."""
        out = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            size = number = 0
            for number, (meta, payload) in enumerate(records, 1):
                size += _write(out, encode(Message(NOTICE, number, meta, payload), True))
            size += _write(out, encode(Message(NOTICE, number + 1), True))
            os.fsync(out)
        finally:
            os.close(out)
        following = os.open(self._path(new, "journal"), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.replace(draft, self._path(new, "snapshot"))
        os.close(self._file)
        for kind in ("snapshot", "journal"):
            self._path(self._generation, kind).unlink(missing_ok=True)
        self._file, self._generation, self._size = following, new, 0
        return size

    def remove(self) -> None:
        """Delete the journal: nobody will need it."""
        self.close()
        for path in self._folder.glob(f"{self._name}.*"):
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _write(file: int, buffers: list[memoryview]) -> int:
    total = sum(b.nbytes for b in buffers)
    waiting = list(buffers)
    while waiting:
        n = os.writev(file, waiting[:64])
        while waiting and n >= waiting[0].nbytes:
            n -= waiting.pop(0).nbytes
        if n:
            waiting[0] = waiting[0][n:]
    return total


__all__ = ["Journal", "JournalError"]
