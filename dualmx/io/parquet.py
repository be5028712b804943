"""Parquet files: `ParquetReader` yields columns, `ParquetIter` is a data iterator."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from ..core.argcheck import integer
from ..core.dtypes import as_dtype
from ..core.errors import ArgumentError, FormatError
from ..core.reader import Content
from ..ndarray import NDArray, array
from .arrow_columns import arrow, joined, to_numpy
from .data_batch import DataDesc, overridable_property
from .data_iter import DataIter
from .parquet_files import Footers, content_of, opened, reading, reserve
from .recordio import check_shard, shard_indices

Columns = dict[str, np.ndarray]
Names = str | Sequence[str] | Mapping[str, str | Sequence[str]]


class _RowRange(NamedTuple):
    """Rows of a row group.

    Attributes:
        group: the row group, as a fragment of the data set.
        start, stop: which of its rows.
        every: whether these are all.
    """

    group: Any
    start: int
    stop: int
    every: bool


class ParquetReader:
    """Reads rows of Parquet files, of which a few row groups are in memory at a time.

    Lists of equal lengths, tensors and vectors of Spark become arrays with more axes. So do bytes that are `.npy` files
    or images, as Petastorm stores them; images are (height, width, channels), red first. What differs in shape from row
    to row, text and other bytes are arrays of objects.

    Args:
        path: a file, a directory (whose `name=value` directories are columns, as Spark writes them), or a list of
            files.
        columns: names of the columns to read; all by default.
        where: conditions `(column, op, value)` that rows meet, with op one of `==`, `!=`, `<`, `<=`, `>`, `>=`, `in`,
            `not in`; or a list of such lists, one of which they meet. Row groups that cannot hold such rows are
            skipped.
        shuffle: draw a new order in each epoch: of the row groups, and of the rows of `mix` of them.
        seed: of these orders.
        mix: row groups that are in memory together.
        num_parts, part_index: this worker's share of the rows; every row is in one part.
        decode: see above; without it bytes stay bytes.
        transform: called with the columns of some rows, on the reading thread; returns those that take their place.

    Attributes:
        num_rows: rows of this part, before `where`.
        epoch: how often the rows were read, which chooses the order.

    Raises:
        ArgumentError: an unknown column or condition, or an empty part. MXNetError: a file cannot be read, or pyarrow
            is not installed. FormatError: no Parquet files.

    Example:
        >>> import os, tempfile
        >>> import pyarrow as pa, pyarrow.parquet as pq
        >>> path = os.path.join(tempfile.mkdtemp(), "rows.parquet")
        >>> pq.write_table(pa.table({"x": [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], "y": [0, 1, 0]}), path)
        >>> [batch["x"].shape for batch in ParquetReader(path).batches(2)]
        [(2, 2), (1, 2)]
        >>> [int(row["y"]) for row in ParquetReader(path, where=[("y", "==", 0)])]
        [0, 0]
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        columns: Sequence[str] | None = None,
        where: Sequence[Any] | None = None,
        shuffle: bool = False,
        seed: int = 0,
        mix: int = 4,
        num_parts: int = 1,
        part_index: int = 0,
        decode: bool = True,
        transform: Callable[[Columns], Columns] | None = None,
    ):
        check_shard("ParquetReader", num_parts, part_index)
        if integer("ParquetReader", "mix", mix) < 1:
            raise ArgumentError(f"ParquetReader: mix={mix}: expected 1 or more row groups")
        self._data, groups = opened(path)
        known = self._data.schema.names
        self.columns = list(known if columns is None else columns)
        self._where, asked = _filter_expression(where)
        for name in (*self.columns, *asked):
            if name not in known:
                raise ArgumentError(f"ParquetReader: no column {name!r} in {path!r}; there are {', '.join(known)}")
        self._footers: Footers = {}
        self._sizes: dict[str, int] = {}
        self._read = list(dict.fromkeys((*self.columns, *asked)))
        self._shuffle, self._seed, self._mix = shuffle, integer("ParquetReader", "seed", seed), mix
        self._decode, self._transform = decode, transform
        total = sum(g.row_groups[0].num_rows for g in groups)
        mine = shard_indices(total, num_parts, part_index)
        if not mine:
            raise ArgumentError(f"ParquetReader: part {part_index} of {num_parts} of {total} rows is empty")
        self._pieces = list(_select_ranges(groups, mine))
        self.num_rows, self.epoch = len(mine), 0

    def blocks(self) -> Iterator[Columns]:
        """Give the rows of an epoch as they are read: the columns of one row group, or of `mix` with `shuffle`."""
        draw = np.random.default_rng([self._seed, self.epoch])
        self.epoch += 1
        pieces, step = self._pieces, 1
        if self._shuffle:
            pieces, step = [pieces[i] for i in draw.permutation(len(pieces))], self._mix
        together = [pieces[i : i + step] for i in range(0, len(pieces), step)]
        thread = ThreadPoolExecutor(1, "dualmx-parquet")
        try:
            ahead = thread.submit(self._load, together[0])
            for following in (*together[1:], None):
                block = ahead.result()
                if following is not None:
                    ahead = thread.submit(self._load, following)
                count = _rows(block)
                if self._shuffle:
                    order = draw.permutation(count)
                    block = {name: values[order] for name, values in block.items()}
                if count:
                    yield block
        finally:
            # Not joined: the garbage collector may end this where its thread holds the lock that joining takes.
            thread.shutdown(wait=False, cancel_futures=True)

    def batches(self, batch_size: int, discard: bool = False) -> Iterator[Columns]:
        """Give the rows of an epoch, so many at a time; the last ones may be fewer, unless they are discarded."""
        if integer("ParquetReader.batches", "batch_size", batch_size) < 1:
            raise ArgumentError(f"ParquetReader.batches: batch_size={batch_size}: expected 1 or more")
        left = yield from _batched(self.blocks(), batch_size)
        if left and not discard:
            yield left

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Give the rows of an epoch, one at a time."""
        for block in self.blocks():
            for i in range(_rows(block)):
                yield {name: values[i] for name, values in block.items()}

    def _load(self, pieces: Sequence[_RowRange]) -> Columns:
        parts = []
        for piece in pieces:
            content = content_of(piece.group, self._sizes)
            reserve(content, piece.group, self._read, self._footers)
            table = self._table(piece, content)
            if len(table):
                with content.parsing(Exception):  # damaged pages are seen when columns are taken apart
                    parts.append({name: to_numpy(name, table[name], self._decode) for name in self.columns})
        block = _concat_blocks(parts) if parts else {name: np.empty(0) for name in self.columns}
        if not parts or self._transform is None:
            return block
        return _checked(self._transform(block))

    def _table(self, piece: _RowRange, content: Content) -> Any:
        """Read the rows of a row group that satisfy the conditions."""
        condition = self._where if piece.every else None  # which a share of the rows is taken before
        with reading(content):
            table = piece.group.to_table(schema=self._data.schema, columns=self._read, filter=condition)
            if not piece.every:
                table = table.slice(piece.start, piece.stop - piece.start)
                table = table if self._where is None else table.filter(self._where)
            table.validate()
        return table


class ParquetIter(DataIter):
    """Batches of the rows of Parquet files.

    Args:
        path: see `ParquetReader`.
        data: a column, a list of columns (each an input of its name), or a dict of names to a column or to columns that
            are put side by side.
        label: likewise, or None.
        batch_size: rows in a batch.
        shuffle, seed, mix, where, num_parts, part_index, decode, transform: see `ParquetReader`.
        last_batch_handle: `"pad"` fills up an incomplete last batch with rows from the beginning of the epoch and
            reports `pad`, `"discard"` drops it, `"roll_over"` opens the next epoch with the rows left over.
        dtype: element type of data and labels; None for those of the columns.
        data_name, label_name: names of a single column.

    Raises:
        ArgumentError, MXNetError, FormatError: see `ParquetReader`; or rows without numbers, or of different shapes.

    Example:
        >>> import os, tempfile
        >>> import pyarrow as pa, pyarrow.parquet as pq
        >>> path = os.path.join(tempfile.mkdtemp(), "rows.parquet")
        >>> pq.write_table(pa.table({"a": [0.0, 1.0, 2.0], "b": [3.0, 4.0, 5.0], "y": [0, 1, 0]}), path)
        >>> it = ParquetIter(path, {"data": ["a", "b"]}, "y", batch_size=2)
        >>> [(batch.data[0].shape, batch.pad) for batch in it]
        [((2, 2), 0), ((2, 2), 1)]
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        data: Names,
        label: Names | None = None,
        batch_size: int = 1,
        shuffle: bool = False,
        last_batch_handle: str = "pad",
        dtype: Any = "float32",
        seed: int = 0,
        mix: int = 4,
        where: Sequence[Any] | None = None,
        num_parts: int = 1,
        part_index: int = 0,
        decode: bool = True,
        transform: Callable[[Columns], Columns] | None = None,
        data_name: str = "data",
        label_name: str = "softmax_label",
    ):
        super().__init__(integer("ParquetIter", "batch_size", batch_size))
        if self.batch_size < 1:
            raise ArgumentError(f"ParquetIter: batch_size={batch_size}: expected 1 or more")
        if last_batch_handle not in ("pad", "discard", "roll_over"):
            raise ArgumentError(
                f"ParquetIter: last_batch_handle={last_batch_handle!r}: expected 'pad', 'discard' or 'roll_over'"
            )
        self.last_batch_handle = last_batch_handle
        self._dtype = None if dtype is None else as_dtype(dtype)
        self._data, self._label = _named(data, data_name), {} if label is None else _named(label, label_name)
        asked = [c for columns in (*self._data.values(), *self._label.values()) for c in columns]
        read = None if transform is not None else list(dict.fromkeys(asked))
        self._reader = ParquetReader(path, read, where, shuffle, seed, mix, num_parts, part_index, decode, transform)
        self._left: Columns = {}
        self._pad = self._filled = 0
        self._begin()
        if self._next is None:
            raise ArgumentError(
                f"ParquetIter: part {part_index} of {num_parts} of {path!r} holds no batch of such rows"
            )
        for name in asked:
            if name not in self._next:
                raise ArgumentError(f"ParquetIter: transform gave no column {name!r}, but {', '.join(self._next)}")
        self._shapes = [self._described(names, self._next) for names in (self._data, self._label)]

    @overridable_property
    def provide_data(self) -> list[DataDesc]:
        return self._shapes[0]

    @overridable_property
    def provide_label(self) -> list[DataDesc]:
        return self._shapes[1]

    def _described(self, names: dict[str, list[str]], batch: Columns) -> list[DataDesc]:
        return [DataDesc(name, a.shape, a.dtype) for name, a in zip(names, self._arrays(names, batch), strict=True)]

    def _begin(self) -> None:
        self._batches = self._epoch()
        self._now: Columns = {}
        self._next = next(self._batches, None)

    def _epoch(self) -> Iterator[Columns]:
        first, left = None, self._left
        self._left = {}
        parts = _batched(self._reader.blocks(), self.batch_size, left)
        while True:
            try:
                batch = next(parts)
            except StopIteration as end:
                last: Columns = end.value
                break
            if first is None and self.last_batch_handle == "pad":
                first = {name: values.copy() for name, values in batch.items()}
            yield batch
        if not last or self.last_batch_handle == "discard":
            return
        if self.last_batch_handle == "roll_over":
            self._left = last
            return
        beginning = first if first is not None else last
        rows = np.arange(self.batch_size - _rows(last)) % _rows(beginning)
        self._pad = len(rows)
        yield _concat_blocks([last, {name: values[rows] for name, values in beginning.items()}])

    def reset(self) -> None:
        self._begin()

    def iter_next(self) -> bool:
        if self._next is None:
            return False
        self._now, self._filled = self._next, self._pad
        self._pad = 0
        self._next = next(self._batches, None)
        return True

    def getdata(self) -> list[NDArray]:
        return self._arrays(self._data, self._now)

    def getlabel(self) -> list[NDArray]:
        return self._arrays(self._label, self._now)

    def getpad(self) -> int:
        return self._filled

    def _arrays(self, names: dict[str, list[str]], batch: Columns) -> list[NDArray]:
        return [self._array([batch[c] for c in columns], columns) for columns in names.values()]

    def _array(self, values: list[np.ndarray], columns: list[str]) -> NDArray:
        for name, one in zip(columns, values, strict=True):
            if one.dtype.kind not in "biuf":
                what = "text, bytes or rows of different shapes" if one.dtype == object else str(one.dtype)
                raise FormatError(f"ParquetIter: column {name!r}: {what}: expected numbers; `transform` can make some")
        wide = [v.reshape(len(v), -1) for v in values] if len(values) > 1 else values
        found = np.concatenate(wide, axis=1) if len(values) > 1 else values[0]
        return array(found, dtype=found.dtype if self._dtype is None else self._dtype)


