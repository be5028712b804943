"""RecordIO: record files with and without an index, and the image records in them."""

from __future__ import annotations

import os
import struct
from collections import namedtuple
from collections.abc import Callable, Iterator
from numbers import Number
from typing import IO, Any

import numpy as np

from ..core.errors import ArgumentError, ArgumentKeyError, ArgumentTypeError, FormatError, MXNetError
from ..core.reader import REMEDY, Content
from ..ndarray import NDArray
from . import image_codec

MAGIC = struct.pack("<I", 0xCED7230A)
MAX_CHUNK_BYTES = (1 << 29) - 1
_MIN_CHECKED_BYTES = 1 << 20  # bytes of a record from which it is checked that they are there before memory is taken
_HEADER = struct.Struct("<IfQQ")

IRHeader = namedtuple("HEADER", ["flag", "label", "id", "id2"])
IRHeader.__doc__ = """Header of an image record: `flag` further labels, `label`, `id`, `id2` (unused)."""


def encode_record(payload: bytes) -> bytes:
    """Return the encoded record, split wherever its bytes look like the start of a record.

    Raises:
        ArgumentError: 2 ** 29 bytes or more.
    """
    if len(payload) > MAX_CHUNK_BYTES:
        raise ArgumentError(f"a record of {len(payload)} bytes: expected at most {MAX_CHUNK_BYTES}")
    parts, begin, at = [], 0, payload.find(MAGIC)
    while at >= 0:
        if at % 4 == 0:
            parts.append(payload[begin:at])
            begin = at + 4
            at = payload.find(MAGIC, begin)
        else:
            at = payload.find(MAGIC, at + 1)
    parts.append(payload[begin:])
    out = []
    for i, part in enumerate(parts):
        kind = 0 if len(parts) == 1 else 1 if i == 0 else 3 if i == len(parts) - 1 else 2
        out += [MAGIC, struct.pack("<I", kind << 29 | len(part)), part, bytes(-len(part) % 4)]
    return b"".join(out)


def _read_chunk(file: IO[bytes], name: str, skip: bool) -> tuple[int, int, bytes] | None:
    """Next piece of a record: its kind, its length, its bytes; None at the end of the file."""
    head = file.read(8)
    if not head:
        return None
    at = file.tell() - len(head)
    if len(head) < 8 or head[:4] != MAGIC:
        raise _error(name, at, f"no record begins at byte {at}")
    word = struct.unpack("<I", head[4:])[0]
    size = word & MAX_CHUNK_BYTES
    if skip:
        file.seek(size + -size % 4, os.SEEK_CUR)
        return word >> 29, size, b""
    if size >= _MIN_CHECKED_BYTES and size > (left := os.fstat(file.fileno()).st_size - file.tell()):
        raise _error(name, at, f"a record that is cut off: {max(left, 0)} of {size} bytes")
    data = file.read(size + -size % 4)
    if len(data) < size:
        raise _error(name, at, f"a record that is cut off: {len(data)} of {size} bytes")
    return word >> 29, size, data[:size]


def _error(name: str, at: int, problem: str, expected: str = "a RecordIO file") -> FormatError:
    text = f"{name!r}, at byte {at}: {problem}: expected {expected}; {REMEDY}"
    return FormatError(text, source=repr(name), offset=at, expected=expected, remedy=REMEDY)


def read_record(file: IO[bytes], name: str) -> bytes | None:
    """Return the next record of a file, None at its end.

    Raises:
        FormatError: something else stands there, or the record is cut off.
    """
    piece = _read_chunk(file, name, False)
    if piece is None or piece[0] == 0:
        return None if piece is None else piece[2]
    if piece[0] != 1:
        raise _error(name, file.tell(), "the begin of a record is missing")
    parts = [piece[2]]
    while True:
        piece = _read_chunk(file, name, False)
        if piece is None or piece[0] not in (2, 3):
            raise _error(name, file.tell(), "the end of a record is missing")
        parts.append(piece[2])
        if piece[0] == 3:
            return MAGIC.join(parts)


