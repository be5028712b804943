"""Batches of the rows of a text file, in their order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .iterator import MXDataIter


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


__all__ = ["RowIter", "list_files"]