def _filter_expression(where: Sequence[Any] | None) -> tuple[Any, list[str]]:
    """An expression of conditions, and the columns that it reads."""
    if where is None:
        return None, []
    lists = where if where and all(isinstance(one, list) for one in where) else [where]
    conditions = [where] if isinstance(where, str) or not where else [one for some in lists for one in some]
    for one in conditions:
        if not (isinstance(one, (tuple, list)) and len(one) == 3 and isinstance(one[0], str)):
            raise ArgumentError(f"ParquetReader: where={one!r}: expected (column, op, value), such as ('x', '>', 0)")
    try:
        condition = arrow("pyarrow.parquet").filters_to_expression([[tuple(one) for one in some] for some in lists])
    except (ValueError, TypeError, arrow().ArrowException) as e:
        raise ArgumentError(f"ParquetReader: where={where!r}: {e}") from None
    return condition, [one[0] for one in conditions]


def _select_ranges(groups: Sequence[Any], mine: range) -> Iterator[_RowRange]:
    """Return the row groups, or parts of them, that contain the rows `mine` of all."""
    at = 0
    for group in groups:
        count = group.row_groups[0].num_rows
        start, stop = max(mine.start - at, 0), min(mine.stop - at, count)
        if start < stop:
            yield _RowRange(group, start, stop, stop - start == count)
        at += count


