"""`DataLoader`: batches of a dataset, loaded in the caller, in threads or in worker processes."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from typing import Any

from ...core.errors import ArgumentError, ForkError, MXNetError
from .batchify import default_batchify_fn, default_mp_batchify_fn, to_device
from .dataset import Dataset, SimpleDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler
from .worker_pool import WorkerPool


class DataLoader:
    """Iterates over a dataset in batches; every pass draws a new order if shuffled.

    Worker processes see items as NumPy arrays and hand batches over in shared memory; their batches have NDArrays in
    place of NumPy arrays. Dtypes are kept. Errors of the dataset or collation are raised here, whatever worker they
    happen in. Where a dataset of the script itself computes with NDArrays, which its workers cannot as forks, the
    batches are made in this process, with a warning.

    Args:
        dataset: a `Dataset`, or anything with `__getitem__` and `__len__`.
        batch_size: items in a batch.
        shuffle: visit the items in random order.
        sampler: order of the items, instead of `shuffle`.
        last_batch: `"keep"` (default), `"discard"` or `"rollover"` an incomplete last batch.
        batch_sampler: groups of indices, instead of the four above.
        batchify_fn: collation of a list of items; stacks them by default.
        num_workers: processes (or threads) that make batches ahead; 0 makes them here, when they are asked for.
        pin_memory: accepted; XLA owns the memory of transfers.
        pin_device_id: accepted.
        prefetch: batches made ahead, `2 * num_workers` by default.
        thread_pool: use threads instead of processes.
        timeout: seconds to wait for a worker's batch.
        auto_reload: make the first batches of the next pass as soon as a pass ends.

    Raises:
        ArgumentError: contradictory arguments. MXNetError: while iterating, a worker died or was too slow.

    Example:
        >>> import numpy as np
        >>> pairs = mx.gluon.data.ArrayDataset(np.zeros((5, 3)), np.arange(5))
        >>> loader = DataLoader(pairs, batch_size=2)
        >>> [x.shape for x, y in loader]
        [(2, 3), (2, 3), (1, 3)]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = None,
        shuffle: bool = False,
        sampler: Sampler | None = None,
        last_batch: str | None = None,
        batch_sampler: Any = None,
        batchify_fn: Callable[[Any], Any] | None = None,
        num_workers: int = 0,
        pin_memory: bool = False,
        pin_device_id: int = 0,
        prefetch: int | None = None,
        thread_pool: bool = False,
        timeout: float = 120,
        auto_reload: bool = False,
    ):
        if timeout <= 0:
            raise ArgumentError(f"DataLoader: timeout={timeout}: expected more than 0 seconds")
        if batch_sampler is None:
            if batch_size is None:
                raise ArgumentError("DataLoader: batch_size is missing; give it, or a batch_sampler")
            if sampler is not None and shuffle:
                raise ArgumentError("DataLoader: shuffle: not together with sampler, which decides the order")
            if sampler is None:
                sampler = RandomSampler(len(dataset)) if shuffle else SequentialSampler(len(dataset))
            batch_sampler = BatchSampler(sampler, batch_size, last_batch or "keep")
        elif batch_size is not None or shuffle or sampler is not None or last_batch is not None:
            raise ArgumentError(
                "DataLoader: batch_size, shuffle, sampler and last_batch: not together with batch_sampler, which "
                "decides them all"
            )
        self._dataset: Dataset = dataset if isinstance(dataset, Dataset) else SimpleDataset(dataset)
        self._batch_sampler = batch_sampler
        self._batchify = None if batchify_fn in (default_batchify_fn, default_mp_batchify_fn) else batchify_fn
        self._num_workers = max(int(num_workers), 0)
        self._prefetch = max(1, 2 * self._num_workers if prefetch is None else int(prefetch))
        self._thread_pool, self._timeout = thread_pool, timeout
        self._pool: WorkerPool | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._auto_reload = auto_reload
        self._prefetch_queue: _PrefetchQueue | None = None

    @property
    def batch_sampler(self) -> Any:
        """What gives the indices of each batch."""
        return self._batch_sampler

    @batch_sampler.setter
    def batch_sampler(self, sampler: Any) -> None:
        self._batch_sampler = sampler

    def __len__(self) -> int:
        return len(self._batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        if not self._num_workers:
            return self._one_by_one()
        ahead, self._prefetch_queue = self._prefetch_queue or self._start(), None
        return self._reload(ahead) if self._auto_reload else ahead

    def _one_by_one(self) -> Iterator[Any]:
        for indices in self._batch_sampler:
            yield self._make(indices)

    def _make(self, indices: Any) -> Any:
        return _make(self._dataset, self._batchify, indices)

    def _start(self) -> _PrefetchQueue:
        refused = self._pool is not None and self._pool.fork_unsafe
        if self._thread_pool or refused:
            if self._threads is None:
                # What was written for processes need not be safe in several threads.
                self._threads = ThreadPoolExecutor(1 if refused else self._num_workers, "dualmx-data")
            return _ThreadPrefetch(self._threads, self._make, self._timeout, self._batch_sampler, self._prefetch)
        if self._pool is None or not self._pool.alive:
            self._pool = WorkerPool(self._dataset, self._batchify, self._num_workers, self._timeout)
        make = partial(_make, self._dataset, self._batchify)
        return _ProcessPrefetch(self._pool, make, self._batch_sampler, self._prefetch)

    def _reload(self, ahead: _PrefetchQueue) -> Iterator[Any]:
        yield from ahead
        self.refresh()

    def refresh(self) -> None:
        """Start to make the first batches of the next pass now."""
        if self._num_workers and self._prefetch_queue is None:
            self._prefetch_queue = self._start()

    def clean(self) -> None:
        """Drop prefetched batches of the next pass."""
        self._prefetch_queue = None

    def __del__(self) -> None:
        if getattr(self, "_threads", None) is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)  # type: ignore[union-attr]


