"""`CSVIter`: batches of rows of CSV files, in file order."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core.dtypes import as_dtype
from ..core.errors import ArgumentError, FormatError, unreadable
from ..core.reader import Content
from ..ndarray import NDArray, array
from ..op.schema import Shape
from .augment import parse_arg
from .data_batch import DataDesc, overridable_property
from .data_iter import MXDataIter
from .recordio import check_shard, shard_indices


class RowIter(MXDataIter):
    """Base of iterators over rows: call `_begin` at the end of `__init__`, and give the rows of the numbers `_now`.

    With `round_batch` an incomplete last batch is filled with rows from the beginning, reported as `pad`, and the
    next epoch starts behind them. Without it the filling is what the batch before left there.
    """

    def _begin(self, numbers: np.ndarray, round_batch: bool = True) -> None:
        """Begin the first epoch of the rows `numbers`."""
        self._numbers, self.round_batch = numbers, round_batch
        self._start = 0  # rows of this epoch that the last batch of the epoch before has used
        self._at = -self.batch_size
        self._now = np.zeros(self.batch_size, np.int64)
        self._filled = 0

    def reset(self) -> None:
        self._at = self._start - self.batch_size

    def iter_next(self) -> bool:
        self._at += self.batch_size
        n = len(self._numbers)
        if self._at >= n:
            return False
        rows = np.arange(self._at, self._at + self.batch_size)
        self._filled = max(int(rows[-1]) + 1 - n, 0)
        now = self._numbers[rows % n]
        self._now = now if self.round_batch else np.where(rows < n, now, self._now)
        self._start = self._filled % n if self.round_batch else 0
        return True

    def getpad(self) -> int:
        return self._filled

    def getindex(self) -> np.ndarray:
        return self._now.astype(np.uint64)


def list_files(where: Any) -> list[Path]:
    """A file, or those of a directory in the order of their names."""
    path = Path(where)
    return sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]


class CSVIter(RowIter):
    """Batches of the rows of a CSV file without header.

    With `round_batch` an incomplete last batch is filled with rows from the beginning, reported as `pad`, and the
    next epoch starts behind them. Without it the filling is what the batch before left there.

    Args:
        data_csv: file, or directory of files that are read in order of their names.
        data_shape: shape of one row's data.
        label_csv: file or directory of labels; all labels are 0 without it.
        label_shape: shape of one row's label.
        batch_size: rows in a batch.
        round_batch: see above.
        dtype: element type of data and labels, float32 by default.
        data_name, label_name: names in the descriptions.
        num_parts, part_index: this worker's share; every row is in one part.

    Raises:
        MXNetError: a file cannot be read. FormatError: a row has not as many numbers as its shape.
    """

    def __init__(
        self,
        data_csv: str | os.PathLike[str],
        data_shape: Sequence[int],
        label_csv: str | os.PathLike[str] | None = None,
        label_shape: Sequence[int] = (1,),
        batch_size: int = 1,
        round_batch: bool = True,
        prefetch_buffer: int = 4,
        dtype: Any = None,
        data_name: str = "data",
        label_name: str = "softmax_label",
        ctx: Any = None,
        num_parts: int = 1,
        part_index: int = 0,
        **unknown: Any,
    ):
        super().__init__(parse_arg("CSVIter", "batch_size", batch_size, int), unknown)
        if self.batch_size < 1:
            raise ArgumentError(f"CSVIter: batch_size={batch_size}: expected 1 or more")
        self._dtype = np.dtype(np.float32) if dtype is None else as_dtype(dtype)
        self._rows = _read(data_csv, parse_arg("CSVIter", "data_shape", data_shape, Shape), self._dtype)
        label_shape = tuple(parse_arg("CSVIter", "label_shape", label_shape, Shape))
        if label_csv in (None, "NULL"):
            self._labels = np.zeros((len(self._rows), *label_shape), self._dtype)
        else:
            self._labels = _read(label_csv, label_shape, self._dtype)
        if len(self._labels) != len(self._rows):
            raise FormatError(
                f"CSVIter: {len(self._rows)} rows in {data_csv!r}, {len(self._labels)} in {label_csv!r}: "
                "expected the same number"
            )
        if label_shape == (1,):
            self._labels = self._labels[:, 0]
        check_shard("CSVIter", num_parts, part_index)
        mine = shard_indices(len(self._rows), num_parts, part_index)
        if not mine:
            raise ArgumentError(f"CSVIter: part {part_index} of {num_parts} of {len(self._rows)} rows is empty")
        self._rows, self._labels = self._rows[mine.start : mine.stop], self._labels[mine.start : mine.stop]
        self._names = (data_name, label_name)
        self._begin(np.arange(len(self._rows)), parse_arg("CSVIter", "round_batch", round_batch, bool))

    @overridable_property
    def provide_data(self) -> list[DataDesc]:
        return [DataDesc(self._names[0], (self.batch_size, *self._rows.shape[1:]), self._dtype.type)]

    @overridable_property
    def provide_label(self) -> list[DataDesc]:
        return [DataDesc(self._names[1], (self.batch_size, *self._labels.shape[1:]), self._dtype.type)]

    def getdata(self) -> NDArray:
        return array(self._rows[self._now], dtype=self._dtype)

    def getlabel(self) -> NDArray:
        return array(self._labels[self._now], dtype=self._dtype)


def _table(file: Path, dtype: np.dtype) -> np.ndarray:
    try:
        return np.loadtxt(file, dtype, delimiter=",", ndmin=2)
    except ValueError:
        if dtype.kind not in "iu":
            raise
        # Whole numbers may be written as others, "3.0e+00"; a fraction is cut.
        return np.loadtxt(file, np.float64, delimiter=",", ndmin=2).astype(dtype)


def _read(where: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    parts = []
    for file in list_files(where):
        content = Content(b"", f"CSVIter: {str(file)!r}", "rows of numbers with commas between")
        try:
            with content.parsing(ValueError, OverflowError), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an empty file is reported below, with its name
                parts.append(_table(file, dtype))
        except OSError as e:
            raise unreadable(f"CSVIter: cannot read {str(file)!r}", e) from e
        width = math.prod(shape)
        if parts[-1].size and parts[-1].shape[1] != width:
            raise content.error(f"rows of {parts[-1].shape[1]} numbers", None, f"{width} for shape {shape}")
    parts = [p for p in parts if p.size]
    if not parts:
        raise Content(b"", f"CSVIter: {str(where)!r}", "rows of numbers").error("no rows")
    return np.concatenate(parts).reshape(-1, *shape)


__all__ = ["RowIter", "list_files"]
