"""Adapters between Gluon's data loaders and the iterators of `mx.io`."""

from __future__ import annotations

from typing import Any

from ..io import DataDesc, DataIter
from ..namespace import nd
from ..ndarray import NDArray


class DataLoaderIter(DataIter):
    """Iterate over a Gluon `DataLoader` of (data, label) pairs as Modules expect it.

    Args:
        loader: the loader; its first batch tells the shapes.
        data_name, label_name: names of the inputs.
        dtype: type of both.

    Example:
        >>> import dualmx as mx
        >>> rows = mx.gluon.data.ArrayDataset(mx.nd.ones((3, 2)), mx.nd.zeros(3))
        >>> [batch.pad for batch in DataLoaderIter(mx.gluon.data.DataLoader(rows, 2))]
        [0, 1]
    """

    def __init__(self, loader: Any, data_name: str = "data", label_name: str = "softmax_label", dtype: Any = "float32"):
        super().__init__()
        self._loader, self._dtype = loader, dtype
        self._rows = iter(loader)
        data, label = next(self._rows)
        self.batch_size = data.shape[0]
        self._data_descs = [DataDesc(data_name, data.shape, dtype)]
        self._label_descs = [DataDesc(label_name, label.shape, dtype)]
        self._batch: Any = None
        self.reset()

    @property
    def provide_data(self) -> list[DataDesc]:
        """Description of the data."""
        return self._data_descs

    @property
    def provide_label(self) -> list[DataDesc]:
        """Description of the labels."""
        return self._label_descs

    def reset(self) -> None:
        """Begin again."""
        self._rows = iter(self._loader)

    def iter_next(self) -> bool:
        """Move to the next batch."""
        self._batch = next(self._rows, None)
        return self._batch is not None

    def _filled(self, value: NDArray) -> NDArray:
        value = value.astype(self._dtype)
        missing = self.batch_size - value.shape[0]
        if not missing:
            return value
        return nd.concat(value, nd.zeros((missing, *value.shape[1:]), dtype=self._dtype), dim=0)

    def getdata(self) -> list[NDArray]:
        """The data of the batch, filled up with zeros."""
        return [self._filled(self._batch[0])]

    def getlabel(self) -> list[NDArray]:
        """The labels of the batch, filled up with zeros."""
        return [self._filled(self._batch[1])]

    def getpad(self) -> int:
        """Number of rows that fill up the batch."""
        return self.batch_size - self._batch[0].shape[0]

    def getindex(self) -> None:
        """Rows have no identities here."""


__all__ = ["DataLoaderIter"]
