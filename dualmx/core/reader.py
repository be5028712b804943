"""Checked reading of untrusted bytes: a reader declares bounds, and anything outside them is a `FormatError`.

`Content` wraps the bytes of a file or message: it names them in errors, bounds the memory that their own numbers ask
for, and turns parser errors into `FormatError`. `Cursor` reads consecutive fields.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from types import TracebackType
from typing import Any, NoReturn

import numpy as np

from .errors import FormatError, MXNetError, unreadable
from .knobs import READ_LIMIT

MAX_GROWTH = 8  # times the size of the bytes that reading may take, beside `DUALMX_READ_LIMIT_MB`
REMEDY = "it is damaged or of another kind; write or fetch it anew"
# What parsing foreign bytes by plain Python and NumPy can lead to. `MemoryError` is left out: bounds come first.
PARSING = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, EOFError, RecursionError, struct.error)
_NUMBERS = {code: struct.Struct("<" + code) for code in "bBhHiIqQfd"}
_CHUNK_BYTES = 1 << 16
_MIN_COUNTED_BYTES = 1 << 20  # bytes from which the objects of a text are counted before they are made; of a line
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_NPY = re.compile(
    r"\s*\{\s*'descr':\s*'([<>|=]?[?biufcSUVmM]\d*(?:\[\w+\])?)',\s*'fortran_order':\s*(True|False),"
    r"\s*'shape':\s*\(([\d, ]*)\),?\s*\}\s*"
)


def sha1_of(file: Any) -> str:
    """Return the SHA-1 of the rest of a file that is open for reading bytes, in hexadecimal digits."""
    return hashlib.file_digest(file, lambda: hashlib.sha1(usedforsecurity=False)).hexdigest()


def read_file(path: str | os.PathLike[str], what: str = "cannot read") -> bytes:
    """Return the bytes of a file.

    Args:
        path: the file.
        what: begins the text of the error.

    Raises:
        MissingFileError: there is no such file. MXNetError: it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as e:
        raise unreadable(f"{what} {os.fspath(path)!r}", e) from e


