"""Frames, the wire format: a header of fixed size, bounded JSON, bounded raw bytes.

Nothing received is executed: the JSON describes, the bytes are numbers.
"""

from __future__ import annotations

import importlib
import json
import struct
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from typing import Any

import numpy as np

from ...core.errors import FormatError
from .shared_memory import CACHE_LINE, MIN_SHARED_BYTES, RemoteArena

VERSION = 1
MAGIC = b"DMXF"
HEADER = struct.Struct("<4sBBHQIQQ")  # magic, version, kind, flags, request, bytes of JSON, bytes of payload, checksum
CHECKED_HEADER = struct.Struct(HEADER.format + "I")  # and the CRC of the header itself
SIZE = CHECKED_HEADER.size
MAX_META = 4 << 20
MAX_PAYLOAD = 1 << 30
XXH3 = 1  # flag: the checksum is xxh3, not CRC-32
SHARED = 2  # flag: parts of the payload are in shared memory; "~" of the JSON tells where
ALIGNED = 4  # flag: there is room between parts, whose sizes "~" tells, so that each begins at a multiple of `LINE`
TRAILING_CHECKSUM = 8  # flag: the checksum, which is xxh3, comes behind the payload
TRAILER = struct.Struct("<Q")
CACHED_BYTES = 256 << 10  # bytes that are summed up while they are in the processor's cache
PAYLOAD_CHUNK = 2 * CACHED_BYTES  # bytes that are sent or received at once, and then summed up
MOST_BUFFERS = 64  # that are sent at once

PING, REQUEST, REPLY, ERROR, NOTICE = range(5)