def offsets(path: str | os.PathLike[str]) -> list[int]:
    """Return where each record of a file begins, in bytes.

    Raises:
        MXNetError: the file cannot be read. FormatError: it is no RecordIO file, or cut off.
    """
    name, out = os.fspath(path), []
    with _opened(name, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        while True:
            at = file.tell()
            piece = _read_chunk(file, name, True)
            if file.tell() > size:
                raise _error(name, at, f"a record that is cut off: it ends at byte {file.tell()} of {size}")
            if piece is None:
                return out
            if piece[0] in (0, 1):
                out.append(at)


def _opened(path: str, mode: str) -> IO[Any]:
    try:
        return open(path, mode)
    except OSError as e:
        raise MXNetError(f"cannot open {path!r}: {e.strerror or e}") from None


class MXRecordIO:
    """Reads or writes the records of a file one after the other.

    A reader that a data worker inherits opens the file for itself; a writer does not go to other processes.

    Args:
        uri: the file.
        flag: `"r"` or `"w"`.

    Raises:
        ArgumentError: another flag. MXNetError: the file cannot be opened.

    Example:
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "a.rec")
        >>> out = mx.recordio.MXRecordIO(path, "w")
        >>> out.write(b"first"), out.close()
        (None, None)
        >>> mx.recordio.MXRecordIO(path, "r").read()
        b'first'
    """

    def __init__(self, uri: str, flag: str):
        self.uri, self.flag = os.fspath(uri), flag
        self.is_open = False
        self.open()

    def open(self) -> None:
        """Open the file; one that is written begins empty."""
        if self.flag not in ("r", "w"):
            raise ArgumentError(f"{type(self).__name__}: flag={self.flag!r}: expected 'r' or 'w'")
        self.writable = self.flag == "w"
        self._file = _opened(self.uri, self.flag + "b")
        self._process = os.getpid()
        self.is_open = True

    def close(self) -> None:
        """Close the file."""
        if self.is_open:
            self._file.close()
            self.is_open = False

    def reset(self) -> None:
        """Return to the beginning; a file open for writing is truncated."""
        self.close()
        self.open()

    def __del__(self) -> None:
        if getattr(self, "is_open", False):
            self.close()

    def __enter__(self) -> MXRecordIO:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        if self.writable:
            raise MXNetError(f"{type(self).__name__} of {self.uri!r}: a file being written goes to no other process")
        return {k: v for k, v in self.__dict__.items() if k not in ("_file", "fidx")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        was_open = state["is_open"]
        self.__dict__.update(state, is_open=False)
        if was_open:
            self.open()

    def _ready(self, writing: bool) -> IO[bytes]:
        if not self.is_open:
            raise MXNetError(f"{type(self).__name__} of {self.uri!r} is closed")
        if writing != self.writable:
            raise ArgumentError(
                f"{type(self).__name__} of {self.uri!r} was opened for {'writing' * self.writable or 'reading'}"
            )
        if self._process != os.getpid():  # the position in the file is shared with the parent
            if writing:
                raise MXNetError(f"{self.uri!r} is written by process {self._process}, not by its children")
            at = self._file.tell()
            self.open()
            self._file.seek(at)
        return self._file

    def write(self, buf: bytes) -> None:
        """Append a record."""
        if not isinstance(buf, (bytes, bytearray, memoryview)):
            raise ArgumentTypeError(f"write: got {type(buf).__name__}: expected bytes")
        self._ready(True).write(encode_record(bytes(buf)))

    def read(self) -> bytes | None:
        """Return the next record, None at the end.

        Raises:
            FormatError: the file is damaged.
        """
        return read_record(self._ready(False), self.uri)


class MXIndexedRecordIO(MXRecordIO):
    """Reads records in any order, by an index file of keys and positions; or writes both files.

    Args:
        idx_path: the index file: `key`, tab, position in bytes in each line.
        uri: the file of records.
        flag: `"r"` or `"w"`.
        key_type: type of the keys.

    Attributes:
        keys: in the order of the index.
        idx: position of each key.

    Raises:
        ArgumentError: another flag. MXNetError: a file cannot be opened. FormatError: the index cannot be read.
    """

    def __init__(self, idx_path: str, uri: str, flag: str, key_type: Callable[[str], Any] = int):
        self.idx_path, self.key_type = os.fspath(idx_path), key_type
        self.idx: dict[Any, int] = {}
        self.keys: list[Any] = []
        super().__init__(uri, flag)

    def open(self) -> None:
        super().open()
        self.idx, self.keys = {}, []
        self.fidx = _opened(self.idx_path, self.flag)
        if self.writable:
            return
        with self.fidx:
            size = os.fstat(self.fidx.fileno()).st_size
            content = Content(b"", repr(self.idx_path), "an index of records", size=size)
            with content.parsing(UnicodeDecodeError):
                self._read_index(content)

    def _read_index(self, content: Content) -> None:
        for number, line in enumerate(self.fidx, 1):
            key, tab, at = line.rstrip("\n").partition("\t")
            try:
                made, position = self.key_type(key), int(at.split("\t")[0])
            except ValueError:
                made, position = None, -1
            if not tab or not 0 <= position < 1 << 62:
                raise content.error(f"line {number}: {line[:80]!r}", None, "a key, tab, position")
            self.keys.append(made)
            self.idx[made] = position

    def close(self) -> None:
        if self.is_open and self.writable:
            self.fidx.close()
        super().close()

    def seek(self, idx: Any) -> None:
        """Go to the record with key `idx`.

        Raises:
            ArgumentKeyError: there is no such key.
        """
        if idx not in self.idx:
            raise ArgumentKeyError(f"{self.idx_path!r}: no key {idx!r} among its {len(self.idx)}")
        self._ready(False).seek(self.idx[idx])

    def tell(self) -> int:
        """Position at which the next record will be written, in bytes."""
        return self._ready(True).tell()

    def read_idx(self, idx: Any) -> bytes:
        """Return the record with key `idx`.

        Raises:
            ArgumentKeyError: there is no such key. FormatError: none begins where the index says.
        """
        self.seek(idx)
        record = self.read()
        if record is None:
            at, size = self.idx[idx], os.fstat(self._file.fileno()).st_size
            raise _error(self.idx_path, at, f"key {idx!r} lies behind the end of {self.uri!r}", f"0 to {size}")
        return record

    def write_idx(self, idx: Any, buf: bytes) -> None:
        """Append a record with key `idx`."""
        key, at = self.key_type(idx), self.tell()
        self.write(buf)
        self.fidx.write(f"{key}\t{at}\n")
        self.idx[key] = at
        self.keys.append(key)


def pack(header: Any, s: bytes) -> bytes:
    """Return an image record: `header` (an `IRHeader` or its four fields) before the bytes `s`.

    Example:
        >>> mx.recordio.unpack(mx.recordio.pack((0, 4.0, 7, 0), b"zz"))
        (HEADER(flag=0, label=4.0, id=7, id2=0), b'zz')
    """
    head = IRHeader(*header)
    try:
        if isinstance(head.label, Number):
            return _HEADER.pack(0, head.label, head.id, head.id2) + s
        label = head.label.asnumpy() if isinstance(head.label, NDArray) else head.label
        labels = np.asarray(label, dtype=np.float32)
        return _HEADER.pack(labels.size, 0.0, head.id, head.id2) + labels.tobytes() + s
    except struct.error as e:
        raise ArgumentError(f"pack: {head}: {e}") from None


def unpack(s: bytes) -> tuple[Any, bytes]:
    """Return the header and the bytes of an image record.

    Raises:
        FormatError: the record is too short.
    """
    if len(s) < _HEADER.size:
        what = f"image record of {len(s)} bytes"
        raise Content(s, what, "a record of `pack`").error("too short", 0, f"{_HEADER.size} or more")
    head, rest = IRHeader(*_HEADER.unpack_from(s)), s[_HEADER.size :]
    if head.flag > 0:
        if len(rest) < head.flag * 4:
            content = f"{head.flag} labels in {len(rest)} bytes"
            what = f"image record of {len(s)} bytes"
            raise Content(s, what, "a record of `pack`").error(content, 0, f"{head.flag * 4} or more")
        head = head._replace(label=np.frombuffer(rest, np.float32, head.flag))
        rest = rest[head.flag * 4 :]
    return head, rest


def unpack_img(s: bytes, iscolor: int = -1) -> tuple[Any, np.ndarray]:
    """Return the header and the image of an image record, as OpenCV has it: (H, W) or (H, W, C), blue first.

    Args:
        s: the record.
        iscolor: 1 three channels, 0 one, -1 as it is.
    """
    header, data = unpack(s)
    image = image_codec.decode(data, iscolor, rgb=False)
    return header, image[:, :, 0] if image.shape[2] == 1 else image


def pack_img(header: Any, img: Any, quality: int = 95, img_fmt: str = ".jpg") -> bytes:
    """Return an image record.

    Args:
        header: an `IRHeader` or its four fields.
        img: (H, W) or (H, W, C), blue first.
        quality: 1 to 100 for JPEG, compression 0 to 9 for PNG.
        img_fmt: `".jpg"` or `".png"`, or what else OpenCV writes.
    """
    return pack(header, image_codec.encode(img.asnumpy() if isinstance(img, NDArray) else img, quality, img_fmt))


def shard_start(path: str | os.PathLike[str], num_parts: int, part_index: int) -> list[int]:
    """Return where the records of part `part_index` begin; the parts are byte ranges of nearly equal size.

    Raises:
        ArgumentError: `part_index` outside of the parts.
    """
    check_shard("RecordIO", num_parts, part_index)
    step = -(-os.stat(path).st_size // num_parts) if num_parts > 1 else 1 << 62
    step += -step % 4
    return [at for at in offsets(path) if at // step == part_index]


def check_shard(who: str, num_parts: int, part_index: int) -> None:
    """Raise `ArgumentError` unless `part_index` is one of 0 to `num_parts - 1`."""
    if num_parts < 1:
        raise ArgumentError(f"{who}: num_parts={num_parts}: expected 1 or more")
    if not 0 <= part_index < num_parts:
        raise ArgumentError(f"{who}: part_index={part_index}: expected 0 to num_parts-1 = {num_parts - 1}")


def shard_indices(n: int, num_parts: int, part_index: int) -> range:
    """Return the indices of part `part_index` of `n` items: every item is in one part, the first ones have one more."""
    size, over = divmod(n, num_parts)
    begin = size * part_index + min(part_index, over)
    return range(begin, begin + size + (part_index < over))


def records(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """Yield all records of a file."""
    name = os.fspath(path)
    with _opened(name, "rb") as file:
        while (record := read_record(file, name)) is not None:
            yield record


__all__ = [
    "IRHeader", "MXIndexedRecordIO", "MXRecordIO", "check_shard", "offsets", "pack", "pack_img", "records",
    "shard_indices", "shard_start", "unpack", "unpack_img",
]  # fmt: skip