def _make(dataset: Dataset, batchify: Callable[[Any], Any] | None, indices: Any) -> Any:
    if batchify is None:
        return to_device(dataset.host_batch(indices))
    return batchify([dataset[i] for i in indices])


class _PrefetchQueue:
    """One pass whose batches are requested before they are needed."""

    def __init__(self, batches: Any, count: int):
        self._batches = iter(batches)
        self._pending: deque[Any] = deque()
        for _ in range(count):
            self._ask()

    def _ask(self) -> None:
        indices = next(self._batches, None)
        if indices is not None:
            self._pending.append(self._submit(indices))

    def _submit(self, indices: Any) -> Any:
        raise NotImplementedError

    def _result(self, ticket: Any) -> Any:
        raise NotImplementedError

    def __iter__(self) -> _PrefetchQueue:
        return self

    def __next__(self) -> Any:
        if not self._pending:
            raise StopIteration
        try:
            batch = self._result(self._pending.popleft())
        except BaseException:
            self._batches = iter(())
            raise
        self._ask()
        return batch


class _ProcessPrefetch(_PrefetchQueue):
    def __init__(self, pool: WorkerPool, make: Callable[[Any], Any], *args: Any):
        self._pool, self._make = pool, make
        super().__init__(*args)

    def _submit(self, indices: Any) -> tuple[int, Any]:
        return -1 if self._pool.fork_unsafe else self._pool.request_batch(indices), indices

    def _result(self, due: tuple[int, Any]) -> Any:
        ticket, indices = due
        if not self._pool.fork_unsafe:
            try:
                return to_device(self._pool.result(ticket))
            except ForkError:
                self._refuse()
        return self._make(indices)

    def _refuse(self) -> None:
        self._pool.fork_unsafe = True
        self._pool.close()
        warnings.warn(
            "DataLoader: the dataset or the collation computes with NDArrays, which worker processes that are forks "
            "of this one cannot: batches are made in this process. NumPy in their place uses all workers; "
            "thread_pool=True and num_workers=0 do without processes",
            stacklevel=4,
        )

    def __del__(self) -> None:
        if not self._pool.fork_unsafe:
            self._pool.forget(ticket for ticket, _ in getattr(self, "_pending", ()))


class _ThreadPrefetch(_PrefetchQueue):
    def __init__(self, threads: ThreadPoolExecutor, make: Callable[[Any], Any], timeout: float, *args: Any):
        self._threads, self._make, self._timeout = threads, make, timeout
        super().__init__(*args)

    def _submit(self, indices: Any) -> Future[Any]:
        return self._threads.submit(self._make, indices)

    def _result(self, ticket: Future[Any]) -> Any:
        try:
            return ticket.result(self._timeout)
        except FutureTimeout:
            raise MXNetError(
                f"DataLoader: no batch within timeout={self._timeout:g} seconds; the dataset or the collation is slow "
                "or blocked: raise timeout=, or find the cause with num_workers=0"
            ) from None