def _optional(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


ShareFn = Callable[[list[memoryview]], list[Any]]
xxhash = _optional("xxhash")


class HeaderTemplate:
    """The JSON of a request for one slice, up to its round: such requests are frequent.

    Attributes:
        meta: what it says but for the slice. key, number: the slice.
        cached_target: what the receiver keeps with it.
    """

    __slots__ = ("cached_target", "head", "key", "meta", "number")

    def __init__(self, meta: dict[str, Any], key: int | str, number: int):
        self.meta, self.key, self.number = {k: v for k, v in meta.items() if k != "parts"}, key, number
        self.head = to_json({**self.meta, "parts": [[key, number, 0]]}).encode().removesuffix(b",0]]}")
        self.cached_target: Any = None

    def with_round(self, turn: int) -> EncodedMeta:
        """Return the complete JSON for a round."""
        meta = EncodedMeta(self.meta, parts=[[self.key, self.number, turn]])
        meta.text = b"%b,%d]]}" % (self.head, turn)
        return meta


class EncodedMeta(dict[str, Any]):
    """Meta data of which the JSON is known already.

    Attributes:
        text: the JSON.
    """

    __slots__ = ("text",)
    text: bytes


@dataclass(slots=True)
class Message:
    """One frame.

    Attributes:
        kind: `PING`, `REQUEST`, `REPLY`, `ERROR` or `NOTICE`.
        request: number that ties a reply to its request.
        meta: what it says, as JSON.
        payload: numbers; a list of buffers where it is sent, one buffer where it is received.
        priority: where it is sent: it may overtake what is queued before it with a lower one; None keeps its place.
        form: where it is received: of a request that is known but for its round.
        size: where it is received: bytes of the payload.
    """

    kind: int
    request: int = 0
    meta: dict[str, Any] = field(default_factory=dict)
    payload: Sequence[Any] = ()
    priority: int | None = None
    form: HeaderTemplate | None = None
    size: int = 0

    def data(self) -> memoryview:
        """All bytes of the payload."""
        if len(self.payload) == 1:
            return memoryview(self.payload[0]).cast("B")
        return memoryview(b"".join(bytes(p) for p in self.payload))

    def pieces(self) -> PayloadReader:
        """The payload, read part by part."""
        return PayloadReader(self.payload)

    def field(self, name: str, kind: type | tuple[type, ...]) -> Any:
        """Return a value of the meta data; `FormatError` if it is missing or of another type."""
        value = self.meta.get(name)
        if type(value) is kind:
            return value
        if not isinstance(value, kind) or isinstance(value, bool):  # which is an int as well
            raise FormatError(f"message: {name}={value!r:.80}: not as expected")
        return value


def _bytewise(part: Any) -> memoryview:
    """Return the bytes of a contiguous buffer."""
    plain = type(part) is memoryview and part.format == "B" and part.ndim == 1
    return part if plain else memoryview(part).cast("B")


class SharedPayload(list[Any]):
    """A payload that is sent to several, which remembers its checksums.

    Attributes:
        sums: by the JSON before it and the kind of checksum.
    """

    def __init__(self, parts: Iterable[Any]):
        super().__init__(parts)
        self.sums: dict[tuple[bytes, bool], int] = {}


class PayloadReader:
    """Takes parts out of a payload, in order, without a copy where it can be.

    Attributes:
        left: bytes that were not taken yet.
    """

    def __init__(self, payload: Sequence[Any]):
        self._views = [_bytewise(p) for p in payload]
        self._at = self._view = 0
        self.left = sum([v.nbytes for v in self._views]) if len(self._views) != 1 else self._views[0].nbytes

    def read(self, size: int) -> memoryview:
        """Return the next `size` bytes; fewer if there are no more."""
        if self._view < len(self._views) and self._at + size <= self._views[self._view].nbytes:
            return self._next(size)
        found = []
        missing = min(size, self.left)
        while missing:
            found.append(self._next(min(missing, self._views[self._view].nbytes - self._at)))
            missing -= found[-1].nbytes
        return memoryview(b"".join(found))

    def _next(self, size: int) -> memoryview:
        """The next bytes, of one piece."""
        view, at = self._views[self._view], self._at
        self._at = at + size
        self.left -= size
        if self._at == view.nbytes:
            self._at = 0
            self._view += 1
        return view[at : at + size]


# Checksums of what lies in one piece, by the flag of the frame.
digest: dict[int, Callable[[Any], int]] = {0: zlib.crc32, **({XXH3: xxhash.xxh3_64_intdigest} if xxhash else {})}


def checksum(parts: Sequence[Any], fast: bool) -> int:
    """The checksum of bytes in several pieces: xxh3 if `fast`, else CRC-32."""
    if fast:
        state = xxhash.xxh3_64()
        for p in parts:
            state.update(p)
        return state.intdigest()
    total = 0
    for p in parts:
        total = zlib.crc32(p, total)
    return total


_CRC = struct.Struct("<I")
to_json = json.JSONEncoder(separators=(",", ":")).encode


def _inline(parts: list[memoryview], layout: list[Any]) -> list[memoryview]:
    """Return the parts that a layout does not share."""
    places = iter(layout)
    kept, left, inline = [], 0, False
    for p in parts:
        if not left:
            place = next(places)
            inline = isinstance(place, int)
            left = place if inline else place[2]
        if inline:
            kept.append(p)
        left -= p.nbytes
    return kept


def consume(buffers: deque[memoryview], n: int) -> None:
    """Remove the first `n` bytes, which were sent."""
    while n:
        first = buffers[0]
        if n < first.nbytes:
            buffers[0] = first[n:]
            break
        n -= first.nbytes
        buffers.popleft()


class StreamedFrame:
    """A frame sent in chunks; its trailing checksum is taken of what the system has just copied.

    Args:
        buffers: of the frame; the checksum takes none of the first one.
        meta: its JSON.
        tell: called with the checksum.
    """

    def __init__(self, buffers: list[memoryview], meta: bytes, tell: Callable[[int], None]):
        self._rest, self._state, self._tell = deque(buffers), xxhash.xxh3_64(meta), tell
        self._known = buffers[0].nbytes  # bytes of the rest that the checksum has, or does not take
        self._ended = False

    def next(self) -> list[memoryview]:
        """Return the next bytes to send; `sent` tells how many were."""
        some: list[memoryview] = []
        size = 0
        for b in self._rest:
            if size == PAYLOAD_CHUNK or len(some) == MOST_BUFFERS:
                return some
            some.append(b[: PAYLOAD_CHUNK - size])
            size += some[-1].nbytes
            if some[-1].nbytes < b.nbytes:
                return some
        if not self._ended:
            self._take(size)
            self._ended = True
            total = self._state.intdigest()
            self._tell(total)
            self._rest.append(memoryview(TRAILER.pack(total)))
            some.append(self._rest[-1])
        return some

    def sent(self, n: int) -> bool:
        """Account for bytes that were sent; True when nothing is left."""
        if not self._ended:
            self._take(n)
        self._known -= n
        consume(self._rest, n)
        return self._ended and not self._rest

    def _take(self, n: int) -> None:
        """Sum up the first `n` bytes of the rest, as far as they are not."""
        at = 0
        for b in self._rest:
            if at >= n:
                break
            if self._known < min(at + b.nbytes, n):
                self._state.update(b[max(self._known - at, 0) : n - at])
            at += b.nbytes
        self._known = max(self._known, n)


_ROOM = memoryview(bytes(CACHE_LINE))


def _align_parts(parts: list[memoryview]) -> tuple[list[memoryview], list[int]]:
    """Return parts with padding between those of odd sizes, and their sizes."""
    padded: list[memoryview] = []
    sizes = [0]
    for p in parts:
        if sizes[-1] % CACHE_LINE:
            padded.append(_ROOM[: -sizes[-1] % CACHE_LINE])
            sizes.append(0)
        padded.append(p)
        sizes[-1] += p.nbytes
    return padded, sizes


def _encode_meta(message: Message, fast: bool, lend: ShareFn | None) -> tuple[int, bytes, list[memoryview], int]:
    """Return a frame's flags, its JSON, the parts of its payload that are sent with it, and their size."""
    parts = [p for part in message.payload if (p := memoryview(part).cast("B")).nbytes]
    flags, described = XXH3 if fast else 0, message.meta
    if lend is not None:
        layout = lend(parts)
        parts = _inline(parts, layout)
        flags, described = flags | SHARED, {**described, "~": layout}
    elif any([p.nbytes % CACHE_LINE for p in parts[:-1]]):  # programs copy arrays that begin elsewhere
        parts, layout = _align_parts(parts)
        flags, described = flags | ALIGNED, {**described, "~": layout}
    size = sum([p.nbytes for p in parts])
    meta = to_json(described).encode()
    if len(meta) > MAX_META or size > MAX_PAYLOAD:
        raise _too_large(meta, size)
    return flags, meta, parts, size


def _too_large(meta: bytes, size: int) -> FormatError:
    return FormatError(f"frame of {len(meta)} + {size} bytes: at most {MAX_META} + {MAX_PAYLOAD} are sent at once")


def _headed(message: Message, flags: int, meta: bytes, size: int, checksum: int) -> memoryview:
    head = HEADER.pack(MAGIC, VERSION, message.kind, flags, message.request, len(meta), size, checksum)
    return memoryview(b"".join((head, _CRC.pack(zlib.crc32(head)), meta)))


def encode(message: Message, fast: bool = False) -> list[memoryview]:
    """Return the buffers of a frame.

    Args:
        message: what is sent.
        fast: take the xxh3 checksum, for a peer that knows it.

    Raises:
        FormatError: larger than a frame may be.
    """
    sent = encode_for_link(message, fast)
    assert not isinstance(sent, StreamedFrame)
    return sent


def encode_for_link(
    message: Message, fast: bool = False, lend: ShareFn | None = None, late: bool = False
) -> list[memoryview] | StreamedFrame:
    """Return the buffers of a frame for a link: one for a small frame.

    Args:
        message, fast: see `encode`.
        lend: see `Arena.lend`; for a peer that shares memory.
        late: the checksum of a large frame may be taken while it is sent.

    Raises:
        FormatError: larger than a frame may be.
    """
    fast, parts, given = fast and xxhash is not None, message.payload, message.meta
    size = memoryview(parts[0]).nbytes if len(parts) == 1 else sum([memoryview(p).nbytes for p in parts])
    if size >= MIN_SHARED_BYTES:
        return _large(message, fast, lend, late)
    meta = given.text if type(given) is EncodedMeta else to_json(given).encode() if given else b""
    if len(meta) > MAX_META:
        raise _too_large(meta, size)
    body, flags = b"".join((meta, *parts)), XXH3 if fast else 0
    head = HEADER.pack(MAGIC, VERSION, message.kind, flags, message.request, len(meta), size, digest[flags](body))
    return [memoryview(head + _CRC.pack(zlib.crc32(head)) + body)]


def _large(message: Message, fast: bool, lend: ShareFn | None, late: bool) -> list[memoryview] | StreamedFrame:
    """Return the buffers of a frame that may be shared or aligned."""
    flags, meta, parts, size = _encode_meta(message, fast, lend)
    sums = message.payload.sums if isinstance(message.payload, SharedPayload) and not flags & SHARED else {}
    key = meta, fast
    if key not in sums:
        if late and fast and size >= CACHED_BYTES:
            buffers = [_headed(message, flags | TRAILING_CHECKSUM, meta, size, 0), *parts]
            return StreamedFrame(buffers, meta, partial(sums.__setitem__, key))
        sums[key] = checksum([meta, *parts], fast)
    return [_headed(message, flags, meta, size, sums[key]), *parts]


# -- what arrives: read whole or piece by piece, and checked before anybody sees what it says

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


class Stage(Enum):
    """The part of a frame that is read next."""

    HEADER = auto()
    META = auto()
    PAYLOAD = auto()
    TRAILER = auto()


class Decoder:
    """Assembles frames from a stream: fill `buffer()`, then call `advance(n)` with the number of bytes.

    Args:
        remote: memory that the sender shares, None for none.
        take: returns memory for large payloads, or None; it is told the frame's kind and request, and how many bytes.

    Attributes:
        idle: between two frames.
    """

    def __init__(
        self, remote: RemoteArena | None = None, take: Callable[[int, int, int], np.ndarray | None] | None = None
    ) -> None:
        self.remote_arena, self._take = remote, take
        self._head = bytearray(SIZE)
        self._forms: dict[bytes, HeaderTemplate] = {}
        self._restart()

    def _restart(self) -> None:
        self._fields: tuple[Any, ...] | None = None
        self._meta = b""
        self._payload = memoryview(b"")
        self._stage = Stage.HEADER
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
        if self._stage is Stage.PAYLOAD and self._fields[3] & XXH3 and self._got - self._summed >= CACHED_BYTES:  # type: ignore[index]
            self._update_checksum()
        while self._got == self._target.nbytes:
            if self._stage is Stage.HEADER:
                self._begin()
            elif self._stage is Stage.META:
                self._meta = bytes(self._target)
                self._expect_stage(Stage.PAYLOAD, self._fields[6])  # type: ignore[index]
            elif self._stage is Stage.PAYLOAD and self._fields[3] & TRAILING_CHECKSUM:  # type: ignore[index]
                self._update_checksum()
                self._payload = self._target
                self._expect_stage(Stage.TRAILER, TRAILER.size)
            else:
                return self._finish()
        return None

    def _expect_stage(self, stage: Stage, size: int) -> None:
        self._stage, self._got = stage, 0
        block = None
        if self._take is not None and size >= MIN_SHARED_BYTES and stage is Stage.PAYLOAD:
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
        _, _, kind, flags, request, middle, size, expected, _ = fields
        middle += SIZE
        end = middle + size
        if data.nbytes < end or flags & TRAILING_CHECKSUM:
            return None, 0
        found = digest[flags & XXH3](data[SIZE:end])
        raw, payload = bytes(data[SIZE:middle]), memoryview(bytes(data[middle:end]))
        if flags & (SHARED | ALIGNED) or found != expected:
            return self._message(fields, raw, payload, expected, found), end
        meta, form = self._parse_meta(raw) if raw else ({}, None)
        return Message(kind, request, meta, (payload,) if size else (), None, form, size), end

    def _begin(self) -> None:
        self._fields = _checked(self._head)
        self._expect_stage(Stage.META, self._fields[5])

    def _update_checksum(self) -> None:
        """Take the checksum of what has arrived since the last time."""
        if self._state is None:
            self._state = xxhash.xxh3_64(self._meta)
        self._state.update(self._target[self._summed : self._got])
        self._summed = self._got

    def _finish(self) -> Message:
        fields, meta, payload = self._fields, self._meta, self._target
        expected: int = fields[7]  # type: ignore[index]
        if self._stage is Stage.TRAILER:
            payload, expected = self._payload, TRAILER.unpack(self._target)[0]
        elif self._state is not None:
            self._update_checksum()
        found = None if self._state is None else self._state.intdigest()
        self._restart()
        return self._message(fields, meta, payload, expected, found)  # type: ignore[arg-type]

    def _message(
        self, fields: tuple[Any, ...], raw: bytes, payload: memoryview, expected: int, found: int | None = None
    ) -> Message:
        _, _, kind, flags, request, *_ = fields
        if (checksum((raw, payload), flags & XXH3 != 0) if found is None else found) != expected:
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


__all__ = [
    "Decoder", "ERROR", "NOTICE", "PING", "REPLY", "REQUEST", "VERSION", "EncodedMeta", "HeaderTemplate", "Message",
    "SharedPayload", "StreamedFrame", "checksum", "digest", "encode", "encode_for_link",
]  # fmt: skip
