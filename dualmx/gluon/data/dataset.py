"""Datasets: items by index; transform, filter, shard, take, sample."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...core.errors import ArgumentError, ArgumentTypeError
from ...io.recordio import MXIndexedRecordIO
from ...ndarray import NDArray, array
from ..pytree import is_numpy, to_np_class
from .batchify import as_argument, numpy_form, stack, to_host, worker_mode
from .sampler import FilterSampler, Sampler, SequentialSampler


class Dataset:
    """Base of datasets: define `__getitem__` and `__len__`.

    Example:
        >>> class Squares(Dataset):
        ...     def __len__(self):
        ...         return 10
        ...
        ...     def __getitem__(self, idx):
        ...         return idx**2
        >>> Squares().transform(lambda x: x + 1)[3]
        10
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # A subclass that only redefines __getitem__ must not be read past it.
        if "__getitem__" in cls.__dict__:
            for name in ("host_item", "host_batch"):
                if name not in cls.__dict__:
                    setattr(cls, name, Dataset.__dict__[name])

    def __getitem__(self, idx: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} must define __len__")

    def host_item(self, idx: int) -> Any:
        """Return item `idx` with NDArrays converted to NumPy."""
        return to_host(self[idx])

    def host_batch(self, indices: Sequence[int]) -> Any:
        """Return the batch of items that the default collation makes, with NumPy arrays."""
        return stack([self.host_item(i) for i in indices])

    def filter(self, fn: Callable[[Any], Any]) -> Dataset:
        """Return the items for which `fn(item)` is true."""
        return _SampledDataset(self, FilterSampler(fn, self))

    def shard(self, num_shards: int, index: int) -> Dataset:
        """Return part `index` of `num_shards` contiguous parts; the first ones get the items that are over.

        Raises:
            ArgumentError: no parts, or `index` outside of 0 to `num_shards - 1`.
        """
        if num_shards < 1:
            raise ArgumentError(f"shard: num_shards={num_shards}: expected 1 or more")
        if not 0 <= index < num_shards:
            raise ArgumentError(f"shard: index={index}: expected 0 to num_shards-1 = {num_shards - 1}")
        size, over = divmod(len(self), num_shards)
        return _SampledDataset(self, SequentialSampler(size + (index < over), size * index + min(index, over)))

    def take(self, count: int | None) -> Dataset:
        """Return the first `count` items, all of them for `None`."""
        if count is not None and count < 0:
            raise ArgumentError(f"take: count={count}: expected 0 or more, or None")
        return _SampledDataset(self, SequentialSampler(len(self) if count is None else min(count, len(self))))

    def sample(self, sampler: Sampler) -> Dataset:
        """Return the items that one pass of `sampler` visits, in its order."""
        if not isinstance(sampler, Sampler):
            raise ArgumentTypeError(f"sample: got {type(sampler).__name__}: expected a gluon.data.Sampler")
        return _SampledDataset(self, sampler)

    def transform(self, fn: Callable[..., Any], lazy: bool = True) -> Dataset:
        """Return the dataset of `fn(item)`, or `fn(*item)` where items are tuples.

        Args:
            fn: the transformation.
            lazy: compute at each access; otherwise once, now.
        """
        lazily = _LazyTransformDataset(self, fn)
        return lazily if lazy else SimpleDataset([lazily[i] for i in range(len(self))])

    def transform_first(self, fn: Callable[..., Any], lazy: bool = True) -> Dataset:
        """Like `transform`, on the first element of each tuple only."""
        return self.transform(_ApplyToFirst(fn), lazy)


class SimpleDataset(Dataset):
    """The items of a list, or of anything with `__getitem__` and `__len__`."""

    def __init__(self, data: Any):
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, idx: int) -> Any:
        return self._data[idx]


