"""Parse the column metadata of a Parquet footer (Thrift compact protocol).

Arrow reads footers too, but crashes the process on damaged column statistics.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.reader import Content, Cursor

BYTE_ARRAY, FIXED_BYTES = 6, 7
WIDTHS = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8}  # bytes of a value, by physical type
SHORT = {2, 7, 8}  # encodings in which a few bytes stand for a long value that came before
PREFIXES = 7  # of them, the one that shares beginnings
_MAX_DEPTH = 24
# Fields by number that are read, and what in them; the others are skipped.
_COLUMN = {1: None, 2: None, 3: None, 5: None, 6: None}
_WANTED: dict[int, Any] = {4: {1: {3: _COLUMN}, 3: None}}


class Column(NamedTuple):
    """A column of a row group.

    Attributes:
        path: its name, and those of what is nested in it, with dots between.
        kind: physical type.
        encodings: of its pages.
        values: how many there are.
        stored: bytes of its pages, unpacked.
    """

    path: str
    kind: int
    encodings: frozenset[int]
    values: int
    stored: int


class _ThriftReader(Cursor):
    """Takes Thrift values out of bytes."""

    def varint(self) -> int:
        found = shift = 0
        while True:
            byte = self.take(1, "number")[0]
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return found
            shift += 7
            if shift > 63:
                self.fail("is too long", "at most 64 bits")

    def signed(self) -> int:
        raw = self.varint()
        return (raw >> 1) ^ -(raw & 1)

    def struct(self, wanted: dict[int, Any] | None, depth: int = 0) -> dict[int, Any]:
        """The wanted fields of a structure."""
        if depth > _MAX_DEPTH:
            self.fail("is nested too deeply", f"at most {_MAX_DEPTH} levels")
        found: dict[int, Any] = {}
        number = 0
        while (head := self.take(1, "field")[0]) != 0:
            number = number + (head >> 4) if head >> 4 else self.signed()
            kept = wanted is not None and number in wanted
            value = self.value(head & 15, wanted[number] if kept and wanted is not None else None, depth, kept)
            if kept:
                found[number] = value
        return found

    def value(self, kind: int, wanted: Any, depth: int, kept: bool, inside: bool = False) -> Any:
        """Read a value; skipped fields are not built."""
        if kind in (1, 2):  # a truth value, which a list has in a byte and a field in its type
            return self.take(1, "value")[0] == 1 if inside else kind == 1
        if kind == 3:
            return self.take(1, "value")[0]
        if kind in (4, 5, 6):
            return self.signed()
        if kind == 7:
            return bytes(self.take(8, "value"))
        if kind == 8:
            text = self.take(self.varint(), "text")
            return bytes(text) if kept else None
        if kind in (9, 10):
            head = self.take(1, "list")[0]
            count, of = head >> 4, head & 15
            count = self.varint() if count == 15 else count
            if count > self.left:
                self.fail(f"has {count} parts", f"at most {self.left}")
            found = []
            for _ in range(count):
                one = self.value(of, wanted, depth + 1, kept, True)
                if kept:
                    found.append(one)
            return found
        if kind == 11:
            count = self.varint()
            kinds = self.take(1, "types")[0] if count else 0
            if count > self.left:
                self.fail(f"has {count} parts", f"at most {self.left}")
            for _ in range(count):
                self.value(kinds >> 4, None, depth + 1, False, True)
                self.value(kinds & 15, None, depth + 1, False, True)
            return None
        if kind == 12:
            return self.struct(wanted if isinstance(wanted, dict) else None, depth + 1)
        return self.fail(f"is of type {kind}", "one of Thrift's")


def row_groups(content: Content) -> list[tuple[int, list[Column]]]:
    """Return the number of rows and the columns of each row group.

    Args:
        content: the footer, without its length and the letters behind it.

    Raises:
        FormatError: it is damaged.
    """
    found = []
    with content.parsing():
        for group in _ThriftReader(content).struct(_WANTED).get(4, []):
            columns = []
            for chunk in group[1]:
                meta = chunk.get(3, {})
                path = b".".join(meta.get(3, [])).decode()
                encodings = frozenset(meta.get(2, []))
                columns.append(Column(path, meta.get(1, -1), encodings, meta.get(5, 0), meta.get(6, 0)))
            found.append((group.get(3, 0), columns))
    return found


__all__ = ["BYTE_ARRAY", "FIXED_BYTES", "PREFIXES", "SHORT", "WIDTHS", "Column", "row_groups"]