class Content:
    """Bytes that others wrote, and the bounds under which they are read.

    Args:
        data: the bytes.
        source: what they are called in errors: a file name in quotes, or what sent them.
        kind: what they should be, such as "a RecordIO file".
        remedy: what to do if they are not.
        size: of the whole file, where `data` is a part of it.

    Attributes:
        data, source, kind, remedy: see above.

    Example:
        >>> Content(b"[1, 2", "'a.json'", "JSON").json()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        dualmx.core.errors.FormatError: 'a.json', at byte 5: not JSON: Expecting ',' delimiter; it is damaged or ...
    """

    __slots__ = ("_left", "data", "kind", "remedy", "source")

    def __init__(
        self,
        data: bytes | bytearray | memoryview,
        source: str,
        kind: str,
        remedy: str = REMEDY,
        size: int | None = None,
    ):
        self.data, self.source, self.kind, self.remedy = data, source, kind, remedy
        self._left = MAX_GROWTH * (len(data) if size is None else size) + (READ_LIMIT.integer() << 20)

    @classmethod
    def of_file(cls, path: str | os.PathLike[str], kind: str, what: str = "cannot read") -> Content:
        """Read a file; errors as `read_file`."""
        return cls(read_file(path, what), repr(os.fspath(path)), kind)

    def error(self, problem: str, offset: int | None = None, expected: str = "") -> FormatError:
        """Return the error that names the source, the byte, what was expected (the kind by default) and the remedy."""
        where = self.source if offset is None else f"{self.source}, at byte {offset}"
        clause = f": expected {expected}" if expected else ""
        text = f"{where}: not {self.kind}: {problem}{clause}; {self.remedy}"
        return FormatError(text, source=self.source, offset=offset, expected=expected or self.kind, remedy=self.remedy)

    def fits(self, nbytes: int) -> bool:
        """Return whether so many bytes may be allocated in addition to those reserved."""
        return nbytes <= self._left

    def reserve(self, nbytes: int, what: str, offset: int | None = None) -> None:
        """Count memory that is about to be allocated on the content's request.

        Raises:
            FormatError: all in all more than 8 times the size and `DUALMX_READ_LIMIT_MB`.
        """
        if nbytes > self._left:
            at = self.source if offset is None else f"{self.source}, at byte {offset}"
            limit = READ_LIMIT.integer()
            needed = limit + (nbytes - self._left >> 20) + 1
            remedy = f"if you trust it, set {READ_LIMIT.name}={needed} or more"
            expected = f"at most {MAX_GROWTH} times its size and {limit} MiB"
            text = f"{at}: {what} would take {nbytes} bytes of memory: expected {expected}; {remedy}"
            raise FormatError(text, source=self.source, offset=offset, expected=expected, remedy=remedy)
        self._left -= nbytes

    def parsing(self, *foreign: type[Exception]) -> _Parsing:
        """Within the block, errors of these kinds (`PARSING` by default) become `FormatError`; those of ours get names.

        For calls of parsers only, never around code of users.
        """
        return _Parsing(self, foreign or PARSING)

    def text(self, encoding: str = "utf-8") -> str:
        """Return the bytes as text.

        Raises:
            FormatError: they are none.
        """
        try:
            return str(self.data, encoding)
        except UnicodeDecodeError as e:
            raise self.error(f"not {encoding} text ({e.reason})", e.start) from None

    def lines(self) -> Iterator[tuple[int, str]]:
        """Give the lines of UTF-8 text, each after its number, from 1 on.

        Raises:
            FormatError: they are no such text, or a line is longer than 1 MiB.
        """
        start = 0
        for number, line in enumerate(io.BytesIO(self.data), 1):
            if len(line) > _MIN_COUNTED_BYTES:
                raise self.error(f"line {number} has {len(line):,} bytes", start, f"at most {_MIN_COUNTED_BYTES:,}")
            try:
                yield number, line.decode()
            except UnicodeDecodeError as e:
                raise self.error(f"not utf-8 text ({e.reason})", start + e.start) from None
            start += len(line)

    def json(self) -> Any:
        """Return the value of JSON text; strings in it can be written as UTF-8.

        Raises:
            FormatError: it is none, is nested too deeply, or consists of very many very small parts.
        """
        text = self.text()
        if len(text) > _MIN_COUNTED_BYTES:
            self.reserve(64 * text.count("[") + 232 * text.count("{") + 56 * text.count(","), "its values")
        try:
            found = json.loads(text)
            if _SURROGATE.search(text):
                json.dumps(found, ensure_ascii=False).encode()
        except json.JSONDecodeError as e:
            raise self.error(e.msg, len(text[: e.pos].encode())) from None
        except RecursionError:
            raise self.error("nested too deeply") from None
        except ValueError as e:  # half of a surrogate pair, or a number of thousands of digits
            raise self.error(str(e)[:200]) from None
        return found

    def npy(self) -> np.ndarray:
        """Return the array of a `.npy` file, of plain elements.

        Raises:
            FormatError: it is damaged, or holds objects or records.
        """
        data = self.data
        if bytes(data[:6]) != b"\x93NUMPY" or len(data) < 12:
            raise self.error("no .npy header", 0, "a .npy file")
        width = 2 if data[6] == 1 else 4
        start = 8 + width + int.from_bytes(data[8 : 8 + width], "little")
        match = _NPY.fullmatch(str(data[8 + width : min(start, 4096)], "latin-1"))
        if match is None or start > 4096 or start > len(data):
            raise self.error("a header that tells of no array of plain elements", 8, "a .npy file")
        with self.parsing(TypeError, ValueError):
            dtype = np.dtype(match[1])
            shape = tuple(int(n) for n in match[3].replace(",", " ").split())
        expected = dtype.itemsize
        for n in shape:
            expected *= n
        if len(shape) > 64 or dtype.hasobject or not dtype.itemsize or expected != len(data) - start:
            raise self.error(f"{len(data) - start} bytes for shape {shape} of {match[1]}", start, f"{expected} bytes")
        with self.parsing(ValueError):  # an empty array with other lengths that no array can have
            flat = np.frombuffer(data, dtype, offset=start)
            return flat.reshape(shape, order="F" if match[2] == "True" else "C")

    def npz(self) -> dict[str, np.ndarray]:
        """Return the arrays of a `.npz` file by name, each of plain elements.

        Raises:
            FormatError: it is damaged, or would unpack to more than may be.
        """
        found = {}
        with self.parsing(Exception), zipfile.ZipFile(io.BytesIO(self.data)) as archive:  # a parser of the library
            for member in archive.infolist():
                self.reserve(2 * member.file_size, f"the member {member.filename!r}")
                raw = Content(archive.read(member), f"{self.source}: {member.filename!r}", self.kind, self.remedy)
                found[member.filename.removesuffix(".npy")] = raw.npy()
        return found

    def gunzip(self) -> memoryview:
        """Return the unpacked bytes of gzipped ones.

        Raises:
            FormatError: damaged, or more than may be.
        """
        out, source, at = bytearray(), memoryview(self.data), 0
        stream = zlib.decompressobj(wbits=31)
        self.reserve(8 * _CHUNK_BYTES, "a part of the unpacked data")
        try:
            while at < len(source) or stream.unconsumed_tail:
                piece = stream.unconsumed_tail or source[at : at + _CHUNK_BYTES]
                at += 0 if stream.unconsumed_tail else len(piece)
                unpacked = stream.decompress(piece, _CHUNK_BYTES)
                self.reserve(len(unpacked) * 9 // 8, "the unpacked data", at)  # with the room in which they grow
                out += unpacked
                if stream.eof:
                    at -= len(stream.unused_data)
                    while at < len(source) and source[at] == 0:  # padding, as of tapes
                        at += 1
                    if at == len(source):
                        return memoryview(out).toreadonly()
                    stream = zlib.decompressobj(wbits=31)
        except zlib.error as e:
            raise self.error(f"broken gzip data: {e}", at) from None
        raise self.error("gzip data that are cut off", at)


class _Parsing:
    """See `Content.parsing`."""

    __slots__ = ("_content", "_foreign")

    def __init__(self, content: Content, foreign: tuple[type[Exception], ...]):
        self._content, self._foreign = content, foreign

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None or (isinstance(error, MXNetError) and not isinstance(error, FormatError)):
            return
        content = self._content
        if isinstance(error, FormatError):
            if error.source is None or content.source not in str(error):
                text = str(error) if content.source in str(error) else f"{content.source}: {error}"
                text = text if error.remedy else f"{text}; {content.remedy}"
                details = {"expected": error.expected or content.kind, "remedy": error.remedy or content.remedy}
                raise FormatError(text, source=content.source, offset=error.offset, **details) from error
        elif isinstance(error, self._foreign) and not isinstance(error, MemoryError):
            raise content.error(f"{type(error).__name__}: {str(error)[:200]}") from error


class Cursor:
    """Reads consecutive fields of bytes, and refuses to go beyond them.

    Args:
        content: the bytes.

    Attributes:
        at: the next byte.
        start: the first byte of the field that was taken last.
        field: what it is called.
        context: what it belongs to.
    """

    def __init__(self, content: Content):
        self.content, self.data = content, memoryview(content.data).cast("B")
        self.at = self.start = 0
        self.context = self.field = ""

    @property
    def left(self) -> int:
        """Remaining bytes."""
        return len(self.data) - self.at

    def fail(self, problem: str, expected: str = "") -> NoReturn:
        """Raise the error of the last field."""
        raise self.content.error(f"{self.context}{self.field} {problem}", self.start, expected)

    def take(self, size: int, field: str) -> memoryview:
        """Return the next `size` bytes."""
        self.field, self.start = field, self.at
        if size > len(self.data) - self.at:
            self.fail(f"needs {size} bytes, but {self.left} are left")
        self.at += size
        return self.data[self.start : self.at]

    def number(self, code: str, field: str) -> int:
        """Return the next number, of a `struct` format."""
        form = _NUMBERS[code]
        return form.unpack(self.take(form.size, field))[0]

    def count(self, field: str, least: int) -> int:
        """Return a u64 count of things of at least `least` bytes each, which must fit in what is left."""
        n = self.number("Q", field)
        if n * least > self.left:
            self.fail(f"is {n}, more than the remaining {self.left} bytes can hold")
        return n

    def end(self) -> None:
        """Check that nothing follows."""
        if self.left:
            self.field, self.start = "end of data", self.at
            self.fail(f"{self.left} unexpected bytes follow", "nothing")


__all__ = ["MAX_GROWTH", "PARSING", "REMEDY", "Content", "Cursor", "read_file", "sha1_of"]
