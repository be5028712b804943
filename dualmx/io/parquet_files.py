"""Open Parquet files and compute the memory of their row groups from the footers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..core.errors import MXNetError, unreadable
from ..core.reader import Content
from .arrow_columns import arrow
from .parquet_footer import PREFIXES, SHORT, WIDTHS, Column, row_groups

Footers = dict[str, list[tuple[int, list[Column]]]]  # what files tell of their row groups, by path
_MAX_ENTRIES = 1_000_000  # of a list in a footer, at most; Arrow makes room for them before it reads them


@contextmanager
def reading(content: Content) -> Iterator[None]:
    """Turn Arrow's errors inside the block into errors that name the file."""
    try:
        with content.parsing(Exception):
            try:
                yield
            except OSError as e:
                if type(e) is not OSError or e.errno is not None:
                    raise unreadable(f"ParquetReader: cannot read {content.source}", e) from None
                raise
    except MemoryError as e:  # Arrow's own, of a length in a damaged page
        if type(e) is MemoryError:
            raise
        raise content.error(str(e)[:200]) from e


def opened(path: Any) -> tuple[Any, list[Any]]:
    """Return the data set of files, and its row groups in their order.

    Raises:
        MXNetError: a file cannot be read. FormatError: it is no Parquet file.
    """
    listed = not isinstance(path, (str, os.PathLike))
    where = [os.fspath(p) for p in path] if listed else os.fspath(path)
    size = max([_size(Path(p)) for p in (path if listed else [path])], default=0)
    dataset, content = arrow("pyarrow.dataset"), Content(b"", f"ParquetReader: {path!r}", "Parquet files", size=size)
    # A column or a row group takes 95 bytes or more of a file; lists of numbers in a footer are short.
    entries = min(max(32, size // 64), _MAX_ENTRIES)
    limits = {"thrift_string_size_limit": size, "thrift_container_size_limit": entries} if size else {}
    options = dataset.ParquetFragmentScanOptions(**limits)
    form = dataset.ParquetFileFormat(default_fragment_scan_options=options)
    with reading(content):
        data = dataset.dataset(where, format=form, partitioning="hive")
        data.schema.names  # noqa: B018  decoded when they are asked for
        files = list(data.get_fragments()) if listed else sorted(data.get_fragments(), key=lambda f: f.path)
        groups = [f.subset(row_group_ids=[g.id]) for f in files for g in f.row_groups]
        if any(g.row_groups[0].num_rows < 0 for g in groups):
            raise content.error("a row group of a negative number of rows")
    return data, groups


def _size(path: Path) -> int:
    """Bytes of a local file, or of the largest in a folder; 0 where there is none."""
    try:
        if path.is_dir():
            return max((p.stat().st_size for p in path.rglob("*") if p.is_file()), default=0)
        return path.stat().st_size
    except OSError:
        return 0


def content_of(group: Any, sizes: dict[str, int]) -> Content:
    """The file of a row group, for errors and bounds; `sizes` keeps that of the file that was read last."""
    if (size := sizes.get(group.path)) is None:
        try:
            size = group.filesystem.get_file_info(group.path).size or 0
        except OSError as e:
            raise MXNetError(f"ParquetReader: cannot read {group.path!r}: {e}") from None
        sizes.clear()
        sizes[group.path] = size
    return Content(b"", f"ParquetReader: {group.path!r}", "a Parquet file", size=size)


def reserve(content: Content, group: Any, columns: list[str], footers: Footers) -> None:
    """Count the memory of a row group's columns.

    Args:
        content: its file.
        group: the row group.
        columns: that are read.
        footers: keeps what the file that was read last tells.

    Raises:
        FormatError: it is more than may be.
    """
    with reading(content):
        if group.path not in footers:
            footers.clear()  # the row groups of a file come one after the other
            footers[group.path] = row_groups(_footer(content, group))
        number = group.row_groups[0].id
        known = footers[group.path]
        if number >= len(known):
            return  # of an encrypted footer, which is not described
        (rows, described), total = known[number], 0
        for column in described:
            if column.path.split(".")[0] not in columns:
                continue
            width, values = WIDTHS.get(column.kind, 0), max(column.values, rows)
            total += values * (width or 8) + 8 * rows
            if width == 0:
                stored = max(column.stored, 0)
                short = values * stored if SHORT & column.encodings else stored
                total += short if content.fits(total + short) else _expanded(content, group, column, total)
        content.reserve(total, f"a row group of {rows} rows")


def _footer(content: Content, group: Any) -> Content:
    with group.filesystem.open_input_file(group.path) as file:
        size = file.size()
        end = file.read_at(8, max(size - 8, 0))
        length = int.from_bytes(end[:4], "little")
        if end[4:] != b"PAR1" or length > size - 8:
            return Content(b"\0", content.source, content.kind)
        return Content(file.read_at(length, size - 8 - length), content.source, "the footer of a Parquet file")


def _expanded(content: Content, group: Any, column: Column, before: int) -> int:
    """Bytes of the texts of a column that is kept as a dictionary, once each row has its own.

    Raises:
        FormatError: it is kept in another short form, and might be more than may be.
    """
    name, values = column.path, max(column.values, 0)
    if PREFIXES in column.encodings:
        content.reserve(values * max(column.stored, 0), f"column {name!r}")
    content.reserve(before + 8 * values, f"column {name!r}")
    parquet, compute = arrow("pyarrow.parquet"), arrow("pyarrow.compute")
    with parquet.ParquetFile(group.path, filesystem=group.filesystem, read_dictionary=[name]) as file:
        table = file.read_row_group(group.row_groups[0].id, [name.split(".")[0]], use_threads=False)
    total = 0
    for part in table.column(0).chunks:
        while not isinstance(part, arrow().DictionaryArray) and arrow().types.is_nested(part.type):
            part = part.flatten()
            part = arrow().concat_arrays(part) if isinstance(part, list) and len(part) == 1 else part
            if isinstance(part, list):  # a structure of several texts
                return total + sum(p.nbytes for p in part)
        if isinstance(part, arrow().DictionaryArray):
            lengths = compute.binary_length(part.dictionary)
            total += compute.sum(lengths.take(part.indices)).as_py() or 0
        else:
            total += part.nbytes
    return total


__all__ = ["Footers", "content_of", "opened", "reading", "reserve"]