class ArrayDataset(Dataset):
    """Tuples of the items of several arrays, lists or datasets of one length; of a single one, just its items.

    Args:
        args: the arrays.

    Raises:
        ArgumentError: no array, or different lengths.

    Example:
        >>> ArrayDataset(np.arange(6).reshape(3, 2), [7, 8, 9])[1]
        (array([2, 3]), 8)
    """

    def __init__(self, *args: Any):
        if not args:
            raise ArgumentError("ArrayDataset: expected at least one array")
        lengths = [len(a) for a in args]
        if len(set(lengths)) > 1:
            raise ArgumentError(f"ArrayDataset: arrays have lengths {lengths}: expected one length")
        self._length = lengths[0]
        # Items are read on the host; a vector's items are NumPy scalars, as MXNet has it.
        self._host = [a.asnumpy() if isinstance(a, NDArray) else a for a in args]
        self._on_device = [isinstance(a, NDArray) and len(a.shape) > 1 for a in args]
        self._numpy = [is_numpy(a) for a in args]

    @cached_property
    def _data(self) -> list[Any]:
        """The arrays, of which vectors are NumPy arrays, for subclasses."""
        return [
            self._made(a, numpy) if device and not worker_mode.worker else a
            for a, device, numpy in zip(self._host, self._on_device, self._numpy, strict=True)
        ]

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, idx: int) -> Any:
        item: tuple[Any, ...] = tuple(
            self._made(a[idx], numpy) if device and not worker_mode.worker else a[idx]
            for a, device, numpy in zip(self._host, self._on_device, self._numpy, strict=True)
        )
        return item[0] if len(item) == 1 else item

    @staticmethod
    def _made(values: np.ndarray, numpy: bool) -> Any:
        made = array(values, dtype=values.dtype)
        return to_np_class(made) if numpy else made

    def host_item(self, idx: int) -> Any:
        item: tuple[Any, ...] = tuple(to_host(a[idx]) for a in self._host)
        return item[0] if len(item) == 1 else item

    def host_batch(self, indices: Sequence[int]) -> Any:
        rows = np.asarray(indices)
        batch = [a[rows] if isinstance(a, np.ndarray) else stack([to_host(a[i]) for i in indices]) for a in self._host]
        return batch if len(batch) > 1 else batch[0]


class RecordFileDataset(Dataset):
    """The records of an indexed record file, as bytes.

    Args:
        filename: the `.rec` file; the `.idx` file of the same name stands beside it.

    Raises:
        MXNetError: a file cannot be read.
    """

    def __init__(self, filename: str | os.PathLike[str]):
        self.filename = os.fspath(filename)
        self.idx_file = os.path.splitext(self.filename)[0] + ".idx"
        self._record = MXIndexedRecordIO(self.idx_file, self.filename, "r")

    def __len__(self) -> int:
        return len(self._record.keys)

    def __getitem__(self, idx: int) -> Any:
        return self._record.read_idx(self._record.keys[idx])


class _DownloadedDataset(Dataset):
    """Base of users' datasets whose `_get_data` puts files into the folder `_root` and sets `_data` and `_label`."""

    _data: Any = None
    _label: Any = None

    def __init__(self, root: str | os.PathLike[str], transform: Callable[..., Any] | None):
        self._root, self._transform = os.path.expanduser(root), transform
        os.makedirs(self._root, exist_ok=True)
        self._get_data()

    def _get_data(self) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define _get_data")

    def __len__(self) -> int:
        return len(self._label)

    def __getitem__(self, idx: int) -> Any:
        data, label = self._data[idx], self._label[idx]
        return (data, label) if self._transform is None else self._transform(data, label)


class _SampledDataset(Dataset):
    def __init__(self, dataset: Dataset, sampler: Sampler):
        self._dataset = dataset
        self._indices = list(sampler)

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, idx: int) -> Any:
        return self._dataset[self._indices[idx]]

    def host_item(self, idx: int) -> Any:
        return self._dataset.host_item(self._indices[idx])

    def host_batch(self, indices: Sequence[int]) -> Any:
        return self._dataset.host_batch([self._indices[i] for i in indices])


class _ApplyToFirst:
    """Applies a function to the first of its arguments."""

    def __init__(self, fn: Callable[..., Any]):
        self.fn = fn

    def __call__(self, first: Any, *rest: Any) -> Any:
        return (self.fn(first), *rest) if rest else self.fn(first)


class _LazyTransformDataset(Dataset):
    def __init__(self, dataset: Dataset, fn: Callable[..., Any]):
        self._data, self._fn = dataset, fn
        only_first = isinstance(fn, _ApplyToFirst)
        self._inner = inner = fn.fn if isinstance(fn, _ApplyToFirst) else fn
        # The library's own transforms compute in NumPy too, and some of them on whole batches.
        host = numpy_form(inner)
        self._on_host = _ApplyToFirst(host) if only_first and host is not None else host
        self._on_batches = host is not None and getattr(inner, "batched", False)

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, idx: int) -> Any:
        if worker_mode.worker:
            return self.host_item(idx)
        return _call(self._fn, self._data[idx], tuple)

    def host_item(self, idx: int) -> Any:
        if self._on_host is not None:
            return _call(self._on_host, self._data.host_item(idx), tuple)
        if worker_mode.worker:
            return to_host(_call(self._fn, as_argument(self._inner, self._data.host_item(idx)), tuple))
        return to_host(self[idx])

    def host_batch(self, indices: Sequence[int]) -> Any:
        if self._on_host is None or not self._on_batches:
            return super().host_batch(indices)
        batch = _call(self._on_host, self._data.host_batch(indices), list)
        return list(batch) if isinstance(batch, tuple) else batch


def _call(fn: Callable[..., Any], item: Any, several: type) -> Any:
    return fn(*item) if isinstance(item, several) else fn(item)


__all__ = ["ArrayDataset", "Dataset", "RecordFileDataset", "SimpleDataset"]