def _rows(block: Columns) -> int:
    return len(next(iter(block.values()), ()))


def _concat_blocks(parts: Sequence[Columns]) -> Columns:
    return parts[0] if len(parts) == 1 else {name: joined([p[name] for p in parts]) for name in parts[0]}


def _batched(blocks: Iterator[Columns], size: int, left: Columns | None = None) -> Generator[Columns, None, Columns]:
    """Give the rows of blocks `size` at a time, after those left before; returns those left at the end."""
    left = left or {}
    for block in blocks:
        count, at = _rows(block), 0
        if left:
            at = min(size - _rows(left), count)
            left = _concat_blocks([left, {name: values[:at] for name, values in block.items()}])
            if _rows(left) == size:
                yield left
                left = {}
        while count - at >= size:
            yield {name: values[at : at + size] for name, values in block.items()}
            at += size
        if at < count:
            left = {name: values[at:].copy() for name, values in block.items()}  # which keeps no block in memory
    return left


def _checked(block: Any) -> Columns:
    """What a user's function returned, if it is columns of equally many rows."""
    if isinstance(block, Mapping) and all(isinstance(v, np.ndarray) and v.ndim for v in block.values()):
        if len({len(v) for v in block.values()}) == 1:
            return dict(block)
    raise ArgumentError("ParquetReader: transform: expected a dict of NumPy arrays with equally many rows back")


def _named(columns: Names, name: str) -> dict[str, list[str]]:
    """Names of inputs, each with its columns."""
    if isinstance(columns, str):
        return {name: [columns]}
    pairs = columns.items() if isinstance(columns, Mapping) else [(c, c) for c in columns]
    return {n: [c] if isinstance(c, str) else list(c) for n, c in pairs}


__all__ = ["ParquetIter", "ParquetReader"]
