"""`NDArrayIter`: batches of arrays in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.argcheck import integer
from ..core.errors import ArgumentError
from ..ndarray import NDArray, array
from .data_batch import DataBatch, DataDesc, named_arrays, overridable_property
from .data_iter import DataIter
from .recordio import check_shard, shard_indices


class NDArrayIter(DataIter):
    """Iterates over arrays in memory.

    NumPy arrays become float32, NDArrays keep their dtype. Names are `data` and `softmax_label`; several inputs in a
    list are called `_0_data`, `_1_data`, …; a dict names them itself.

    Args:
        data: an array, a list of arrays, or a dict of name to array; rows along axis 0.
        label: likewise; may be `None`.
        batch_size: rows in a batch.
        shuffle: draw a new order for every epoch, with NumPy's global generator.
        last_batch_handle: `"pad"` wraps around and reports `pad`, `"discard"` drops an incomplete batch,
            `"roll_over"` opens the next epoch with the rows left over.
        data_name, label_name: names of inputs that have none.
        layout: layout in the descriptions.
        num_parts, part_index: this worker's share of the rows; every row is in one part.

    Raises:
        ArgumentError: different numbers of rows, no rows, or an unknown `last_batch_handle`.

    Example:
        >>> it = NDArrayIter(np.zeros((5, 2)), np.arange(5), batch_size=2)
        >>> [(b.data[0].shape, b.pad) for b in it]
        [((2, 2), 0), ((2, 2), 0), ((2, 2), 1)]
    """

    def __init__(
        self,
        data: Any,
        label: Any = None,
        batch_size: int = 1,
        shuffle: bool = False,
        last_batch_handle: str = "pad",
        data_name: str = "data",
        label_name: str = "softmax_label",
        layout: str = "NCHW",
        num_parts: int = 1,
        part_index: int = 0,
    ):
        super().__init__(integer("NDArrayIter", "batch_size", batch_size))
        if last_batch_handle not in ("pad", "discard", "roll_over"):
            raise ArgumentError(
                f"NDArrayIter: last_batch_handle={last_batch_handle!r}: expected 'pad', 'discard' or 'roll_over'"
            )
        if self.batch_size < 1:
            raise ArgumentError(f"NDArrayIter: batch_size={batch_size}: expected 1 or more")
        self._data = [(n, _host(v)) for n, v in named_arrays(data, data_name, False)]
        self._label = [(n, _host(v)) for n, v in named_arrays(label, label_name, True)]
        rows = {n: v.shape[0] if v.ndim else 0 for n, v in self._data + self._label}
        self.num_data = rows[self._data[0][0]]
        if set(rows.values()) != {self.num_data} or not self.num_data:
            raise ArgumentError(f"NDArrayIter: numbers of rows {rows}: expected the same, at least 1, for all arrays")
        check_shard("NDArrayIter", num_parts, part_index)
        if num_parts > 1:
            mine = shard_indices(self.num_data, num_parts, part_index)
            if not mine:
                raise ArgumentError(f"NDArrayIter: part {part_index} of {num_parts} of {self.num_data} rows is empty")
            self._data, self._label = (
                [(n, v[mine.start : mine.stop]) for n, v in pairs] for pairs in (self._data, self._label)
            )
            self.num_data = len(mine)
        self.num_source = len(self._data)
        self.shuffle, self.last_batch_handle, self.layout = shuffle, last_batch_handle, layout
        self.idx = np.arange(self.num_data)
        self._order = self.idx.copy()  # rows in the order of this epoch
        self._ended = False
        self._left = self.idx[:0]  # rows of the last epoch that open the next one
        self.cursor = -self.batch_size
        self.reset()

    @property
    def data(self) -> list[tuple[str, NDArray]]:
        """`(name, array)` of the inputs."""
        return [(n, array(v, dtype=v.dtype)) for n, v in self._data]

    @data.setter
    def data(self, pairs: Sequence[tuple[str, Any]]) -> None:
        self._data = [(n, _host(v)) for n, v in pairs]

    @property
    def label(self) -> list[tuple[str, NDArray]]:
        """`(name, array)` of the labels."""
        return [(n, array(v, dtype=v.dtype)) for n, v in self._label]

    @label.setter
    def label(self, pairs: Sequence[tuple[str, Any]]) -> None:
        self._label = [(n, _host(v)) for n, v in pairs]

    @property
    def data_list(self) -> list[NDArray]:
        """The arrays of the inputs, then those of the labels."""
        return [v for _, v in (*self.data, *self.label)]

    @overridable_property
    def provide_data(self) -> list[DataDesc]:
        return self._describe(self._data)

    @overridable_property
    def provide_label(self) -> list[DataDesc]:
        return self._describe(self._label)

    def _describe(self, pairs: list[tuple[str, np.ndarray]]) -> list[DataDesc]:
        return [DataDesc(n, (self.batch_size, *v.shape[1:]), v.dtype.type, self.layout) for n, v in pairs]

    def hard_reset(self) -> None:
        """Return to the beginning, forgetting rows that were to be rolled over."""
        self._left = self.idx[:0]
        self._restart()

    def reset(self) -> None:
        """Return to the beginning; with `roll_over`, rows left over come first if the epoch has just ended."""
        if not self._ended:
            self._left = self.idx[:0]
        self._restart()

    def _restart(self) -> None:
        if self.shuffle:
            # MXNet draws each order relative to the last one; the same seed gives the same epochs.
            np.random.shuffle(self.idx)
            self._order = self._order[self.idx]
        self._ended = False
        self.cursor = -self.batch_size - len(self._left)

    def next(self) -> DataBatch:
        """Return the next batch, without index."""
        if not self.iter_next():
            raise StopIteration
        return DataBatch(self.getdata(), self.getlabel(), self.getpad())

    def iter_next(self) -> bool:
        if self._ended:
            return False
        self.cursor += self.batch_size
        end = self.cursor + self.batch_size
        if end <= self.num_data or self.last_batch_handle == "pad":
            if self.cursor >= 0:
                self._left = self._left[:0]
            self._ended = self.cursor >= self.num_data
            return not self._ended
        self._ended = True
        if self.last_batch_handle == "roll_over":
            kept = self._left if self.cursor < 0 else self._left[:0]
            self._left = np.concatenate([kept, self._order[max(self.cursor, 0) :]])
        return False

    def _rows(self) -> slice | np.ndarray:
        c, end = self.cursor, self.cursor + self.batch_size
        if c < 0:
            return np.concatenate([self._left, self._order[:end]])
        if end <= self.num_data:
            return self._order[c:end] if self.shuffle else slice(c, end)
        return self._order[np.arange(c, end) % self.num_data]

    def getdata(self) -> list[NDArray]:
        rows = self._rows()
        return [array(v[rows], dtype=v.dtype) for _, v in self._data]

    def getlabel(self) -> list[NDArray]:
        rows = self._rows()
        return [array(v[rows], dtype=v.dtype) for _, v in self._label]

    def getpad(self) -> int:
        if self.last_batch_handle == "pad":
            return max(self.cursor + self.batch_size - self.num_data, 0)
        return max(-self.cursor, 0) if self.last_batch_handle == "roll_over" else 0


def _host(value: Any) -> np.ndarray:
    if isinstance(value, NDArray):
        return value.asnumpy()
    return np.ascontiguousarray(value, dtype=np.float32)
