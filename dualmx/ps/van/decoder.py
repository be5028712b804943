"""Incremental frame parser; sizes and checksums are checked before a message is delivered."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.errors import FormatError
from .frame import (
    ALIGNED,
    CACHED_BYTES,
    CHECKED_HEADER,
    MAGIC,
    MAX_META,
    MAX_PAYLOAD,
    NOTICE,
    SHARED,
    SIZE,
    TRAILER,
    TRAILING_CHECKSUM,
    VERSION,
    XXH3,
    HeaderTemplate,
    Message,
    checksum,
    digest,
    xxhash,
)
from .shared_memory import CACHE_LINE, MIN_SHARED_BYTES, RemoteArena

MAX_TEMPLATES = 4096  # that are kept for a link
_scan = json.JSONDecoder().raw_decode


def _checked(head: bytes | bytearray | memoryview) -> tuple[Any, ...]:
    """The fields of a header."""
    fields = CHECKED_HEADER.unpack(head)
    magic, version, kind, flags, _, meta, payload, _, crc = fields
    if magic != MAGIC:
        raise FormatError("not a frame of dualmx")
    if zlib.crc32(head[:-4]) != crc:
        raise FormatError("damaged frame: the header does not match its checksum")
    if version != VERSION:
        raise FormatError(f"frame of protocol version {version}; this process speaks version {VERSION}")
    known = flags & ~(XXH3 | SHARED | ALIGNED | TRAILING_CHECKSUM) == 0 and (
        flags & XXH3 or not flags & TRAILING_CHECKSUM
    )
    if meta > MAX_META or payload > MAX_PAYLOAD or kind > NOTICE or not known:
        raise FormatError(f"frame of kind {kind} with {meta} + {payload} bytes: out of bounds")
    if flags & XXH3 and xxhash is None:
        raise FormatError("frame with an xxh3 checksum, for which this process lacks the xxhash package")
    return fields


def _unjson(raw: bytes) -> dict[str, Any]:
    try:
        text = raw.decode()
        meta, end = _scan(text)
    except (ValueError, RecursionError) as e:
        raise FormatError(f"frame without readable JSON: {e}") from None
    if not isinstance(meta, dict) or end != len(text):
        raise FormatError("frame whose JSON is no object")
    return meta


class Decoder:
    """Assembles frames from a stream: fill `buffer()`, then call `advance(n)` with the number of bytes.

    Args:
        loans: memory that the sender shares, None for none.
        take: returns memory for large payloads, or None; it is told the frame's kind and request, and how many bytes.

    Attributes:
        idle: between two frames.
    """

    def __init__(
        self, loans: RemoteArena | None = None, take: Callable[[int, int, int], np.ndarray | None] | None = None
    ) -> None:
        self.remote_arena, self._take = loans, take
        self._head = bytearray(SIZE)
        self._forms: dict[bytes, HeaderTemplate] = {}
        self._restart()

    def _restart(self) -> None:
        self._fields: tuple[Any, ...] | None = None
        self._meta = b""
        self._payload = memoryview(b"")
        self._stage = 0
        self._target = memoryview(self._head)
        self._got = self._summed = 0
        self.idle = True
        self._state: Any = None  # of the checksum, as far as it is taken

    def buffer(self) -> memoryview:
        """Where the next bytes belong."""
        return self._target[self._got :]

    def advance(self, n: int) -> Message | None:
        """Account for `n` bytes written into `buffer()`; returns a message when one is complete.

        Raises:
            FormatError: no frame of this version, too large, or damaged.
        """
        self._got += n
        self.idle = False
        if self._stage == 2 and self._fields[3] & XXH3 and self._got - self._summed >= CACHED_BYTES:  # type: ignore[index]
            self._update_checksum()
        while self._got == self._target.nbytes:
            if self._stage == 0:
                self._begin()
            elif self._stage == 1:
                self._meta = bytes(self._target)
                self._expect_stage(2, self._fields[6])  # type: ignore[index]
            elif self._stage == 2 and self._fields[3] & TRAILING_CHECKSUM:  # type: ignore[index]
                self._update_checksum()
                self._payload = self._target
                self._expect_stage(3, TRAILER.size)
            else:
                return self._finish()
        return None

    def _expect_stage(self, stage: int, size: int) -> None:
        self._stage, self._got = stage, 0
        block = None
        if self._take is not None and size >= MIN_SHARED_BYTES and stage == 2:
            _, _, kind, _, request, *_ = self._fields  # type: ignore[misc]
            block = self._take(kind, request, size)
        self._target = (np.empty(size, np.uint8) if block is None else block).data if size else memoryview(b"")

    def decode_complete(self, data: memoryview) -> tuple[Message | None, int]:
        """Decode a frame that is complete at the start of `data`; returns it and its size, (None, 0) for none.

        Raises:
            FormatError: see `advance`.
        """
        if not self.idle or data.nbytes < SIZE:
            return None, 0
        fields = _checked(data[:SIZE])
        _, _, kind, flags, request, middle, size, told, _ = fields
        middle += SIZE
        end = middle + size
        if data.nbytes < end or flags & TRAILING_CHECKSUM:
            return None, 0
        found = digest[flags & XXH3](data[SIZE:end])
        raw, payload = bytes(data[SIZE:middle]), memoryview(bytes(data[middle:end]))
        if flags & (SHARED | ALIGNED) or found != told:
            return self._message(fields, raw, payload, told, found), end
        meta, form = self._parse_meta(raw) if raw else ({}, None)
        return Message(kind, request, meta, (payload,) if size else (), None, form, size), end

    def _begin(self) -> None:
        self._fields = _checked(self._head)
        self._expect_stage(1, self._fields[5])

    def _update_checksum(self) -> None:
        """Take the checksum of what has arrived since the last time."""
        if self._state is None:
            self._state = xxhash.xxh3_64(self._meta)
        self._state.update(self._target[self._summed : self._got])
        self._summed = self._got

    def _finish(self) -> Message:
        fields, meta, payload = self._fields, self._meta, self._target
        told: int = fields[7]  # type: ignore[index]
        if self._stage == 3:
            payload, told = self._payload, TRAILER.unpack(self._target)[0]
        elif self._state is not None:
            self._update_checksum()
        found = None if self._state is None else self._state.intdigest()
        self._restart()
        return self._message(fields, meta, payload, told, found)  # type: ignore[arg-type]

    def _message(
        self, fields: tuple[Any, ...], raw: bytes, payload: memoryview, told: int, found: int | None = None
    ) -> Message:
        _, _, kind, flags, request, *_ = fields
        if (checksum((raw, payload), flags & XXH3 != 0) if found is None else found) != told:
            raise FormatError("damaged frame: the content does not match its checksum")
        meta, form = self._parse_meta(raw) if raw else ({}, None)
        if flags & (SHARED | ALIGNED):
            pieces = self._payload_layout(meta, payload, flags)
            size = sum([p.nbytes for p in pieces])
        else:
            size = payload.nbytes
            pieces = (payload,) if size else ()
        return Message(kind, request, meta, pieces, None, form, size)

    def _parse_meta(self, raw: bytes) -> tuple[dict[str, Any], HeaderTemplate | None]:
        """Parse the JSON, and return its template if it has a known one."""
        head, _, tail = raw.rpartition(b",")
        form = self._forms.get(head)
        if form is not None and tail[-3:] == b"]]}" and tail[:-3].isdigit() and len(tail) < 20:
            return {**form.meta, "parts": [[form.key, form.number, int(tail[:-3])]]}, form
        meta = _unjson(raw)
        if len(raw) < 256 and len(self._forms) < MAX_TEMPLATES and len(meta) == 3 and "store" in meta:
            match meta.get("parts"):
                case [[int() | str() as key, int() as number, int()]]:
                    form = HeaderTemplate(meta, key, number)
                    self._forms[form.head] = form
        return meta, None

    def _payload_layout(self, meta: dict[str, Any], inline: memoryview, flags: int) -> tuple[Any, ...]:
        layout, pieces = meta.pop("~", None), []
        if not isinstance(layout, list):
            raise FormatError("frame without the layout of its payload")
        for place in layout:
            if type(place) is int:
                if not 0 < place <= inline.nbytes:
                    raise FormatError("frame with fewer bytes than its layout tells")
                pieces.append(inline[:place])
                inline = inline[place + (-place % CACHE_LINE if flags & ALIGNED else 0) :]
            elif self.remote_arena is None or not flags & SHARED:
                raise FormatError("frame with shared memory that is not there")
            else:
                pieces.append(self.remote_arena.view(place).data)
        if inline.nbytes:
            raise FormatError("frame with more bytes than its layout tells")
        return tuple(pieces)


__all__ = ["Decoder"]
