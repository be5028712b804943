"""`DataIter`, the iterator protocol, and its wrappers `ResizeIter` and `PrefetchingIter`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ..core.argcheck import require_instance
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError
from .data_batch import DataBatch, DataDesc, overridable_property, parse_descs


class DataIter:
    """Base of batch iterators: define `iter_next` and the getters, or override `next`.

    Args:
        batch_size: rows in a batch.

    Example:
        >>> batches = mx.io.NDArrayIter(mx.nd.zeros((4, 2)), batch_size=2)
        >>> [batch.data[0].shape for batch in batches]
        [(2, 2), (2, 2)]
    """

    def __init__(self, batch_size: int = 0):
        self.batch_size = batch_size

    def __iter__(self) -> DataIter:
        return self

    def __next__(self) -> DataBatch:
        return self.next()

    def reset(self) -> None:
        """Return to the beginning of the data."""

    def next(self) -> DataBatch:
        """Return the next batch; `StopIteration` at the end of the epoch."""
        if not self.iter_next():
            raise StopIteration
        return DataBatch(self.getdata(), self.getlabel(), self.getpad(), self.getindex())

    def iter_next(self) -> bool:
        """Move to the next batch; false at the end of the epoch."""
        return False

    def getdata(self) -> Any:
        """Inputs of the current batch."""
        return []

    def getlabel(self) -> Any:
        """Labels of the current batch."""
        return []

    def getindex(self) -> Any:
        """Identities of the rows of the current batch, `None` if unknown."""
        return None

    def getpad(self) -> int | None:
        """How many rows at the end of the current batch only fill it up."""
        return 0

    @overridable_property
    def provide_data(self) -> Sequence[Any]:
        """`DataDesc`s of the inputs."""
        return []

    @overridable_property
    def provide_label(self) -> Sequence[Any]:
        """`DataDesc`s of the labels."""
        return []


class MXDataIter(DataIter):
    """Base of the iterators over files: one input and one label, which the getters return as they are, not in lists.

    Args:
        batch_size: rows in a batch.
        unknown: arguments that mean nothing here, of which the user is warned; MXNet takes any.
    """

    _began = _skips_load = False

    def __init__(self, batch_size: int = 0, unknown: Iterable[str] = ()):
        super().__init__(batch_size)
        names = ", ".join(unknown)
        if names:
            warnings.warn(f"{type(self).__name__}: there is no argument {names}: ignored", stacklevel=3)

    def debug_skip_load(self) -> None:
        """From now on return the current batch instead of loading the next, to measure a loop without loading."""
        self._skips_load = True

    def next(self) -> DataBatch:
        if not (self._skips_load and self._began) and not self.iter_next():
            raise StopIteration
        self._began = True
        return DataBatch([self.getdata()], [self.getlabel()], self.getpad(), self.getindex())


class _CurrentBatchIter(DataIter):
    """An iterator whose getters read the batch that `iter_next` left in `current_batch`."""

    current_batch: DataBatch | None = None

    def next(self) -> DataBatch:
        if not self.iter_next():
            raise StopIteration
        return self._batch

    @property
    def _batch(self) -> DataBatch:
        if self.current_batch is None:
            raise MXNetError(f"{type(self).__name__}: no batch yet: call next() or iter_next() first")
        return self.current_batch

    def getdata(self) -> list[Any]:
        return list(self._batch.data)

    def getlabel(self) -> list[Any]:
        return list(self._batch.label or ())

    def getindex(self) -> Any:
        return self._batch.index

    def getpad(self) -> int | None:
        return self._batch.pad


class ResizeIter(_CurrentBatchIter):
    """Makes an epoch of `size` batches, whatever the length of the iterator inside.

    Args:
        data_iter: the iterator to wrap; restarted whenever it ends.
        size: batches in an epoch.
        reset_internal: whether `reset` also resets `data_iter`.
    """

    def __init__(self, data_iter: Any, size: int, reset_internal: bool = True):
        require_instance("ResizeIter", "data_iter", data_iter, DataIter, "a DataIter")
        super().__init__(data_iter.batch_size)
        self.data_iter, self.size, self.reset_internal = data_iter, size, reset_internal
        self.cur = 0
        if hasattr(data_iter, "default_bucket_key"):
            self.default_bucket_key = data_iter.default_bucket_key

    @overridable_property
    def provide_data(self) -> Sequence[Any]:
        return self.data_iter.provide_data

    @overridable_property
    def provide_label(self) -> Sequence[Any]:
        return self.data_iter.provide_label

    def reset(self) -> None:
        self.cur = 0
        if self.reset_internal:
            self.data_iter.reset()

    def iter_next(self) -> bool:
        if self.cur == self.size:
            return False
        try:
            self.current_batch = self.data_iter.next()
        except StopIteration:
            self.data_iter.reset()
            self.current_batch = self.data_iter.next()
        self.cur += 1
        return True


class PrefetchingIter(_CurrentBatchIter):
    """Fetches the next batch of one or several iterators in threads while the current one is used.

    Several iterators advance together and their arrays are put side by side.

    Args:
        iters: an iterator or a list of them.
        rename_data: for each iterator a dict of old to new input names.
        rename_label: likewise for labels.
    """

    def __init__(
        self,
        iters: DataIter | Sequence[DataIter],
        rename_data: Sequence[Mapping[str, str]] | None = None,
        rename_label: Sequence[Mapping[str, str]] | None = None,
    ):
        self.iters: list[Any] = list(iters) if isinstance(iters, (list, tuple)) else [iters]
        if not self.iters:
            raise ArgumentError("PrefetchingIter: iters is empty: expected at least one iterator")
        for it in self.iters:
            if not hasattr(it, "provide_data"):
                raise ArgumentTypeError(f"PrefetchingIter: iters holds a {type(it).__name__}: expected DataIters")
        self.n_iter = len(self.iters)
        self.rename_data, self.rename_label = rename_data, rename_label
        super().__init__(self.provide_data[0].shape[0])
        self._threads = ThreadPoolExecutor(self.n_iter, "dualmx-prefetch")
        self._pending: list[Future[DataBatch | None]] = []
        self._fetch()

    @overridable_property
    def provide_data(self) -> Sequence[Any]:
        return self._renamed([i.provide_data for i in self.iters], self.rename_data)

    @overridable_property
    def provide_label(self) -> Sequence[Any]:
        return self._renamed([i.provide_label for i in self.iters], self.rename_label)

    def _renamed(self, groups: list[Any], names: Sequence[Mapping[str, str]] | None) -> list[DataDesc]:
        tables = names if names is not None else [{}] * len(groups)
        return [
            DataDesc(table.get(d.name, d.name), d.shape, d.dtype, d.layout)
            for group, table in zip(groups, tables, strict=True)
            for d in parse_descs(group)
        ]

    def _fetch(self) -> None:
        self._pending = [self._threads.submit(_next_or_none, i) for i in self.iters]

    def reset(self) -> None:
        for f in self._pending:
            f.exception()
        for i in self.iters:
            i.reset()
        self._fetch()

    def iter_next(self) -> bool:
        if not self._pending:
            return False
        coming, self._pending = self._pending, []
        batches = [f.result() for f in coming]
        got = [b for b in batches if b is not None]
        if not got:
            return False
        if len(got) < len(batches) or len({b.pad for b in got}) > 1:
            raise MXNetError("PrefetchingIter: the iterators have different lengths: expected the same number of rows")
        self.current_batch = DataBatch(
            [x for b in got for x in b.data],
            [x for b in got for x in b.label or ()],
            got[0].pad,
            got[0].index,
            bucket_key=got[0].bucket_key,
            provide_data=self.provide_data if got[0].provide_data is None else got[0].provide_data,
            provide_label=self.provide_label if got[0].provide_label is None else got[0].provide_label,
        )
        self._fetch()
        return True

    def __del__(self) -> None:
        threads = getattr(self, "_threads", None)
        if threads is not None:
            threads.shutdown(wait=False)


def _next_or_none(it: DataIter) -> DataBatch | None:
    # A StopIteration cannot travel through a Future without becoming a RuntimeError in generators.
    try:
        return it.next()
    except StopIteration:
        return None


__all__ = ["DataIter", "MXDataIter", "PrefetchingIter", "ResizeIter"]
