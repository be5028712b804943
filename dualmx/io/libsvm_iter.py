"""`LibSVMIter`: csr batches from text files of `label index:value …` lines."""

from __future__ import annotations

import os
from array import array as Numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.dtypes import as_dtype
from ..core.errors import ArgumentError, FormatError, unreadable
from ..core.reader import Content
from ..ndarray import NDArray, array
from ..sparse import CSRNDArray
from .augment import parse_arg
from .csv_iter import RowIter, list_files
from .data_batch import DataDesc, overridable_property
from .recordio import check_shard


class LibSVMIter(RowIter):
    """Batches of the rows of a file in LibSVM format, as csr arrays.

    A line is `label index:value index:value …` with indices from 0. An incomplete last batch is filled with rows from
    the beginning, reported as `pad`, and the next epoch starts behind them.

    Args:
        data_libsvm: file, or directory of files that are read in order of their names.
        data_shape: (width,), one more than the greatest possible index.
        label_libsvm: file of the same format whose rows are the labels, as csr arrays; by default the label of a row is
            the number before its first index.
        label_shape: (width,) of the labels.
        num_parts, part_index: read one of this many equal parts.
        batch_size: rows in a batch.
        round_batch: only true: batches are always full.
        dtype: element type of data and labels, float32 by default.
        data_name, label_name: names in the descriptions.

    Raises:
        MXNetError: a file cannot be read. FormatError: a line has another format, or an index beyond the width.

    Example:
        >>> import dualmx as mx, pathlib
        >>> _ = pathlib.Path("a.libsvm").write_text("1 0:1.5 3:2\\n0 1:1\\n")
        >>> batch = next(mx.io.LibSVMIter("a.libsvm", data_shape=(4,), batch_size=2))
        >>> batch.data[0].asnumpy().tolist(), batch.label[0].asnumpy().tolist()
        ([[1.5, 0.0, 0.0, 2.0], [0.0, 1.0, 0.0, 0.0]], [1.0, 0.0])
    """

    def __init__(
        self,
        data_libsvm: str | os.PathLike[str],
        data_shape: int | Sequence[int],
        label_libsvm: str | os.PathLike[str] | None = None,
        label_shape: int | Sequence[int] = (1,),
        num_parts: int = 1,
        part_index: int = 0,
        batch_size: int = 1,
        round_batch: bool = True,
        prefetch_buffer: int = 4,
        dtype: Any = None,
        data_name: str = "data",
        label_name: str = "softmax_label",
        ctx: Any = None,
        **unknown: Any,
    ):
        super().__init__(parse_arg("LibSVMIter", "batch_size", batch_size, int), unknown)
        if self.batch_size < 1:
            raise ArgumentError(f"LibSVMIter: batch_size={batch_size}: expected 1 or more")
        if not parse_arg("LibSVMIter", "round_batch", round_batch, bool):
            raise ArgumentError("LibSVMIter: round_batch=False: only full batches are made; expected True")
        check_shard("LibSVMIter", num_parts, part_index)
        self._dtype = np.dtype(np.float32) if dtype is None else as_dtype(dtype)
        self._rows = _CsrRows(data_libsvm, _width("data_shape", data_shape), self._dtype)
        self._label_rows: _CsrRows | None = None
        if label_libsvm not in (None, "NULL"):
            self._label_rows = _CsrRows(label_libsvm, _width("label_shape", label_shape), self._dtype)
            if len(self._label_rows) != len(self._rows):
                raise FormatError(
                    f"LibSVMIter: {len(self._rows)} rows in {data_libsvm!r}, {len(self._label_rows)} in "
                    f"{label_libsvm!r}: expected the same number"
                )
        ends = np.linspace(0, len(self._rows), num_parts + 1).astype(int)
        part = np.arange(ends[part_index], ends[part_index + 1])
        if not len(part):
            raise FormatError(f"LibSVMIter: part {part_index} of {num_parts} of {str(data_libsvm)!r} has no rows")
        self._names = (data_name, label_name)
        self._begin(part)

    @overridable_property
    def provide_data(self) -> list[DataDesc]:
        return [DataDesc(self._names[0], (self.batch_size, self._rows.width), self._dtype.type)]

    @overridable_property
    def provide_label(self) -> list[DataDesc]:
        shape = (self.batch_size,) if self._label_rows is None else (self.batch_size, self._label_rows.width)
        return [DataDesc(self._names[1], shape, self._dtype.type)]

    def getdata(self) -> NDArray:
        return self._rows.take(self._now)

    def getlabel(self) -> NDArray:
        if self._label_rows is not None:
            return self._label_rows.take(self._now)
        return array(self._rows.labels[self._now], dtype=self._dtype)


class _CsrRows:
    """The rows of LibSVM files, in csr form on the host."""

    def __init__(self, where: Any, width: int, dtype: np.dtype):
        self.width = width
        labels: Numbers[float] = Numbers("d")
        values: Numbers[float] = Numbers("d")
        columns: Numbers[int] = Numbers("q")
        pointer: Numbers[int] = Numbers("q", [0])
        for file in list_files(where):
            content = Content(b"", f"LibSVMIter: {str(file)!r}", "lines of 'label index:value …'")
            try:
                with content.parsing(UnicodeDecodeError), open(file, encoding="utf-8") as lines:
                    for number, line in enumerate(lines, 1):
                        words = line.split("#", 1)[0].split()
                        if words:
                            labels.append(_parse(words, content, number, width, columns, values))
                            pointer.append(len(columns))
            except OSError as e:
                raise unreadable(f"LibSVMIter: cannot read {str(file)!r}", e) from e
        if not labels:
            raise Content(b"", f"LibSVMIter: {str(where)!r}", "lines of 'label index:value …'").error("no rows")
        self.labels = np.asarray(labels).astype(dtype)
        self.columns, self.values = np.asarray(columns), np.asarray(values).astype(dtype)
        self.pointer = np.asarray(pointer)

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: np.ndarray) -> CSRNDArray:
        """Return the rows as a csr array, padded to few lengths so that nothing is compiled again."""
        begins, lengths = self.pointer[rows], np.diff(self.pointer)[rows]
        ends = np.concatenate([[0], np.cumsum(lengths)])
        at = np.arange(ends[-1]) + np.repeat(begins - ends[:-1], lengths)
        return CSRNDArray.of_host((len(rows), self.width), self.values[at], self.columns[at], ends, None)


def _parse(
    words: list[str], content: Content, number: int, width: int, columns: Numbers[int], values: Numbers[float]
) -> float:
    """Append the indices and values of a line; returns its label."""
    try:
        for word in words[1:]:
            index, value = word.split(":")
            column = int(index)
            if not 0 <= column < width:
                raise content.error(f"line {number}: index {column}", None, f"0 to {width - 1}, by data_shape")
            columns.append(column)
            values.append(float(value))
        # A file of labels may leave out the number in front, which it has no use for.
        return float(words[0].partition(":")[0])
    except FormatError:
        raise
    except ValueError:
        raise content.error(f"line {number}: {' '.join(words)[:80]!r}") from None


def _width(what: str, shape: Any) -> int:
    lengths = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if len(lengths) != 1 or int(lengths[0]) < 1:
        raise ArgumentError(f"LibSVMIter: {what}={shape!r}: expected one positive length")
    return int(lengths[0])
